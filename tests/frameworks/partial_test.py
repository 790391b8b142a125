#!/usr/bin/env python3
"""Streams in which only a part of the steps has names. What rests on names is then of that part: as
in a report of these steps by themselves, and it says so; the model's share of the run is theirs.

partial_test.py BUILD [STREAM...]"""

import re
import subprocess
import sys

sys.dont_write_bytecode = True
import compare  # noqa: E402
import recorded  # noqa: E402

NAMES = ["gpt", "gpt-checkpoint", "cnn", "lora", "hf_llama_autocast", "annotated_self_taught"]
WITHOUT = 4  # times as many steps without names
MARK, UNNAMED_MARK = "flopinj step", "flopinj step without names"


def definitions(lines):
    return [line for line in lines if line.split("\t", 1)[0] in ("device", "thread", "kernel")]


def launches(lines):
    return [line for line in lines if line.startswith("run\t")]


def without_names(lines):
    """Of a step of flopinj.torch's, which tells passes without gradients in all of them."""
    kept, open_ranges = [], {}
    for line in lines:
        word, *rest = line.split("\t")
        stack = open_ranges.setdefault(rest[0], [])
        if word == "push":
            stack.append(rest[2] == "evaluation")
        if word == "run" or word == "push" and stack[-1] or word == "pop" and stack.pop():
            kept.append(line)
    return kept


def calls(lines):
    defined = set(definitions(lines))
    return [line for line in lines if line not in defined]


class Partial(recorded.Streams):

    def report(self, lines, *options):
        return super().report(lines, *recorded.PEAKS, *options)

    def reports(self, name, marked):
        """Of the steps with names by themselves, and of all: a half of the others before them."""
        lines = self.lines_of(name)
        half = WITHOUT // 2
        others = (without_names if marked else launches)(lines)
        parts = [others] * half + [calls(lines)] + [others] * half
        if marked:
            parts = [[f"start\t{n}\t-\t{MARK if n == half else UNNAMED_MARK}", *part, f"end\t{n}"]
                     for n, part in enumerate(parts)]
        return (self.report(lines),
                self.report(definitions(lines) + [line for part in parts for line in part]))

    def assertSummaryOf(self, part):
        """Of the last report's trace."""
        summary = self.trace.with_suffix(".sum")
        subprocess.run([self.build / "bin/flopreduce", "merge", "--force", "-o", summary,
                        self.trace], check=True, capture_output=True, timeout=60)
        figures = compare.report(self.build, summary)["figures"]
        for figure in ("flop", "mfu", "hfu", "matrix_ratio"):
            self.assertEqual(*(compare.figure(of, figure) for of in (figures, part["figures"])))
        self.assertEqual(*(of.get("mfu_estimated") for of in (figures, part["figures"])))

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
        for name in self.streams or NAMES:
            with self.subTest(stream=name):
                whole, part = self.reports(name, marked=True)
                self.assertSummaryOf(part)
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

    def test_evaluation_in_steps_without_names_is_not_scaled(self):
        """It counts for HFU, and the model's share of the rest is that of the step with names; also
        where that step has an evaluation of its own."""
        for name in self.streams or NAMES:
            for own in (0, 1):
                with self.subTest(stream=name, own=own):
                    lines = self.lines_of(name)
                    evaluation = ["push\t1\t-\tevaluation",
                                  *(re.sub(r"^run\t\d+", "run\t1", line)
                                    for line in launches(lines)), "pop\t1\t-"]
                    whole = self.report(lines)
                    parts = [calls(lines) + own * evaluation,
                             without_names(lines) + evaluation * 3, without_names(lines)]
                    found = self.report(definitions(lines) + [
                        line for n, part in enumerate(parts)
                        for line in [f"start\t{n}\t-\t{UNNAMED_MARK if n else MARK}", *part,
                                     f"end\t{n}"]])
                    share = [compare.figure(of["figures"], "mfu") /
                             compare.figure(of["figures"], "hfu") for of in (whole, found)]
                    self.assertAlmostEqual(share[1], share[0] * 3 / (6 + own), places=9)

    def test_of_steps_of_the_program_s_own(self):
        """By ranges of the process, as own steps are, or of the main thread, which autograd's are
        not inside of; numbered, or all of one name."""
        for name in self.streams or NAMES:
            for begin, end in (("start\t{n}\t-\tstep {n}", "end\t{n}"),
                               ("push\t1\t-\ttrain_step {n}", "pop\t1\t-"),
                               ("push\t1\t-\tstep", "pop\t1\t-")):
                with self.subTest(stream=name, begin=begin):
                    lines = self.lines_of(name)
                    bodies = [launches(lines), calls(lines), *[launches(lines)] * (WITHOUT - 1)]
                    steps = [[begin.format(n=n), "step\t1", *body, "step\t0", end.format(n=n)]
                             for n, body in enumerate(bodies)]
                    whole = self.report(definitions(lines) + steps[1])
                    part = self.report(definitions(lines) + [line for step in steps
                                                             for line in step])
                    self.assertSummaryOf(part)
                    flop = self.assertOfThePart(whole, part)
                    self.assertEqual(flop.pop("unnamed"), WITHOUT * whole["figures"]["flop"])
                    self.assertEqual(flop, {row["phase"]: row["flop"] for row in whole["phases"]})
                    mfu, hfu = ([compare.figure(of["figures"], figure) for of in (whole, part)]
                                for figure in ("mfu", "hfu"))
                    self.assertAlmostEqual(mfu[1] / hfu[1], mfu[0] / hfu[0], places=12)
                    self.assertTrue(part["figures"].get("mfu_estimated") or
                                    "mfu_at_least" in whole["figures"])
                    formula = compare.by(part, "utilization", "name")["formula"]
                    self.assertIn(f"of 1 of {1 + WITHOUT} steps", formula["basis"])

    def test_kernels_that_are_tried_in_the_first_step_are_no_reason_for_alarm(self):
        """Each of the forward pass runs three times there."""
        for name in self.streams or NAMES:
            with self.subTest(stream=name):
                lines = self.lines_of(name)
                whole = self.report(lines)
                tried = [again for line in calls(lines)
                         for again in [line] * (3 if line.startswith("run\t1\t") else 1)]
                bodies = [[re.sub(r", seq = (\d+)", lambda seq: f", seq = {int(seq[1]) + 1000 * n}",
                                  line) for line in body]
                          for n, body in enumerate([tried, calls(lines), calls(lines)])]
                made = definitions(lines) + [
                    line for body in bodies
                    for line in ("push\t1\t-\tstep", "step\t1", *body, "step\t0", "pop\t1\t-")]
                verdict = compare.by(self.report(made), "ratio")["matrix work only"]
                self.assertNotEqual(verdict["verdict"], "outside")
                if verdict["verdict"]:
                    self.assertIn("--skip-steps 1", verdict["note"])
                later = self.report(made, "--skip-steps", "1")
                self.assertEqual(*([(row["figure"], row["value"], row["verdict"])
                                    for row in of["ratio"]] for of in (whole, later)))
                self.assertEqual(later["figures"]["flop"], 2 * whole["figures"]["flop"])

    def test_of_others(self):
        for name in self.streams or NAMES:
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
    recorded.main(Partial)
