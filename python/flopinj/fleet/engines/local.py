"""This machine. The work is done by processes of flopreduce; a thread waits for each."""

import os
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager


@contextmanager
def start(workers, session):
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:

        def run(function, tasks):
            futures = [pool.submit(function, task) for task in tasks]
            try:
                for future in as_completed(futures):
                    yield future.result()
            finally:
                for future in futures:
                    future.cancel()

        yield run
