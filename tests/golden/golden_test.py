"""Recorded traces to their expected reports, byte for byte. make.sh writes both anew."""

import os
import subprocess
import sys
import unittest
from pathlib import Path

FLOPREDUCE, MAKE_TRACES = (Path(p).resolve() for p in sys.argv[1:3])
HERE = Path(__file__).resolve().parent
CASES = {"training": (["training.pb"], 0), "simulated": (["simulated.pb"], 0), "killed": (["killed.pb"], 3),
         "damaged": (["damaged.pb"], 3), "two_ranks": (["training.pb", "other_rank.pb"], 0)}


class Golden(unittest.TestCase):
    maxDiff = None

    def reduce(self, name, *options):
        traces, code = CASES[name]
        done = subprocess.run([FLOPREDUCE, *options, *traces], cwd=HERE, capture_output=True, text=True, timeout=60,
                              env={**os.environ, "COLUMNS": "110"})
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout

    def test_text(self):
        for name in CASES:
            with self.subTest(name=name):
                self.assertEqual(self.reduce(name, "--color", "never"), (HERE / f"{name}.txt").read_text())

    def test_json(self):
        for name in CASES:
            with self.subTest(name=name):
                self.assertEqual(self.reduce(name, "--format", "json"), (HERE / f"{name}.json").read_text())

    def test_traces_are_what_their_source_makes(self):
        for trace in sorted(HERE.glob("*.pb")):
            with self.subTest(trace=trace.name):
                made = subprocess.run([MAKE_TRACES, trace.stem], capture_output=True, timeout=60, check=True).stdout
                self.assertEqual(made, trace.read_bytes())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
