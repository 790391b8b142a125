"""The same fleet by each engine: a real Spark cluster, Ray and Dask on this machine. Summaries are
compared byte by byte, tables row by row, and answers of Spark SQL with those of DuckDB."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python")]
import simulated_fleet  # noqa: E402
import staged  # noqa: E402

ENGINES = {"spark": "pyspark", "ray": "ray", "dask": "distributed"}
HERE_ARE = [name for name, package in ENGINES.items() if importlib.util.find_spec(package)]
if not HERE_ARE or not importlib.util.find_spec("duckdb"):
    print("skipped: no Spark, Ray, Dask or duckdb; `tools/dev test-fleet` brings them")
    sys.exit(77)

BUILD = Path(os.environ["FLOPINJ_BUILD"]).resolve()
JOBS, SIZE = 8, 250

ASK_SPARK = """
import json, sys
from pyspark.sql import SparkSession
import flopinj.fleet
from flopinj.fleet import lake
spark = SparkSession.builder.getOrCreate()
source, out, others = sys.argv[1:]
outcome = flopinj.fleet.ingest(source, others, engine="spark", session=spark)
flopinj.fleet.register(spark, out)
asked = {name: lake.query(name, top=50, price=2.5, electricity=0.3) for name in lake.questions()}
answers = {name: [row.asDict() for row in spark.sql(text).collect()]
           for name, text in asked.items()}
sums = spark.sql("SELECT job, sum(flop) AS flop FROM rows GROUP BY job").collect()
print(json.dumps({"done": outcome.done, "answers": answers,
                  "flop": {row.job: str(row.flop) for row in sums}}, default=str))
"""


def needs(name):
    java = name != "spark" or shutil.which("java")
    return unittest.skipUnless(name in HERE_ARE and java, f"{name} is not here")


class Engines(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="flopinj-engines-")
        cls.folder = Path(cls.scratch.name)
        cls.packages = staged.stage(cls.folder / "packages", BUILD)
        sys.path.insert(0, str(cls.packages))
        os.environ["PYTHONPATH"] = str(cls.packages)  # for workers
        cls.runs, cls.lake = cls.folder / "runs", cls.folder / "lake"
        cls.jobs = simulated_fleet.make(BUILD, cls.runs, JOBS, SIZE)
        from flopinj.fleet import ingest

        began = time.monotonic()
        ingest(cls.runs, cls.lake)
        cls.say("local", time.monotonic() - began)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @staticmethod
    def say(engine, seconds):
        print(f"{engine}: {JOBS * SIZE} traces in {seconds:.1f} s", file=sys.stderr)

    def same(self, other):
        """Every summary to the byte, and every row of every table."""
        from flopinj.fleet import Lake, layout

        names = sorted(path.relative_to(self.lake)
                       for path in self.lake.glob("summaries/*/*.sum.zst"))
        self.assertEqual(len(names), JOBS)
        self.assertEqual(names, sorted(path.relative_to(other)
                                       for path in Path(other).glob("summaries/*/*.sum.zst")))
        for name in names:
            self.assertEqual((self.lake / name).read_bytes(), (other / name).read_bytes(), name)
        for table in ("jobs", *layout.TABLES):
            one, two = (Lake(lake).sql("SELECT COLUMNS(lambda c: c <> 'taken_in') "
                                       f"FROM {table} ORDER BY ALL")
                        for lake in (self.lake, other))
            self.assertTrue(one.num_rows or table in ("labels", "lost"), table)
            self.assertTrue(one.equals(two), table)

    @needs("ray")
    def test_ray(self):
        from flopinj.fleet import ingest

        began = time.monotonic()
        ingest(self.runs, self.folder / "ray", "ray", workers=2)
        self.say("Ray with its start", time.monotonic() - began)
        self.same(self.folder / "ray")

    @needs("dask")
    def test_dask(self):
        began = time.monotonic()
        subprocess.run([sys.executable, "-m", "flopinj", "fleet", "ingest", self.runs, "--out",
                        self.folder / "dask", "--engine", "dask", "--workers", "2"], check=True,
                       stdout=subprocess.DEVNULL, timeout=300)
        self.say("Dask with its start", time.monotonic() - began)
        self.same(self.folder / "dask")

    @needs("spark")
    def test_spark(self):
        import spark_cluster

        with spark_cluster.cluster(self.folder / "cluster", self.packages) as cluster:
            self.ingest_by_script(cluster)
            self.ask_in_a_session(cluster)
            self.lose_an_executor(cluster)

    def end(self, process):
        out, said = process.communicate(timeout=400)
        self.assertEqual(process.returncode, 0, said[-3000:])
        return out

    def script(self):
        return subprocess.run([sys.executable, "-m", "flopinj.fleet", "--spark-script"], text=True,
                              check=True, stdout=subprocess.PIPE).stdout.strip()

    def ingest_by_script(self, cluster):
        began = time.monotonic()
        out = self.end(cluster.submit(self.script(), "ingest", self.runs, "--out",
                                      self.folder / "spark", "--engine", "spark"))
        self.say("Spark with its start", time.monotonic() - began)
        self.assertIn(f"{JOBS * SIZE} traces of {JOBS} jobs: {JOBS} taken in", out)
        self.same(self.folder / "spark")

    def ask_in_a_session(self, cluster):
        from flopinj.fleet import Lake, lake

        program = self.folder / "ask.py"
        program.write_text(ASK_SPARK)
        out = self.end(cluster.submit(program, self.runs, self.folder / "spark",
                                      self.folder / "by-session"))
        said = json.loads(out.splitlines()[-1])
        self.assertEqual(said["done"], sorted(job.name for job in self.jobs))
        self.same(self.folder / "by-session")
        for name, rows in said["answers"].items():
            own = Lake(self.lake).sql(lake.query(
                name, top=50, price=2.5, electricity=0.3)).to_pylist()
            self.assertEqual(len(own), len(rows), name)
            for one, other in zip(own, rows):
                for key, value in one.items():
                    if isinstance(value, float):
                        self.assertAlmostEqual(value, float(other[key]), delta=1e-9 * abs(value))
                    else:
                        self.assertEqual(str(value), str(other[key]), (name, key))
        for row in Lake(self.lake).sql("SELECT job, flop FROM jobs").to_pylist():
            self.assertEqual(str(row["flop"]), said["flop"][row["job"]])

    def lose_an_executor(self, cluster):
        lake = self.folder / "bereft"
        process = cluster.submit(self.script(), "ingest", self.runs, "--out", lake, "--engine",
                                 "spark")
        while process.poll() is None and len(list(lake.glob("parts/*.json"))) < 5:
            time.sleep(0.05)
        killed = cluster.executors()[:1]
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        self.end(process)
        self.assertEqual(len(killed), 1)
        self.same(lake)


if __name__ == "__main__":
    unittest.main(verbosity=2)
