#!/usr/bin/env python3
"""Evidence that is hidden makes no figure wrong: a report of a stream without sizes of some
products, or without peaks, holds for the report with all of them. Figures that are exact are equal,
and bounds are on their side. Of estimates, and of figures that are not known, nothing is asked.

hidden_test.py BUILD [PATTERN...]"""

import json
import random
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
import as_gpu  # noqa: E402
import compare  # noqa: E402

STREAMS = Path(__file__).resolve().parent / "streams"
NAMES = ["gpt", "gpt-checkpoint", "cnn", "lora", "hf_llama_autocast", "mixture_of_experts", "lstm"]
PEAKS = ("--peak", f"fp32={compare.PEAK:g}")
# Tables, and the columns that tell their rows apart. A formula rests on sizes alone, so tables of
# operators are taken by their executed FLOP.
TABLES = {"phases": ["phase"], "utilization": ["name"], "layers": ["layer"],
          "operator_passes": ["operator", "pass"], "layer_passes": ["layer", "pass"],
          "kernels": ["kernel"], "step_summary": ["range"]}
PRODUCTS = re.compile(r"aten::(linear|conv\dd|convolution\w*|b?mm|addmm|baddbmm|matmul|lstm|"
                      r"\w*scaled_dot_product\w*attention\w*)$")
# Columns about the evidence itself, and not about the program.
ABOUT = re.compile(r"coverage|launches|missing|unmeasured|unknown|basis|estimated|_low|_high")


class Hidden(unittest.TestCase):
    build = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="flopinj-hidden-")
        cls.addClassCleanup(folder.cleanup)
        cls.trace = Path(folder.name) / "trace.pb"

    def report(self, lines, *options):
        class Gpu:
            pass

        Gpu.lines = lines
        compare.write_trace(self.build, Gpu, self.trace)
        done = subprocess.run(
            [self.build / "bin/flopreduce", "--format", "json", *options, self.trace],
            capture_output=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return json.loads(done.stdout)

    def assertHolds(self, whole, part, where):
        """Of one row: how many figures were compared."""
        compared = 0
        for key, truth in whole.items():
            if ABOUT.search(key) or not isinstance(truth, (int, float)) or isinstance(truth, bool):
                continue
            if re.search("_at_(least|most)$", key) or f"{key}_estimated" in whole:
                continue
            slack = 1e-9 * abs(truth)
            said, least, most = (part.get(k) for k in (key, f"{key}_at_least", f"{key}_at_most"))
            if said is not None and f"{key}_estimated" not in part:
                self.assertAlmostEqual(said, truth, delta=slack, msg=f"{where}.{key}")
                compared += 1
            if least is not None and f"{key}_estimated" not in part:
                self.assertLessEqual(least, truth + slack, f"{where}.{key}")
                compared += 1
            if most is not None and f"{key}_estimated" not in part:
                self.assertGreaterEqual(most, truth - slack, f"{where}.{key}")
                compared += 1
        return compared

    def check(self, name, hide, *options):
        lines = as_gpu.convert(STREAMS / f"{name}.jsonl.xz").lines
        whole, part = self.report(lines, *PEAKS), self.report(hide(lines), *options)
        compared = self.assertHolds(whole["figures"], part["figures"], "figures")
        for table, key in TABLES.items():
            rows = {tuple(row[k] for k in key): row for row in part[table]}
            for row in whole[table]:
                name_of = tuple(row[k] for k in key)
                if name_of in rows:
                    compared += self.assertHolds(row, rows[name_of], f"{table} {name_of}")
        self.assertGreater(compared, 50)
        return whole, part

    def test_sizes(self):
        """Of each share of the operators that multiply matrices."""
        for name in NAMES:
            for share in (0.2, 0.6, 1):
                with self.subTest(stream=name, share=share):
                    draw = random.Random(f"{name} {share}")
                    hidden = {}

                    def hide(lines):
                        for line in lines:
                            text = line.split("\t")[-1]
                            function = text.split(",", 1)[0]
                            if PRODUCTS.match(function) and line.startswith("push"):
                                if hidden.setdefault(text, draw.random() < share):
                                    line = re.sub(r", sizes = \[.*\](?=$|, [a-z_]+ = )", "", line)
                            yield line

                    _, part = self.check(name, lambda lines: list(hide(lines)), *PEAKS)
                    if share == 1:
                        self.assertIsNone(part["figures"]["mfu"])

    def test_peaks(self):
        for name in NAMES:
            with self.subTest(stream=name):
                _, part = self.check(name, list)
                self.assertIsNone(part["figures"]["mfu"])
                self.assertIsNone(part["figures"]["hfu"])


if __name__ == "__main__":
    Hidden.build = Path(sys.argv[1]).resolve()
    NAMES = sys.argv[2:] or NAMES
    unittest.main(argv=sys.argv[:1], verbosity=1)
