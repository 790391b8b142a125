"""What is measured, by whom and at what cost: multiplexed windows against replay of every launch,
ranks, budget."""

import json
import re
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import CLIENTS, injected_environment, run  # noqa: E402
from theory import Expected  # noqa: E402

LAUNCH = CLIENTS / "launch_client"
TRAINER = (harness.TRAINER, "--batch", 8)  # little work: kernels are replayed here


def work_of(report):
    """Everything a report says of work, apart from how it was measured."""
    signatures = {(s["kernel"], s["grid"], s["block"], s["flop_per_launch"], s["launches"])
                  for s in report["signatures"]}
    kernels = {(k["kernel"], k["launches"], k["flop"]) for k in report["kernels"]}
    phases = {name: (p["flop"], p["launches"]) for name, p in harness.by(report, "phases").items()}
    return report["figures"]["flop"], harness.precisions(report), phases, kernels, signatures


class MultiplexedEqualsFullReplay(harness.TestCase):
    def both(self, command):
        reports = {}
        outputs = {
            None: run(command, {**injected_environment(self.trace), "FLOPINJ_MODE": "off"}).stdout
        }
        for mode in ("multiplex", "full"):
            done = self.run_profiled(command, FLOPINJ_MODE=mode, FLOPINJ_FORCE=1)
            outputs[mode] = done.stdout
            reports[mode] = harness.reduce(self.trace)
        # Replay restores what a kernel changes.
        self.assertEqual(len(set(outputs.values())), 1, outputs)
        ledger = reports["full"]["ledger"][-1]
        self.assertEqual((ledger["measured"], ledger["extrapolated"]), (ledger["launches"], 0),
                         ledger)
        self.assertGreater(reports["multiplex"]["ledger"][-1]["extrapolated"], 0)
        self.assertEqual(work_of(reports["multiplex"]), work_of(reports["full"]))
        return reports

    def test_trainer(self):
        for model in ("mlp", "cnn"):
            with self.subTest(model=model):
                command = [*TRAINER, "--print-shapes", "--model", model, "--steps", 12]
                reports = self.both(command)
                shapes = run(command,
                             {**injected_environment(self.trace), "FLOPINJ_MODE": "off"}).stdout
                self.assertEqual(reports["full"]["figures"]["flop"],
                                 Expected(json.loads(shapes)).flop)

    def test_tensor_kernels(self):
        self.both([LAUNCH, "tensor_a_dozen"])

    def test_same_grid_another_k(self):
        self.both([LAUNCH, "same_grid"])

    def test_several_devices_and_threads(self):
        for case in ("devices", "threads_briefly"):
            with self.subTest(case=case):
                self.run_profiled([LAUNCH, case], SIMGPU_DEVICES=2, FLOPINJ_MODE="full",
                                  FLOPINJ_FORCE=1)
                report = harness.reduce(self.trace)
                self.assert_all_counted(report, report["ledger"][-1]["launches"])
                self.assertEqual(report["ledger"][-1]["measured"], report["ledger"][-1]["launches"])

    def test_full_waits_for_its_plan(self):
        """Its first launches are measured too, without being told to wait."""
        environment = injected_environment(self.trace, FLOPINJ_MODE="full")
        del environment["FLOPINJ_PLAN_WAIT_MS"]
        self.assertEqual(run([LAUNCH, "same_grid"], environment).returncode, 0)
        ledger = harness.reduce(self.trace)["ledger"][-1]
        self.assertEqual(ledger["measured"], ledger["launches"], ledger)

    def test_collectives_are_not_replayed(self):
        self.run_profiled([LAUNCH, "collective"], FLOPINJ_MODE="full")
        report = harness.reduce(self.trace)
        self.assertEqual(harness.reasons(report, "unmeasured"), {"never_measured": 5})
        kernels = harness.by(report, "kernels")
        self.assertIsNone(kernels["ncclDevKernel_AllReduce_Sum_f32_RING_LL"]["flop"])
        self.assertEqual(kernels["axpy"]["flop"], 5 * 64)


