"""Ray: a task each, on the cluster that RAY_ADDRESS names, or on this machine."""

from contextlib import contextmanager

import ray


@contextmanager
def start(workers, session):
    mine = not ray.is_initialized()
    if mine:
        ray.init(num_cpus=workers, log_to_driver=False)

    def run(function, tasks):
        left = [ray.remote(function).remote(task) for task in tasks]
        while left:
            done, left = ray.wait(left)
            yield from ray.get(done)

    try:
        yield run
    finally:
        if mine:
            ray.shutdown()
