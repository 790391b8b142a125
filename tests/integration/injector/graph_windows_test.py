"""Kernels that run in graphs alone, measured there (--graphs). Each kernel is dot(k), 2k FLOP:
whatever CUPTI's ranges of a graph are, a count is right or it is not there."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import harness  # noqa: E402

OFTEN = 30
# A kernel that runs once outside lacks groups.
ONCE = {5, 7, 9}


class GraphWindows(harness.TestCase):
    def report_of(self, case, graphs="checked", **settings):
        faults = ",".join(filter(None, (settings.pop("SIMGPU_FAULT", ""), "no_clock")))
        self.run_profiled([harness.CLIENTS / "graph_client", case],
                          **{"FLOPINJ_GRAPHS": graphs, "FLOPINJ_FORCE": 1, "SIMGPU_FAULT": faults,
                             **settings})
        report = harness.reduce(self.trace)
        self.assert_balanced(report)
        self.codes = set(harness.codes(report))
        # Launches of each dot(k) that has a count, by k.
        self.counted = {int(s["flop_per_launch"]) // 2: s["launches"]
                        for s in report["signatures"]
                        if s["kernel"] == "dot" and s["flop_per_launch"] not in (None, "", "0")}
        return report

    def assert_measured(self, case, launches, **settings):
        report = self.report_of(case, **settings)
        self.assertEqual({k: n for k, n in self.counted.items() if k > 9}, launches)
        self.assertEqual(self.counted[3], 1 + 2 * OFTEN)
        self.assertEqual(self.codes, set())
        return report

    def assert_left_alone(self, case, codes=(), **settings):
        report = self.report_of(case, **settings)
        self.assertEqual({k for k in self.counted if k > 9}, set())
        self.assertIn("graph_only", harness.reasons(report, "unmeasured"))
        self.assertEqual(self.codes, set(codes))
        return report

    def test_a_range_for_each_kernel(self):
        report = self.assert_measured("chain", {11: OFTEN, 13: OFTEN})
        eleven, = (s for s in report["signatures"] if int(s["flop_per_launch"] or 0) == 2 * 11)
        self.assertEqual(eleven["graph_samples"], eleven["samples"])
        self.assertFalse(eleven["varying"])

    def test_the_order_is_of_the_edges(self):
        self.assert_measured("backwards", {11: OFTEN, 13: OFTEN})

    def test_a_graph_that_changes_is_measured_as_it_is(self):
        report = self.report_of("exchanged")
        self.assertEqual({k: n for k, n in self.counted.items() if k > 9}, {11: OFTEN, 13: OFTEN})
        self.assertEqual(self.codes, set())
        self.assertEqual(self.counted[3], 1 + 3 * OFTEN, report["signatures"])

    def test_off_unless_asked_for(self):
        self.assert_left_alone("chain", graphs="off")
        self.assertEqual(self.counted[3], 1 + 2 * OFTEN)

    def test_nothing_to_compare_with(self):
        self.assert_left_alone("unseen")
        self.report_of("unseen", graphs="on")
        self.assertEqual({k: n for k, n in self.counted.items() if k > 9}, {11: OFTEN, 13: OFTEN})
        self.assertEqual(self.codes, {"counters.graphs_unchecked"})

    def test_branches_have_no_order(self):
        self.assert_left_alone("branches", graphs="on")

    def test_what_may_wait_is_in_no_window(self):
        self.assert_left_alone("with_host", graphs="on")

    def test_conditional_nodes_are_in_no_window(self):
        for version in ("12.8", "13.0", "13.3"):
            with self.subTest(version):
                self.assert_left_alone("with_condition", {"graph.conditional"}, graphs="on",
                                       SIMGPU_CUPTI_VERSION=version)

    def test_ranges_that_are_not_the_kernels(self):
        """One range for a launch, none that counts: no count is made of it, at most three windows
        of each group are tried, and kernels outside have theirs."""
        for fault in ("graph_is_one_range", "graphs_read_0"):
            for graphs in ("checked", "on"):
                with self.subTest(fault, graphs=graphs):
                    report = self.assert_left_alone("chain", 
                                                    {"counters.graphs", "counters.graph_window"},
                                                    graphs=graphs, SIMGPU_FAULT=fault)
                    self.assertEqual(self.counted[3], 1 + 2 * OFTEN)
                    self.assertLessEqual(report["recorders"][0]["windows_discarded"], 6)
                    self.assertTrue(any("not measured any more" in d["message"]
                                        for d in report["diagnostics"]), report["diagnostics"])

    def test_every_second_range_missing(self):
        report = self.report_of("chain", SIMGPU_FAULT="drop_ranges=2")
        self.assertEqual({k for k in self.counted if k > 9}, set(), report["signatures"])

    def test_a_trainer_without_an_eager_step(self):
        for level in ("launches", "tally"):
            with self.subTest(level):
                steps = ("--steps", 30, "--batch", 8)
                self.run_profiled([harness.TRAINER, "--mode", "graph", "--warm-up", 0, *steps],
                                  FLOPINJ_GRAPHS="on", FLOPINJ_LEVEL=level, FLOPINJ_FORCE=1)
                in_graphs = harness.reduce(self.trace)
                self.assert_balanced(in_graphs)
                self.run_profiled([harness.TRAINER, *steps], FLOPINJ_LEVEL=level, FLOPINJ_FORCE=1)
                eager = harness.reduce(self.trace)
                flop = [{k["kernel"]: k["flop"] for k in report["kernels"]}
                        for report in (in_graphs, eager)]
                self.assertEqual(flop[0], flop[1])


if __name__ == "__main__":
    harness.main()
