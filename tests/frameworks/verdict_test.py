#!/usr/bin/env python3
"""The verdict on backward / forward and its reason, in every form of a report: of the trace, of its
summary, beside gates, in a comparison and through the Python package.

verdict_test.py BUILD"""

import importlib.util
import json
import sqlite3
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
import as_gpu  # noqa: E402
import compare  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
import staged  # noqa: E402

STREAMS = Path(__file__).resolve().parent / "streams"
BARE = " by kernels of no operator"
# By stream: the verdict, and a part of its reason.
VERDICTS = {
    "gpt": ("inside", "as expected"),
    "mlp_hook_products": ("inside", "as expected"),
    "deferred_weights": ("undecided", "products outside of autograd, as many as 100 % of forward's "
                                      "matrix work, may be gradients"),
    # As an extension's kernels compute them.
    "deferred_weights" + BARE: ("undecided", "products outside of autograd, as many as 100 % of "
                                             "forward's matrix work, may be gradients"),
    "dual_pipe": ("undecided", "products outside of autograd"),
    "forward_mode": ("undecided", "aten::linear executes 3 times its formula"),
    "spectral_norm": ("undecided", "theory is of"),
}
ROW = "matrix work only"


def without_ranges_behind_backward(lines):
    """Of the main thread, between autograd's last range and the optimizer's."""
    last = max(i for i, line in enumerate(lines) if line.startswith("pop\t2\t"))
    for i, line in enumerate(lines):
        bare = last < i and not any("Optimizer" in line for line in lines[last:i + 1])
        if not (bare and line.startswith(("push\t", "pop\t"))):
            yield line


class Verdicts(unittest.TestCase):
    build = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="flopinj-verdict-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder, cls.traces = Path(folder.name), {}
        for name in VERDICTS:
            trace = cls.traces[name] = cls.folder / f"{name}.pb"
            gpu = as_gpu.convert(STREAMS / f"{name.partition(' ')[0]}.jsonl.xz")
            if name.endswith(BARE):
                gpu.lines = list(without_ranges_behind_backward(gpu.lines))
            compare.write_trace(cls.build, gpu, trace)

    def run_flopreduce(self, *arguments, code=0):
        done = subprocess.run([self.build / "bin/flopreduce", *arguments], capture_output=True,
                              encoding="utf-8", timeout=60, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout

    def json_of(self, *arguments, code=0):
        return json.loads(self.run_flopreduce("--format", "json", *arguments, code=code))

    def check_row(self, row, name):
        verdict, reason = VERDICTS[name]
        self.assertEqual(row["verdict"], verdict)
        self.assertIn(reason, row["note"])
        if verdict == "undecided":
            self.assertTrue(row["note"].startswith("undecided: "), row["note"])

    def check_screen(self, text, name):
        verdict, reason = VERDICTS[name]
        line = next(line for line in text.splitlines() if "Backward/fwd" in line)
        self.assertIn(reason, line)
        self.assertEqual("undecided" in line, verdict == "undecided", line)
        self.assertNotIn("OUTSIDE", line)
        if verdict == "undecided":
            self.assertNotIn("as expected", line)

    def test_of_traces(self):
        for name, trace in self.traces.items():
            self.check_screen(self.run_flopreduce(trace), name)
            self.check_row(compare.by(self.json_of(trace), "ratio")[ROW], name)
            for form in ("text", "markdown"):
                text = self.run_flopreduce("--format", form, "--sections", "ratio", trace)
                self.assertIn(VERDICTS[name][1], text.replace("\\", ""))

    def test_of_tables(self):
        for name, trace in self.traces.items():
            database = self.folder / f"{name}.db"
            self.run_flopreduce("--format", "sqlite", "-o", database, trace)
            with sqlite3.connect(database) as rows:
                (found, ) = rows.execute(f"SELECT verdict, note FROM ratio WHERE figure = '{ROW}'")
            self.check_row(dict(zip(("verdict", "note"), found)), name)

    def test_of_summaries(self):
        for name, trace in self.traces.items():
            summary = self.folder / f"{name}.sum"
            self.run_flopreduce("merge", "-o", summary, trace)
            self.check_row(compare.by(self.json_of(summary), "ratio")[ROW], name)
            self.check_screen(self.run_flopreduce(summary), name)

    def test_beside_gates(self):
        trace = self.traces["deferred_weights"]
        gated = self.json_of("--fail-if", "matrix_ratio < 1.5", trace, code=1)
        self.check_row(compare.by(gated, "ratio")[ROW], "deferred_weights")
        # It is at least 1, and truly 2.
        self.assertEqual(gated["gates"][0]["verdict"], "not_known")
        decided = self.json_of("--fail-if", "matrix_ratio < 0.9", trace)
        self.assertEqual(decided["gates"][0]["verdict"], "passed")

    def test_by_name_in_gates(self):
        for name, trace in self.traces.items():
            verdict, _ = VERDICTS[name]
            found = self.json_of("--fail-if", f"verdict != {verdict}", trace)
            self.assertEqual(found["figures"]["verdict"], verdict)
            self.assertEqual(found["gates"][0]["verdict"], "passed")
            self.assertEqual(found["gate_figures"][0]["value_exact"], verdict)
            self.run_flopreduce("--fail-if", f"verdict == {verdict}", trace, code=1)
            self.run_flopreduce("--fail-if", "verdict == right", trace, code=2)
            self.run_flopreduce("--fail-if", "verdict < 1", trace, code=2)

    def test_in_a_comparison(self):
        trace = self.traces["deferred_weights"]
        compared = json.loads(self.run_flopreduce("compare", "--format", "json", trace,
                                                  self.traces["gpt"]))
        row = compare.by(compared, "total")["matrix_ratio"]
        self.assertIsNone(row["a"])
        self.assertEqual(row["a_at_least"], 1)
        self.assertIsNotNone(row["b"])
        (names, ) = compared["comparison"]
        self.assertEqual((names["verdict_a"], names["verdict_b"]), ("undecided", "inside"))
        text = self.run_flopreduce("compare", trace, self.traces["gpt"])
        self.assertRegex(text, r"Backward/fwd .* \(undecided\) -> .* \(inside\)")
        for condition, code in (("comparison.verdict_b == inside", 1),
                                ("comparison.verdict_a == comparison.verdict_b", 0),
                                ("comparison.verdict_a == wrong", 2)):
            self.run_flopreduce("compare", "--fail-if", condition, trace, self.traces["gpt"],
                                code=code)

    @unittest.skipUnless(importlib.util.find_spec("pandas"), "needs pandas")
    def test_through_python(self):
        staged.stage(self.folder / "package", self.build)
        sys.path.insert(0, str(self.folder / "package"))
        import flopinj
        for name, trace in self.traces.items():
            table = flopinj.reduce(trace).table("ratio")
            (row, ) = table[table["figure"] == ROW].to_dict("records")
            self.check_row(row, name)


def main():
    Verdicts.build = Path(sys.argv[1]).resolve()
    unittest.main(argv=sys.argv[:1])


if __name__ == "__main__":
    main()
