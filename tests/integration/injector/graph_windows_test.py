"""Kernels that run in graphs alone, measured there. dot(k) is 2k FLOP; whatever CUPTI's ranges of a graph launch are,
a count is right or it is not there."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from theory import Expected  # noqa: E402

EAGER = [3, 5, 7, 9]  # one launch each: too few to be measured with both groups
OFTEN = 12


class GraphWindows(harness.TestCase):
    def report_of(self, case, **settings):
        self.run_profiled([harness.CLIENTS / "graph_client", case],
                          **{"FLOPINJ_MEASURE_GRAPHS": 1, "FLOPINJ_FORCE": 1, **settings})
        report = harness.reduce(self.trace)
        self.assert_balanced(report)
        self.codes = [d["code"] for d in report["traces"][0]["diagnostics"]]
        # Launches of each dot(k) that has a count.
        self.counted = {int(s["flop_per_launch"]) // 2: s["launches"] for s in report["signatures"]
                        if s["kernel"] == "dot" and s["flop_per_launch"]}
        return report

    def assert_graphs_measured(self, case, launches, **settings):
        """Launches by k, all with their count, read in graphs and nowhere else."""
        report = self.report_of(case, **settings)
        self.assertEqual({k: n for k, n in self.counted.items() if k not in EAGER}, launches)
        ledger = report["ledger"]
        self.assertEqual(ledger["counted_by_graphs"], sum(launches.values()), ledger)
        self.assertGreater(ledger["measured_in_graphs"], 0)
        self.assertEqual(ledger["measured_in_graphs"] + ledger["extrapolated_in_graphs"], sum(launches.values()))
        self.assertEqual(self.codes, [])
        return report

    def assert_left_alone(self, case, graph_launches, **settings):
        """Nothing that ran in graphs alone has a count, and no window was around a graph."""
        report = self.report_of(case, **settings)
        self.assertEqual({k: n for k, n in self.counted.items() if k not in EAGER}, {})
        self.assertIn({"reason": "graph_only", "launches": graph_launches}, report["ledger"]["reasons"]["unmeasured"])
        self.assertNotIn("measured_in_graphs", report["ledger"])
        return report

    def test_a_range_for_each_kernel(self):
        for mode in ("multiplex", "full"):
            report = self.assert_graphs_measured("chain", {11: 2 * OFTEN, 13: OFTEN}, FLOPINJ_MODE=mode)
            for s in report["signatures"]:
                if s["flop_per_launch"] in ("22", "26"):
                    self.assertEqual(s["graph_samples"], s["samples"])
                    self.assertFalse(s["varying"])

    def test_a_range_for_each_launch(self):
        """The sum, shared out among kernels that are alike."""
        for case, each in (("alike", 4), ("single", 1), ("alike_in_child", 2)):
            self.assert_graphs_measured(case, {11: each * OFTEN}, SIMGPU_GRAPH_RANGES="launch")

    def test_one_range_of_kernels_that_differ_is_not_shared_out(self):
        self.assert_left_alone("chain", 3 * OFTEN, SIMGPU_GRAPH_RANGES="launch")
        self.assertEqual(set(self.codes), {"counters.graph_ranges"})

    def test_ranges_of_branches_are_not_guessed(self):
        self.assert_left_alone("branches", 2 * OFTEN)
        self.assertEqual(set(self.codes), {"counters.graph_ranges"})

    def test_branches_of_kernels_that_are_alike_need_no_order(self):
        self.assert_graphs_measured("alike_in_child", {11: 2 * OFTEN})

    def test_a_useless_window_is_tried_twice_and_no_more(self):
        report = self.report_of("branches")
        clean = self.report_of("branches", FLOPINJ_MEASURE_GRAPHS=0)
        windows = [r["traces"][0]["recorder"]["windows_discarded"] for r in (report, clean)]
        self.assertEqual(windows, [2, 0])

    def test_lost_ranges_are_seen(self):
        """Every second range is missing: 11, 13, 11 becomes two ranges or one."""
        report = self.report_of("chain", SIMGPU_FAULT="drop_ranges=2")
        self.assertNotIn("measured_in_graphs", report["ledger"])
        self.assertIn("counters.graph_ranges", self.codes)

    def test_graphs_that_may_hang_are_never_in_a_window(self):
        self.assert_left_alone("with_collective", OFTEN)
        self.assertEqual(self.codes, [])
        self.assert_left_alone("with_host", OFTEN)
        self.assertEqual(self.codes, [])

    def test_refusal_leaves_eager_measuring_alone(self):
        report = self.report_of("then_eager", SIMGPU_FAULT="graph_windows_fail")
        self.assertEqual(self.counted.get(17), OFTEN)
        self.assertNotIn("measured_in_graphs", report["ledger"])
        self.assertEqual(len([c for c in self.codes if c.startswith("cupti.") or c.startswith("counters.")]), 1,
                         self.codes)
        self.assertIn({"reason": "graph_only", "launches": 3 * OFTEN}, report["ledger"]["reasons"]["unmeasured"])

    def test_off_unless_asked_for(self):
        self.assert_left_alone("chain", 3 * OFTEN, FLOPINJ_MEASURE_GRAPHS=0)
        self.assertEqual(self.codes, [])

    def test_a_graph_that_changes_is_measured_as_it_is(self):
        self.assert_graphs_measured("changing", {11: OFTEN, 13: 3 * OFTEN, 15: OFTEN})

    def test_threads_that_launch_graphs_and_kernels_at_once(self):
        report = self.report_of("threads")
        launches = 10 * OFTEN
        expected = {k + t: launches for k in (20, 30) for t in (1, 2, 3, 4)}
        self.assertEqual({k: n for k, n in self.counted.items() if k > 9}, expected)
        self.assertEqual(self.counted[5], 1 + 4 * launches)
        self.assertEqual(report["ledger"]["counted_by_graphs"], 8 * launches)

    def test_eager_launches_come_first(self):
        """What they have measured is not measured in graphs again."""
        report = self.report_of("by_hand", FLOPINJ_MODE="full")
        self.assertEqual(self.counted, {3: 3, 5: 3, 7: 1, 9: 1})
        self.assertNotIn("measured_in_graphs", report["ledger"])

    def test_a_trainer_without_an_eager_step(self):
        for level in ("launches", "tally"):
            done = self.run_profiled([harness.TRAINER, "--print-shapes", "--model", "cnn", "--mode", "graph", "--warm-up", 0,
                                      "--steps", 12, "--batch", 8],
                                     FLOPINJ_MEASURE_GRAPHS=1, FLOPINJ_LEVEL=level, FLOPINJ_FORCE=1)
            expected, report = Expected(json.loads(done.stdout)), harness.reduce(self.trace)
            self.assert_all_counted(report, expected.launches)
            self.assertEqual(harness.precisions(report), {"fp32": expected.flop})
            self.assertEqual({k["name"]: int(k["flop"]) for k in report["kernels"]}, dict(expected.kernel_flop))
            self.assertEqual(report["ledger"]["counted_by_graphs"], expected.launches)
            self.assertEqual({name: int(phase["flop"]) for name, phase in report["phases"].items()},
                             dict(expected.phase_flop))


if __name__ == "__main__":
    harness.main()
