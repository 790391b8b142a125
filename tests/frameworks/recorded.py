"""What tests on whole reports of streams have in common."""

import functools
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import as_gpu
import compare

STREAMS = Path(__file__).resolve().parent / "streams"
PEAKS = ("--peak", f"fp32={compare.PEAK:g}")


class Streams(unittest.TestCase):
    build = None
    streams = []  # those of the command line

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="flopinj-streams-")
        cls.addClassCleanup(folder.cleanup)
        cls.trace = Path(folder.name) / "trace.pb"

    @staticmethod
    @functools.cache
    def lines_of(name):
        return as_gpu.convert(STREAMS / f"{name}.jsonl.xz").lines

    def report(self, lines, *options):
        """The report as JSON of a trace that has these lines."""

        class Gpu:
            pass

        Gpu.lines = lines
        compare.write_trace(self.build, Gpu, self.trace)
        done = subprocess.run(
            [self.build / "bin/flopreduce", "--format", "json", *options, self.trace],
            capture_output=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        made = json.loads(done.stdout)
        self.assertIsNot(compare.lost_adds_up(made), False, "where the peak went does not add up")
        return made


def main(test):
    """NAME_test.py BUILD [STREAM...]"""
    test.build = Path(sys.argv[1]).resolve()
    test.streams = sys.argv[2:]
    unittest.main(argv=sys.argv[:1], verbosity=1)
