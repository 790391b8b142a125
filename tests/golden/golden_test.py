"""Recorded traces to their expected reports, byte for byte. make.sh writes both anew."""

import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
from report_tables import lost_adds_up  # noqa: E402

FLOPREDUCE, MAKE_TRACES = (Path(p).resolve() for p in sys.argv[1:3])
HERE = Path(__file__).resolve().parent
CASES = {
    "training": (["training.pb"], 0), "simulated": (["simulated.pb"], 0),
    "killed": (["killed.pb"], 3), "damaged": (["damaged.pb"], 3),
    "covered_in_part": (["covered_in_part.pb"], 0),
    "two_ranks": (["training.pb", "other_rank.pb"], 0)
}

TRACES = sorted(HERE.glob("*.pb")) + sorted((HERE.parent / "data").glob("**/*.pb"))
PEAKS = [f"--peak={precision}=10T" for precision in
         ("fp64", "fp32", "fp16", "tensor_fp16", "tensor_bf16", "memory")]


def numbers(text):
    """Every number of it, but for those in names that were cut."""
    words = (word for word in text.split() if "..." not in word)
    return (number for word in words for number in re.findall(r"\d[\d,.]*", word))


def section(text, title):
    """Its lines, without the title."""
    lines = text.splitlines()
    first = lines.index(title) + 1
    return lines[first:next((i for i in range(first, len(lines)) if not lines[i]), len(lines))]


def records(report):
    """A JSON report for a reader's eye: a line for each row, without what is 0, unknown or empty,
    without the exact texts beside FLOP, which another test compares with the numbers, and without
    rules that decided nothing."""
    del report["schema_version"]
    for table, rows in {**report, "figures": [report["figures"]]}.items():
        for row in rows:
            told = {key: value for key, value in row.items()
                    if value and not key.endswith("_exact")}
            if told and (table != "rules" or row["launches"]):
                yield f"{table} {json.dumps(told)}"


def reduce(name, *options, width=None):
    traces, code = CASES[name]
    env = {k: v for k, v in os.environ.items() if k != "COLUMNS"}
    if width is not None:
        env["COLUMNS"] = str(width)
    done = subprocess.run([FLOPREDUCE, *options, *traces], cwd=HERE, capture_output=True,
                          text=True, timeout=60, env=env)
    if done.returncode != code:
        raise AssertionError(done.stderr)
    return done.stdout


def columns():
    """Which columns each table of a report has, and their units."""
    table = subprocess.run([FLOPREDUCE, "tables", "--format", "json", "--table", "columns"],
                           capture_output=True, text=True, check=True).stdout
    for key, rows in itertools.groupby(json.loads(table)["columns"], lambda row: row["table"]):
        named = (row["column"] + (f" [{row['unit']}]" if row["unit"] else "") for row in rows)
        yield f"{key}: {', '.join(named)}\n"


def expected_files():
    """[(file, what it must hold)]: all that is compared byte for byte."""
    for name in CASES:
        yield f"{name}.txt", reduce(name, "--color", "never", "--all")
        yield f"{name}.screen.txt", reduce(name, "--color", "never")
    report = json.loads(reduce("two_ranks", "--format", "json"))
    yield "two_ranks.records", "".join(f"{line}\n" for line in records(report))
    yield "columns.txt", "".join(columns())


