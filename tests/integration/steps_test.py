"""Figures per training step: the trainer opens a range around each step, and what a step launches
follows from the shapes of its layers."""

import json
import unittest

import harness
from theory import Expected, step_launches

STEPS = 12
ENDS = ("min", "mean", "median", "max")


class TrainingSteps(harness.TestCase):
    def train(self, *arguments, model="mlp", **settings):
        done = self.run_profiled([harness.TRAINER, "--print-shapes", "--batch", 8, "--model", model,
                                  "--steps", STEPS, *arguments], FLOPINJ_FORCE=1, **settings)
        return json.loads(done.stdout)

    @staticmethod
    def of_a_step(shapes):
        launches = step_launches(shapes)
        return sum(flop for _, _, _, flop in launches), len(launches)

    @staticmethod
    def wall(report):
        return harness.by(report, "steps")["wall time"]

    def asked(self, of):
        """The one column of an SQL query."""
        done = harness.run([harness.FLOPREDUCE, "query", "--format", "json",
                            f"SELECT {of}", self.trace], harness.clean_environment(), check=True)
        return [value for row in json.loads(done.stdout) for value in row.values()]

    def check(self, shapes, report):
        flop, launches = self.of_a_step(shapes)
        steps, = report["step_summary"]
        self.assertEqual(steps["count"], STEPS * shapes["workers"])
        self.assertEqual(steps["processes"], 1)
        self.assertEqual(steps["range"], "step")
        self.assertEqual(steps["flop_mean"], flop)
        self.assertIsNone(steps["missing"])
        return flop, launches

    def test_every_step_has_the_flop_and_launches_of_theory(self):
        for model in ("mlp", "cnn"):
            for mode in ("plain", "autograd-thread", "graph", "streams"):
                with self.subTest(model=model, mode=mode):
                    shapes = self.train("--mode", mode, model=model)
                    report = harness.reduce(self.trace)
                    flop, launches = self.check(shapes, report)
                    steps, = report["step_summary"]
                    self.assertEqual(steps["flop_each_exact"], str(flop))
                    self.assertEqual([steps[f"launches_{end}"] for end in ENDS], [launches] * 4)
                    self.assertEqual(self.asked("launches_median_mark FROM step_summary"), [""])
                    wall = self.wall(report)
                    self.assertLessEqual(0, wall["min_ns"])
                    self.assertLessEqual(wall["min_ns"], wall["median_ns"])
                    self.assertLessEqual(wall["median_ns"], wall["max_ns"])
                    if mode != "streams":  # where they are at once
                        self.assertLessEqual(wall["mean_ns"] * STEPS,
                                             report["device_time"][0]["wall_ns"])

    def test_kernel_time_of_the_steps_is_that_of_the_trace(self):
        self.train("--mode", "autograd-thread", FLOPINJ_MODE="timing")
        report = harness.reduce(self.trace)
        self.assertIsNone(report["step_summary"][0]["flop_mean"])  # nothing was measured
        kernels = harness.by(report, "steps")["GPU time, sum of kernels"]
        self.assertEqual(round(kernels["mean_ns"] * STEPS), report["figures"]["gpu_time_ns"])

    def test_a_summary_and_sums_say_the_same_of_steps(self):
        shapes = self.train("--mode", "autograd-thread")
        single = harness.reduce(self.trace)
        marks = "median_ns_mark FROM steps WHERE what LIKE 'wall%'"
        expected = self.asked(marks)
        summary = self.folder / "summary.pb"
        for _ in range(2):  # a summary of a summary is itself
            harness.run([harness.FLOPREDUCE, "merge", "--force", "-o", summary, self.trace],
                        harness.clean_environment(), check=True)
            report = harness.reduce(summary)
            for key in ("flop_mean", "count"):
                self.assertEqual(report["step_summary"][0][key], single["step_summary"][0][key])
            self.assertEqual(report["step_summary"][0]["count"], STEPS)
            for end in ("min_ns", "median_ns", "mean_ns", "max_ns"):
                self.assertEqual(self.wall(report)[end], self.wall(single)[end])
            self.trace = summary
            self.assertEqual(self.asked(marks), expected)
            summary = self.folder / "again.pb"
        self.train("--mode", "autograd-thread", FLOPINJ_LEVEL="tally")
        self.check(shapes, harness.reduce(self.trace))

    def test_steps_that_are_skipped(self):
        shapes = self.train()
        flop, _ = self.of_a_step(shapes)
        steps, = harness.reduce(self.trace, options=("--skip-steps", "5"))["step_summary"]
        self.assertEqual((steps["count"], steps["skipped"]), (STEPS - 5, 5))
        self.assertEqual(steps["flop_each_exact"], str(flop))
        report = harness.reduce(self.trace, options=("--skip-steps", STEPS))
        steps, = report["step_summary"]
        self.assertEqual((steps["count"], steps["skipped"]), (0, STEPS))
        self.assertIn("leaves no step", steps["missing"])
        self.assertEqual(report["steps"], [])

    def test_the_range_that_is_named_is_the_step(self):
        self.train(FLOPINJ_STEP_RANGE="forward")
        report = harness.reduce(self.trace)
        steps, = report["step_summary"]
        self.assertEqual(steps["range"], "forward")
        self.assertEqual(steps["flop_mean"] * STEPS,
                         int(harness.by(report, "phases")["forward"]["flop"]))
        self.train(FLOPINJ_STEP_RANGE="none")
        self.assertEqual(harness.reduce(self.trace)["step_summary"][0]["count"], 0)

    def test_what_holds_little_of_the_work_is_no_step(self):
        """An optimizer's step has such a name too."""
        self.train(FLOPINJ_STEP_RANGE="optimizer", model="cnn")
        report = harness.reduce(self.trace)
        self.assertLess(harness.by(report, "phases")["optimizer"]["flop_share"], 0.1)
        self.assertEqual(report["steps"], [])
        self.assertIn("--step-range", report["step_summary"][0]["missing"])

    def test_tokens_and_6nd(self):
        self.train()
        parameters, tokens = 1000, 50
        report = harness.reduce(self.trace, options=("--tokens-per-step", tokens, "--parameters",
                                                     parameters, "--skip-steps", 2))
        methods = harness.by(report, "utilization", "name")
        self.assertEqual(methods["formula"]["flop"], 6 * parameters * tokens * (STEPS - 2))
        steps, = report["step_summary"]
        least = self.wall(report)["mean_ns"] * steps["count"]  # steps do not overlap
        self.assertLessEqual(steps["tokens_per_s"], tokens * (STEPS - 2) / least * 1e9 * (1 + 1e-9))
        self.assertGreater(steps["tokens_per_s"], 0)

    def test_a_gate_on_the_step_time(self):
        self.train()
        for condition, code in (("step_time > 3600", 0), ("step_time > 0", 1)):
            done = harness.run([harness.FLOPREDUCE, "--fail-if", condition, self.trace],
                               harness.clean_environment())
            self.assertEqual(done.returncode, code, done.stderr)

    def test_the_first_screen_has_a_line(self):
        self.train()
        done = harness.run([harness.FLOPREDUCE, self.trace], harness.clean_environment())
        line, = (line for line in done.stdout.splitlines() if line.startswith("  Per step"))
        self.assertIn(f"median of {STEPS} (", line)
        self.assertIn("FLOP", line)


if __name__ == "__main__":
    unittest.main(verbosity=2)
