"""Spark: a task each. Executors need this package, as from pip, and reach source and lake."""

from contextlib import contextmanager

from pyspark.sql import SparkSession


@contextmanager
def start(workers, session):
    spark = session or SparkSession.builder.appName("flopinj fleet").getOrCreate()

    def run(function, tasks):
        if tasks:
            yield from spark.sparkContext.parallelize(tasks, len(tasks)).map(function).collect()

    try:
        yield run
    finally:
        if session is None:
            spark.stop()