class Golden(unittest.TestCase):
    maxDiff = None

    def test_reports_are_as_they_were(self):
        for file, text in expected_files():
            with self.subTest(file=file):
                self.assertEqual(text, (HERE / file).read_text())
                if ".screen." in file:
                    self.assertLessEqual(len(text.splitlines()), 30)

    def test_what_formulas_cover_in_part_is_a_lower_bound(self):
        """Worked out by hand from what make_traces wrote: six products at the peak of bf16."""
        report = json.loads(reduce("covered_in_part", "--format", "json"))
        product, peak, wall = 2 * 4096**3, 989.4e12, 10e-3
        mfu = 6 * product / peak / wall
        figures = report["figures"]
        self.assertIsNone(figures["mfu"])
        self.assertAlmostEqual(figures["mfu_at_least"], mfu, places=4)
        self.assertEqual(int(figures["formula_flop_at_least_exact"]), 6 * product)
        # Attention does two products' worth of one and of two and a half halves; 8 ms of 10 idle.
        hfu = (6 + 2 + 2 * 0.5 + 2 * 1.25) * product / peak / wall
        self.assertAlmostEqual(figures["hfu_at_least"], hfu, places=4)
        steps = report["step_summary"][0]
        self.assertAlmostEqual(steps["mfu_at_least"], figures["mfu_at_least"] * wall / 9.9e-3,
                               places=4)
        lost = {row["line"]: row for row in report["lost"]}
        self.assertIn("ns_at_least", lost["model"])
        self.assertNotIn("mfu_at_most", figures)

    def test_every_section_fits_the_terminal(self):
        for name in CASES:
            # What a wider terminal shows of a text that is cut, the first screen has.
            everything = {number for file in (f"{name}.txt", f"{name}.screen.txt")
                          for number in numbers((HERE / file).read_text())}
            for width in (60, 80, 100, 120, 160):
                with self.subTest(name=name, width=width):
                    text = reduce(name, "--color", "never", "--all", width=width)
                    self.assertLessEqual(max(map(len, text.splitlines())), width)
                    # Names may be cut in the middle and columns left out; a number stands whole or
                    # not at all.
                    self.assertLessEqual(set(numbers(text)), everything)
                    titles = [line for line in (HERE / f"{name}.txt").read_text().splitlines()
                              if line and line[0] != " " and len(line) <= width]
                    for title in titles:
                        self.assertIn(title, text.splitlines())

    def test_the_first_screen_fits_and_begins_with_the_answer(self):
        answers = set()
        for trace in [*TRACES, "training.pb other_rank.pb"]:
            for options, width in itertools.product(((), PEAKS), (60, 80, 100)):
                with self.subTest(trace=trace, options=options, width=width):
                    lines = subprocess.run(
                        [FLOPREDUCE, *options, *str(trace).split()], cwd=HERE, capture_output=True,
                        text=True, timeout=60,
                        env=os.environ | {"COLUMNS": str(width)}).stdout.splitlines()
                    self.assertLessEqual(len(lines), 30)
                    self.assertLessEqual(max(map(len, lines)), width)
                    behind = next(i for i, line in enumerate(lines) if line[:10] == "  Executed")
                    self.assertLessEqual(behind, 12)
                    answers.add(", ".join(
                        name for name in ("HFU", "MFU", "Peak lost")
                        if any(line.startswith(f"  {name} ") for line in lines[:behind])))
                    for title in ("Phases", "Kernels by"):
                        self.assertTrue(any(line.startswith(title) for line in lines))
        self.assertEqual(answers, {"HFU, MFU", "HFU, MFU, Peak lost"})

    def test_where_the_peak_went_adds_up(self):
        """In every recorded trace, with peaks for what has none; or the report says why not."""
        known = 0
        for trace in TRACES:
            with self.subTest(trace=trace.name):
                done = subprocess.run([FLOPREDUCE, "--format", "json", *PEAKS, trace],
                                      capture_output=True, text=True, timeout=60)
                report = json.loads(done.stdout)
                adds_up = lost_adds_up(report)
                self.assertIn(adds_up, (True, None))
                known += adds_up is True
        self.assertGreater(known, 1)

    def test_a_table_says_what_it_has_no_room_for(self):
        wide, narrow = (section(reduce("training", "--all", width=w), "By phase") for w in (80, 62))
        self.assertEqual(wide[0].split(), "phase FLOP exact share launches GPU time".split())
        # "exact" says again what stands before it.
        self.assertEqual(narrow[0].split(), "phase FLOP share launches GPU time".split())
        self.assertEqual(narrow[-1], "  left out, too wide: exact")

    def test_a_summary_has_the_ledger_of_its_traces(self):
        def ledger(trace):
            done = subprocess.run([FLOPREDUCE, "--format", "json", *PEAKS, *trace.split()],
                                  cwd=HERE, capture_output=True, text=True, timeout=60)
            report = json.loads(done.stdout)
            return {key: report[key] for key in ("lost", "lost_phases", "lost_host",
                                                 "lost_capacity")}

        known = 0
        with tempfile.TemporaryDirectory() as folder:
            summary = f"{folder}/summary"
            for trace in [*map(str, TRACES), "training.pb other_rank.pb"]:
                subprocess.run([FLOPREDUCE, "merge", "--force", "-o", summary, *trace.split()],
                               cwd=HERE, capture_output=True, timeout=60, check=False)
                with self.subTest(trace=trace):
                    expected, found = ledger(trace), ledger(summary)
                    known += any(row["ns"] for row in expected["lost"])
                    if "cnn-streams" in trace:
                        # Kernels that were slowed by measuring ran beside others in it: with its
                        # launches added up it is not known which part of them did.
                        for one, other in zip(expected["lost"], found["lost"], strict=True):
                            self.assertAlmostEqual(one["share"], other["share"], delta=1e-4)
                        continue
                    self.assertEqual(expected, found)
        self.assertGreater(known, 1)

    def test_traces_are_what_their_source_makes(self):
        for trace in sorted(HERE.glob("*.pb")):
            with self.subTest(trace=trace.name):
                made = subprocess.run([MAKE_TRACES, trace.stem], capture_output=True, timeout=60,
                                      check=True).stdout
                self.assertEqual(made, trace.read_bytes())


if __name__ == "__main__":
    if "--write" in sys.argv:
        for file, text in expected_files():
            (HERE / file).write_text(text)
    else:
        unittest.main(argv=[sys.argv[0], "-v"])
