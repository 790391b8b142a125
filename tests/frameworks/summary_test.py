#!/usr/bin/env python3
"""A summary says what its trace says: every table, figure by figure, of the recorded streams and of
all traces of the repository. One list has what a summary cannot know, and why.

summary_test.py BUILD [STREAM|TRACE.pb...]"""

import json
import re
import subprocess
import sys
import tempfile
import unittest
from dataclasses import dataclass
from pathlib import Path

sys.dont_write_bytecode = True

import as_gpu  # noqa: E402
import compare  # noqa: E402

HERE = Path(__file__).resolve().parent
TRACES = [path for folder in ("golden", "data") for path in sorted(
    (HERE.parent / folder).glob("**/*.pb"))]
# With these every table has rows that can have some.
PEAKS = [f"--peak={precision}=10T" for precision in ("fp32", "fp64", "memory")]
MARKS = ("estimated", "at_least", "at_most", "exact", "why")
CLOSE = 0.001  # of figures that are marked as estimates


def figures(row):
    """By column: what the row says, with its marks. One without a value is what it is not known
    for."""
    columns = {}
    for key, value in row.items():
        name, _, mark = key.rpartition("_") if key.endswith(MARKS) else (key, "", "")
        for two in ("at_least", "at_most"):
            if key.endswith("_" + two):
                name, mark = key.removesuffix("_" + two), two
        columns.setdefault(name if name in row else key, {})[mark if name in row else ""] = value
    return columns


def number(figure):
    return next((figure[mark] for mark in ("", "at_least", "at_most")
                 if isinstance(figure.get(mark), (int, float))), None)


# How a figure of a summary, the second one, may differ from its trace's.
def left_out(_, of_summary):
    """Of a number of rows."""
    return number(of_summary) == 0


def other(*_):
    return True


def marked(of_trace, of_summary):
    """Close to it, and marked; or both are bounds."""
    a, b = number(of_trace), number(of_summary)
    if None in (a, b):
        return False
    if of_trace.get("") is None and of_summary.get("") is None:
        return True
    return bool(of_summary.get("estimated")) and abs(a - b) <= CLOSE * max(abs(a), abs(b), 1)


def in_words(of_trace, of_summary):
    """A figure that is marked, or damage of a file, which has its process's name."""
    a, b = of_trace[""], of_summary[""]
    if a.startswith("PARTIAL: "):
        a, b = ([part.rpartition(": ")[2] for part in text.split("; ")] for text in (a, b))
        return a == b
    a, b = (re.sub(r"\.\d+", "", text.replace("~ ", "")) for text in (a, b))
    return a == b


@dataclass(frozen=True)
class Apart:
    """A figure that a summary has not, or has in another way."""
    why: str
    table: str  # regular expressions
    column: str
    how: object


# Of work that kernels did at once, or faster than their roofs allow, beside others.
SUMS = "a summary has sums over instants in which the same kernels ran, not each launch"
APART = (
    Apart("files are named where they are read", "processes|damage", "files?", other),
    Apart("a summary has no launch by itself, nor when it ran", "flop_over_time", "rows",
          left_out),
    Apart(SUMS, "lost", "ns|share|left|step_ns", marked),
    Apart(SUMS, "lost_phases", "ns", marked),
    Apart("as in the tables", "screen", "text", in_words),
)


def rows_of(table):
    return table if isinstance(table, list) else [table]


def differences(trace, summary):
    """(table, column, figure of the trace, figure of the summary) of all that differ."""
    for name in sorted(trace.keys() | summary.keys()):
        a, b = trace.get(name), summary.get(name)
        if a == b:
            continue
        if not isinstance(a, (list, dict)) or not isinstance(b, (list, dict)):
            yield name, "", {"": a}, {"": b}
            continue
        a, b = rows_of(a), rows_of(b)
        if len(a) != len(b):
            yield name, "rows", {"": len(a)}, {"": len(b)}
            continue
        for one, two in zip(map(figures, a), map(figures, b)):
            for column in sorted(one.keys() | two.keys()):
                if one.get(column) != two.get(column):
                    yield name, column, one.get(column, {}), two.get(column, {})


class Summaries(unittest.TestCase):
    build = None
    inputs = []

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="flopinj-summaries-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)

    def run_flopreduce(self, *arguments):
        """What it prints; damaged traces are read, too."""
        done = subprocess.run([self.build / "bin/flopreduce", *map(str, arguments)],
                              capture_output=True, check=False, timeout=60)
        self.assertIn(done.returncode, (0, 3), done.stderr.decode())
        return done.stdout

    def report(self, path):
        return json.loads(self.run_flopreduce("--format", "json", *PEAKS, path))

    def traces(self):
        for name in self.inputs:
            if name.endswith(".pb"):
                yield Path(name).name, Path(name)
                continue
            trace = self.folder / "trace.pb"
            compare.write_trace(self.build, as_gpu.convert(HERE / f"streams/{name}.jsonl.xz"),
                                trace)
            yield name, trace

    def test_a_summary_says_what_its_trace_says(self):
        summary = self.folder / "summary"
        used = set()
        for name, trace in self.traces():
            self.run_flopreduce("merge", "--force", "-o", summary, trace)
            with self.subTest(trace=name):
                wrong = []
                for table, column, a, b in differences(self.report(trace), self.report(summary)):
                    of_it = [apart for apart in APART if re.fullmatch(apart.table, table) and
                             re.fullmatch(apart.column, column) and apart.how(a, b)]
                    used.update(of_it)
                    if not of_it:
                        wrong.append(f"{table}.{column}: {a} -> {b}")
                if wrong:
                    self.fail("\n".join(wrong))
        if self.inputs == default_inputs():
            self.assertEqual([apart for apart in APART if apart not in used], [],
                             "no summary differs in this any more")


def default_inputs():
    return [*map(str, TRACES), *sorted(path.name.split(".")[0]
                                       for path in (HERE / "streams").glob("*.jsonl.xz"))]


if __name__ == "__main__":
    Summaries.build = Path(sys.argv[1]).resolve()
    Summaries.inputs = sys.argv[2:] or default_inputs()
    unittest.main(argv=sys.argv[:1], verbosity=1)
