"""Graphs made and changed by hand. Each kernel is dot(k), 2k FLOP; 3, 5, 7 and 9 run once outside of graphs."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import harness  # noqa: E402

EAGER = [3, 5, 7, 9]


class GraphsByHand(harness.TestCase):
    def assert_ran(self, case, ks):
        """The graphs of the case ran dot(k) for each k in ks, and every GPU time found its launch."""
        # Only replay reads all groups of a kernel that is launched once.
        self.run_profiled([harness.CLIENTS / "graph_client", case], FLOPINJ_MODE="full")
        report = harness.reduce(self.trace)
        self.assert_all_counted(report, len(EAGER) + len(ks))
        kernel, = report["kernels"]
        self.assertEqual(int(kernel["flop"]), 2 * (sum(EAGER) + sum(ks)))
        trace, = report["traces"]
        self.assertEqual(trace["diagnostics"], [])
        self.assertEqual(trace["recorder"]["activity_unmatched"], 0)

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


if __name__ == "__main__":
    harness.main()
