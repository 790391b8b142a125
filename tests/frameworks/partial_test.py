#!/usr/bin/env python3
"""Streams in which only a part of the steps has names. What rests on names is then of that part: as
in a report of these steps by themselves, and it says so; the model's share of the run is theirs.

partial_test.py BUILD [PATTERN...]"""

import re
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
import as_gpu  # noqa: E402
import compare  # noqa: E402

STREAMS = Path(__file__).resolve().parent / "streams"
NAMES = ["gpt", "gpt-checkpoint", "cnn", "lora", "hf_llama_autocast", "annotated_self_taught"]
WITHOUT = 4  # times as many steps without names
MARK, UNNAMED_MARK = "flopinj step", "flopinj step without names"


def definitions(lines):
    return [line for line in lines if line.split("\t", 1)[0] in ("device", "thread", "kernel")]


def launches(lines):
    return [line for line in lines if line.startswith("run\t")]


def calls(lines):
    return [line for line in lines if line not in set(definitions(lines))]


class Partial(unittest.TestCase):
    build = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="flopinj-partial-")
        cls.addClassCleanup(folder.cleanup)
        cls.trace = Path(folder.name) / "trace.pb"

    def report(self, lines):
        class Gpu:
            pass

        Gpu.lines = lines
        compare.write_trace(self.build, Gpu, self.trace)
        return compare.report(self.build, self.trace)

    def reports(self, name, marked):
        """Of the steps with names by themselves, and of all: a half of the others before them."""
        lines = as_gpu.convert(STREAMS / f"{name}.jsonl.xz").lines
        half = WITHOUT // 2
        parts = [launches(lines)] * half + [calls(lines)] + [launches(lines)] * half
        if marked:
            parts = [[f"start\t{n}\t-\t{MARK if n == half else UNNAMED_MARK}", *part, f"end\t{n}"]
                     for n, part in enumerate(parts)]
        return (self.report(lines),
                self.report(definitions(lines) + [line for part in parts for line in part]))

    def assertOfThePart(self, whole, part):
        flop = {row["phase"]: row["flop"] for row in part["phases"]}
        executed = part["figures"]["flop"]
        self.assertEqual(executed, (1 + WITHOUT) * whole["figures"]["flop"])
        self.assertEqual(part["figures"]["matrix_ratio"], whole["figures"]["matrix_ratio"])
        for table, key in (("ratio", "figure"), ("layers", "layer"),
                           ("operator_passes", "operator")):
            said = [[{column: value for column, value in row.items()
                      if column in (key, "value", "verdict") or re.search("flop|ratio", column)}
                     for row in of[table]] for of in (whole, part)]
            self.assertEqual(*said, table)
        return flop

    def test_of_steps_that_say_so(self):
        for name in NAMES:
            with self.subTest(stream=name):
                whole, part = self.reports(name, marked=True)
                flop = self.assertOfThePart(whole, part)
                self.assertEqual(flop.pop("unnamed"), WITHOUT * whole["figures"]["flop"])
                self.assertEqual(flop, {row["phase"]: row["flop"] for row in whole["phases"]})
                shares = [{row["phase"]: row["flop_share"] for row in of["phases"]
                           if row["phase"] != "unnamed"} for of in (whole, part)]
                self.assertEqual(*shares)
                mfu, hfu = ([compare.figure(of["figures"], figure) for of in (whole, part)]
                            for figure in ("mfu", "hfu"))
                self.assertAlmostEqual(mfu[1] / hfu[1], mfu[0] / hfu[0], places=12)
                self.assertTrue(part["figures"].get("mfu_estimated") or
                                "mfu_at_least" in whole["figures"])

    def test_of_others(self):
        for name in NAMES:
            with self.subTest(stream=name):
                whole, part = self.reports(name, marked=False)
                flop = self.assertOfThePart(whole, part)
                for phase in ("forward", "backward", "recompute"):
                    self.assertEqual(flop.get(phase), next(
                        (row["flop"] for row in whole["phases"] if row["phase"] == phase), None))
                other = sum(row["flop"] for row in whole["phases"] if row["phase"] == "other")
                self.assertEqual(flop["other"] + flop["unnamed"],
                                 WITHOUT * whole["figures"]["flop"] + other)
                self.assertIsNone(part["figures"]["mfu"])
                self.assertIn("mfu_at_least", part["figures"])


if __name__ == "__main__":
    Partial.build = Path(sys.argv[1])
    NAMES = sys.argv[2:] or NAMES
    unittest.main(argv=sys.argv[:1], verbosity=1)
