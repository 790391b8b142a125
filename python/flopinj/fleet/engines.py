"""Who does the work. An engine maps a function over tasks, in any order, and moves no data: that is
in files, which every worker can reach.

Each is a context; in it `run(function, tasks)` gives the results. `session` is a session or client
that is there already, and stays.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from flopinj._programs import Error, install

Task = Callable[[Any], Any]
Run = Callable[[Task, Sequence[Any]], Iterable[Any]]


@contextmanager
def _local(workers: int | None, session: Any) -> Iterator[Any]:
    """This machine. The work is done by processes of `flopinj report`; a thread waits for each."""
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:

        def run(function: Task, tasks: Sequence[Any]) -> Iterable[Any]:
            futures = [pool.submit(function, task) for task in tasks]
            try:
                for future in as_completed(futures):
                    yield future.result()
            finally:
                for future in futures:
                    future.cancel()

        yield run


@contextmanager
def _spark(workers: int | None, session: Any) -> Iterator[Any]:
    """A task each. Executors need this package, as from pip, and reach source and lake."""
    from pyspark.sql import SparkSession

    spark = session or SparkSession.builder.appName("flopinj fleet").getOrCreate()

    def run(function: Task, tasks: Sequence[Any]) -> Iterable[Any]:
        if tasks:
            yield from spark.sparkContext.parallelize(tasks, len(tasks)).map(function).collect()

    try:
        yield run
    finally:
        if session is None:
            spark.stop()


@contextmanager
def _ray(workers: int | None, session: Any) -> Iterator[Any]:
    """A task each, on the cluster that RAY_ADDRESS names, or on this machine."""
    import ray

    mine = not ray.is_initialized()
    if mine:
        ray.init(num_cpus=workers, log_to_driver=False)

    def run(function: Task, tasks: Sequence[Any]) -> Iterable[Any]:
        left = [ray.remote(function).remote(task) for task in tasks]
        while left:
            done, left = ray.wait(left)
            yield from ray.get(done)

    try:
        yield run
    finally:
        if mine:
            ray.shutdown()


@contextmanager
def _dask(workers: int | None, session: Any) -> Iterator[Any]:
    """A task each, by a client that is there already, or on this machine."""
    from distributed import Client
    from distributed import as_completed as dask_completed

    client = session or Client(n_workers=workers, threads_per_worker=1, dashboard_address=None)

    def run(function: Task, tasks: Sequence[Any]) -> Iterable[Any]:
        for future in dask_completed(client.map(function, tasks, pure=False)):
            yield future.result()

    try:
        yield run
    finally:
        if session is None:
            client.close()


#: Each with the package that it needs.
ENGINES = {"local": (None, _local), "spark": ("pyspark", _spark), "ray": ("ray", _ray),
           "dask": ("distributed", _dask)}


def start(name: str, workers: int | None, session: Any) -> AbstractContextManager[Any]:
    if name not in ENGINES:
        raise Error(f"there is no engine '{name}': there are {', '.join(ENGINES)}", 2)
    package, engine = ENGINES[name]
    if package and importlib.util.find_spec(package) is None:
        raise Error(f"the engine {name} needs {package}: {install('fleet', name)}", 1)
    return engine(workers, session)
