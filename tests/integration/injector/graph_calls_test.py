"""Graphs made and changed by hand. Each kernel is dot(k), 2k FLOP; 3, 5, 7 and 9 run once outside
of graphs."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import harness  # noqa: E402

EAGER = [3, 5, 7, 9]


class GraphsByHand(harness.TestCase):
    def report_of(self, case, **settings):
        # Only replay reads all groups of a kernel that is launched once.
        self.run_profiled([harness.CLIENTS / "graph_client", case],
                          **{"FLOPINJ_MODE": "full", **settings})
        return harness.reduce(self.trace)

    def assert_ran(self, case, ks):
        """The graphs of the case ran dot(k) for each k in ks, and every GPU time found its
        launch."""
        report = self.report_of(case)
        self.assert_all_counted(report, len(EAGER) + len(ks))
        kernel, = report["kernels"]
        self.assertEqual(int(kernel["flop"]), 2 * (sum(EAGER) + sum(ks)))
        self.assertEqual(report["diagnostics"], [])
        self.assertEqual([row["activity_unmatched"] for row in report["recorders"]], [0])
        self.assertEqual(report["ledger"][-1]["extrapolated_in_graphs"], len(ks))

    def test_nodes_added_by_hand(self):
        self.assert_ran("by_hand", [3, 5] * 2)

    def test_clone_keeps_its_own_parameters(self):
        self.assert_ran("cloned", [3, 7] + [3, 5] * 2)

    def test_update_from_another_graph(self):
        self.assert_ran("updated", [3, 5] + [7, 9] * 2)

    def test_destroyed_graphs_leave_nothing_behind(self):
        self.assert_ran("destroyed", [3, 5])

    def test_removed_node_does_not_count(self):
        self.assert_ran("node_removed", [3])

    def test_children_of_children(self):
        self.assert_ran("children", [3, 5, 7] * 2)

    def test_child_graph_with_new_parameters(self):
        self.assert_ran("child_set", [3, 5] + [3, 9] * 2)

    def test_update_reaches_child_graphs(self):
        self.assert_ran("child_updated", [3, 5] + [7, 9] * 2)

    def test_nodes_switched_off_and_on(self):
        self.assert_ran("disabled", [3, 5, 3, 3, 5])

    def test_graph_for_the_device_is_named(self):
        report = self.report_of("for_device")
        self.assert_all_counted(report, len(EAGER) + 2)
        self.assertEqual(harness.codes(report), ["graph.for_device"])

    def test_node_that_kernels_may_change_is_named(self):
        report = self.report_of("updatable")
        self.assert_all_counted(report, len(EAGER) + 2)
        self.assertEqual(harness.reasons(report, "unseen"), {"device_updatable_node": 1})
        self.assertEqual(harness.codes(report), ["graph.device_updatable"])

    def test_cluster_that_is_set_as_an_attribute(self):
        report = self.report_of("clustered")
        self.assert_all_counted(report, len(EAGER) + 2 + 6)
        axpy = {(s["grid"], s["cluster"]): s["launches"]
                for s in report["signatures"] if s["kernel"] == "axpy"}
        self.assertEqual(axpy, {("4x1x1", "2x1x1"): 1 + 5, ("8x1x1", "2x1x1"): 1 + 1})

    def dot_of(self, report):
        return harness.by(report, "kernels")["dot"]

    def test_body_of_a_loop_counts_as_often_as_it_ran(self):
        """4 + 2 times dot(5) and count_down in the body, dot(3) beside it twice; count_down once
        before."""
        for level in ("launches", "tally"):
            with self.subTest(level):
                report = self.report_of("looping", FLOPINJ_LEVEL=level, FLOPINJ_FORCE=1)
                self.assert_all_counted(report, len(EAGER) + 1 + 2 + 6 + 6)
                self.assertEqual(int(self.dot_of(report)["flop"]), 2 * (sum(EAGER) + 2 * 3 + 6 * 5))
                self.assertEqual(harness.by(report, "kernels")["count_down"]["launches"], 1 + 6)
                self.assertEqual(report["recorders"][0]["activity_unmatched"], 0)

    def test_body_that_was_not_chosen_does_not_count(self):
        report = self.report_of("choosing")
        self.assert_all_counted(report, len(EAGER) + 3)
        self.assertEqual(int(self.dot_of(report)["flop"]), 2 * (sum(EAGER) + 7 + 7 + 9))

    def test_bodies_without_times_are_unseen(self):
        """No activity records: dot(3) is counted, and the two graph launches are said to have run
        more."""
        report = self.report_of("looping", FLOPINJ_MODE="count")
        self.assert_balanced(report)
        self.assertEqual(report["ledger"][-1]["launches"], len(EAGER) + 1 + 2)
        self.assertEqual(harness.reasons(report, "unseen"), {"conditional_body": 2})

    def test_kernel_that_runs_in_a_graph_alone_is_unmeasured_and_says_why(self):
        report = self.report_of("only_in_graph")
        self.assert_balanced(report)
        self.assertEqual(report["ledger"][-1]["unmeasured"], 2)
        self.assertEqual(harness.reasons(report, "unmeasured"), {"graph_only": 2})


if __name__ == "__main__":
    harness.main()