class ModulesLoadedInsideWindows(harness.TestCase):
    def test_a_window_ends_before_kernels_of_later_modules(self):
        """The module is loaded anew before each launch: 25 of axpy (128 FLOP), 25 of dot (20)."""
        self.run_profiled([LAUNCH, "reload"], SIMGPU_FAULT="lazy_modules")
        report = harness.reduce(self.trace)
        self.assert_all_counted(report, 50)
        kernels = harness.by(report, "kernels")
        self.assertEqual(kernels["axpy"]["flop"], 25 * 128)
        self.assertEqual(kernels["dot"]["flop"], 25 * 20)
        codes = harness.codes(report)
        self.assertNotIn("counters.unpatched", codes)

    def test_zero_is_no_count_of_a_kernel_whose_module_came_in_its_launch(self):
        """Of each two launches, the first loads the module: where no call was seen to give the
        kernel, nobody can have it loaded before. 50 of dot, 20 FLOP."""
        self.run_profiled([LAUNCH, "library_in_rounds"],
                          SIMGPU_FAULT="lazy_modules,hidden_handles")
        report = harness.reduce(self.trace)
        self.assert_all_counted(report, 50)
        dot, = report["signatures"]
        self.assertEqual((dot["flop_per_launch"], dot["varying"]), (20, False))
        self.assertEqual(dot["flop"], 50 * 20)
        codes = harness.codes(report)
        self.assertIn("counters.unpatched", codes)


class Ranks(harness.TestCase):
    def measures(self, **settings):
        done = self.run_profiled([LAUNCH, "same_grid"], output=self.folder / "%r.pb",
                                 FLOPINJ_FORCE=1, FLOPINJ_LOG="info", **settings)
        ranks = [v for k, v in settings.items() if not k.startswith("FLOPINJ")]
        self.trace = self.folder / f"{ranks[0] if ranks else 0}.pb"
        report = harness.reduce(self.trace)
        ledger = report["ledger"][-1]
        self.assertEqual(ledger["launches"], 60)
        self.assertIn(ledger["measured"] + ledger["extrapolated"], (0, 60))
        measured = ledger["unmeasured"] == 0
        self.assertEqual([(m["mode"], m["counters_state"] == "read") for m in report["measuring"]],
                         [("multiplex", measured)])
        self.assertEqual("reads no counters" in done.stderr, not measured, done.stderr)
        return measured

    def test_only_rank_0_measures(self):
        self.assertTrue(self.measures())
        for variable in ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"):
            with self.subTest(variable=variable):
                self.assertTrue(self.measures(**{variable: 0}))
                self.assertFalse(self.measures(**{variable: 3}))

    def test_other_ranks_if_they_are_named(self):
        self.assertTrue(self.measures(RANK=3, FLOPINJ_MEASURE_RANKS="1,3-4"))
        self.assertFalse(self.measures(RANK=0, FLOPINJ_MEASURE_RANKS="1,3-4"))
        self.assertTrue(self.measures(RANK=9, FLOPINJ_MEASURE_RANKS="all"))
        self.assertFalse(self.measures(FLOPINJ_MEASURE_RANKS="none"))

    def test_one_rank_measures_for_all(self):
        traces = []
        for rank in (0, 2):
            traces.append(self.folder / f"{rank}.pb")
            self.run_profiled([*TRAINER, "--model", "mlp", "--steps", 12],
                              output=self.folder / "%r.pb", RANK=rank)
        alone, both = harness.reduce(traces[0]), harness.reduce(*traces)
        self.assertEqual(both["ledger"][-1]["unmeasured"], 0)
        self.assertEqual(int(both["figures"]["flop"]), 2 * int(alone["figures"]["flop"]))
        self.assertEqual([m["counters_state"] for m in both["measuring"]], ["read", "other_ranks"])
        self.assertEqual(both["odd_ranks"], [{"rank": 1, "problem": "missing"}])
        self.assertEqual([p["rank"] for p in both["ranks"]], [0, 2])

    def test_summaries_of_ranks_are_joined_in_any_order(self):
        """Operators' sequence numbers too; the report is that of the traces."""
        traces, parts = [], []
        for rank, level in ((0, "launches"), (1, "launches"), (2, "tally")):
            traces.append(self.folder / f"{rank}.pb")
            self.run_profiled(
                [*TRAINER, "--steps", 12, "--ranges", "pytorch", "--mode", "autograd-thread"],
                output=self.folder / "%r.pb", RANK=rank, FLOPINJ_LEVEL=level)
            parts.append(self.merge(f"{rank}.sum", traces[-1]))
        whole = self.merge("whole.sum", *traces)
        for first, second, third in ((0, 1, 2), (2, 0, 1), (1, 2, 0)):
            joined = self.merge("joined.sum", parts[third],
                                self.merge("pair.sum", parts[first], parts[second]))
            self.assertEqual(joined.read_bytes(), whole.read_bytes())
        report = harness.reduce(*traces)
        self.assertGreater(sum(row["launches"] for row in report["layer_passes"]
                               if row["pass"] == "backward"), 0)
        summary = harness.reduce(whole)
        for of in (report, summary):  # a summary has neither moments nor names of files
            for key in ["largest_gaps", "flop_over_time", *filter(re.compile("lost").match, of)]:
                del of[key]
            for process in of["processes"]:
                del process["files"]
        self.assertEqual(summary, report)

    def merge(self, name, *inputs):
        out = self.folder / name
        done = harness.run([harness.FLOPREDUCE, "merge", "--force", "-o", out, *inputs], {})
        self.assertEqual(done.returncode, 0, done.stderr)
        return out


