"""flopinj fleet on an object store: a server of Amazon's S3 protocol on this machine (moto's), by
s3fs, traces and lake both."""

import logging
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python")]
import simulated_fleet  # noqa: E402
import staged  # noqa: E402

try:
    import duckdb  # noqa: F401
    import s3fs
    from moto.server import ThreadedMotoServer
except ImportError as missing:
    print(f"skipped: {missing}; `tools/dev test-fleet` brings it")
    sys.exit(77)

BUILD = Path(os.environ["FLOPINJ_BUILD"]).resolve()
SIZE = 20


class ObjectStore(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="flopinj-store-")
        cls.folder = Path(cls.scratch.name)
        sys.path.insert(0, str(staged.stage(cls.folder / "packages", BUILD)))
        logging.getLogger("werkzeug").setLevel(logging.ERROR)  # a line for each request
        cls.server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        cls.server.start()
        os.environ |= {
            "AWS_ENDPOINT_URL": "http://127.0.0.1:%d" % cls.server.get_host_and_port()[1],
            "AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none",
            "AWS_DEFAULT_REGION": "us-east-1"}
        cls.jobs = simulated_fleet.make(BUILD, cls.folder / "runs", 2, SIZE)
        cls.store = s3fs.S3FileSystem()
        cls.store.mkdir("fleet")
        cls.store.put(str(cls.folder / "runs"), "fleet/runs", recursive=True)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.scratch.cleanup()

    def test_a_lake_there_is_as_one_here(self):
        from flopinj.fleet import Lake, ingest, layout

        here = ingest(str(self.folder / "runs"), str(self.folder / "lake"))
        there = ingest("s3://fleet/runs", "s3://fleet/lake")
        self.assertEqual((here.done, here.problems), (there.done, there.problems))
        for job in here.done:
            (one,) = (self.folder / f"lake/summaries/job={job}").glob("*.sum.zst")
            (other,) = (name for name in self.store.ls(f"fleet/lake/summaries/job={job}",
                                                       detail=False) if name.endswith("sum.zst"))
            self.assertEqual(one.read_bytes(), self.store.cat_file(other))
        lakes = [Lake(str(self.folder / "lake")), Lake("s3://fleet/lake")]
        for table in ("jobs", *layout.TABLES):
            rows = [sorted(map(repr, lake.sql(
                "SELECT COLUMNS(lambda c: c NOT IN "
                "('ingest', 'pack', 'taken_in', 'source', 'version')) "
                f"FROM {table}").to_pylist())) for lake in lakes]
            self.assertEqual(*rows)
            self.assertTrue(rows[0] or table in ("labels", "lost"), table)
        self.assertEqual(ingest("s3://fleet/runs", "s3://fleet/lake").done, [])

        changed = f"fleet/runs/{here.done[0]}/rank3.pb"
        self.store.pipe_file(changed, self.store.cat_file(changed)[:-500])
        again = ingest("s3://fleet/runs", "s3://fleet/lake")
        self.assertEqual(again.done, here.done[:1])
        self.assertEqual([(job, file) for job, file, _ in again.problems],
                         [(here.done[0], f"{here.done[0]}/rank3.pb")])
        self.assertEqual(self.store.find("fleet/lake/parts"), [])
        self.assertEqual(len(self.store.find("fleet/lake/rows")), 2)

    def test_from_the_command_line(self):
        words = ["ingest", "s3://fleet/runs", "--out", "s3://fleet/other", "--job-from",
                 "{job}/rank{rank}.pb"]
        for arguments in (words, ["jobs", "--lake", "s3://fleet/other"]):
            done = subprocess.run([sys.executable, "-m", "flopinj.fleet", *arguments], text=True,
                                  env={**os.environ, "PYTHONPATH": str(self.folder / "packages")},
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
            self.assertIn(done.returncode, (0, 3), done.stderr)
        for job in self.jobs:
            self.assertIn(job.name, done.stdout)


if __name__ == "__main__":
    unittest.main()