class Budget(harness.TestCase):
    def test_coverage_is_told_as_it_grows(self):
        done = self.run_profiled([*TRAINER, "--model", "mlp", "--steps", 20], FLOPINJ_LOG="info")
        self.assertIn("counts are complete for 100.0 % of GPU time", done.stderr)
        report = harness.reduce(self.trace)
        last, = report["measuring"]
        self.assertEqual(last["launches"], report["figures"]["launches"])
        self.assertEqual(last["covered_launches"], last["launches"])
        self.assertEqual(last["covered_gpu_time_ns"], last["timed_gpu_time_ns"])
        growth = [point["launches"] for point in report["coverage_growth"]]
        self.assertTrue(growth)
        self.assertEqual(growth, sorted(set(growth)))
        self.assertIsNone(last["stopped"])

    def test_a_budget_of_nothing_leaves_kernels_unmeasured(self):
        """A millionth of a per cent: 2 us at the start, and less than the first window costs."""
        self.run_profiled([*TRAINER, "--model", "mlp", "--steps", 20], FLOPINJ_BUDGET="0.000001",
                          SIMGPU_FAULT="no_clock")
        report = harness.reduce(self.trace)
        ledger = report["ledger"][-1]
        self.assert_balanced(report)
        self.assertAlmostEqual(report["measuring"][0]["budget_share"] / 1e-8, 1)
        self.assertEqual(report["measuring"][0]["covered_launches"], 0)
        self.assertEqual(ledger["unmeasured"], ledger["launches"])
        self.run_profiled([*TRAINER, "--model", "mlp", "--steps", 20], FLOPINJ_BUDGET="none",
                          FLOPINJ_FORCE=1)
        report = harness.reduce(self.trace)
        self.assertEqual(report["ledger"][-1]["unmeasured"], 0)
        self.assertIsNone(report["measuring"][0]["budget_share"])

    def measured_until_covered(self, launches):
        """A kernel that varies would be measured for good. Its program rests 20 ms every 50
        launches. Whether measuring stopped, and how long the program ran, in seconds."""
        began = time.monotonic()
        done = self.run_profiled([CLIENTS / "varying_client", "uniform", launches, 1, 20],
                                 FLOPINJ_UNTIL_COVERED=90, FLOPINJ_LOG="info",
                                 FLOPINJ_LEVEL="tally", FLOPINJ_FORCE=1,
                                 SIMGPU_FAULT="no_clock")
        elapsed = time.monotonic() - began
        report = harness.reduce(self.trace)
        self.assert_all_counted(report, launches)
        stopped = "measuring has stopped: covered: 100.00 %" in done.stderr
        self.assertEqual(report["measuring"][0]["stopped"] is not None, stopped)
        return stopped, elapsed

    def test_measuring_ends_where_it_was_asked_to(self):
        """After 5 s of complete counts: a run of at least 8 s ends it, a shorter one than 5 s does
        not."""
        stopped, _ = self.measured_until_covered(20000)
        self.assertTrue(stopped)
        stopped, elapsed = self.measured_until_covered(100)
        self.assertFalse(stopped and elapsed < 5)


if __name__ == "__main__":
    unittest.main(verbosity=2)
