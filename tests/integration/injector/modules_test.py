"""Kernels of one name in several modules. dot(5) is 10 FLOP in one of them and 15 in the other;
each runs 10 times."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import harness  # noqa: E402

CLIENT = harness.CLIENTS / "module_client"


class Modules(harness.TestCase):
    def report_of(self, case, **settings):
        self.run_profiled([CLIENT, case], **settings)
        return harness.reduce(self.trace)

    def work(self, report):
        """(FLOP of one launch, launches) of every signature."""
        return sorted((int(s["flop_per_launch"]), s["launches"]) for s in report["signatures"])

    def assert_kept_apart(self, case, **settings):
        report = self.report_of(case, **settings)
        self.assert_all_counted(report, 20)
        self.assertEqual(self.work(report), [(10, 10), (15, 10)])
        self.assertFalse(any(s["varying"] for s in report["signatures"]))
        self.assertEqual(int(report["figures"]["flop"]), 250)

    def test_one_name_two_modules(self):
        self.assert_kept_apart("side_by_side")

    def test_one_name_reloaded_with_other_code(self):
        self.assert_kept_apart("reloaded")

    def test_one_name_in_two_libraries(self):
        self.assert_kept_apart("libraries")

    def assert_tens(self, case, launches, **settings):
        """`launches` of a kernel of 20 FLOP: whatever its handle is, one signature."""
        report = self.report_of(case, **settings)
        self.assert_all_counted(report, launches)
        self.assertEqual(self.work(report), [(20, launches)])
        return report

    def test_handles_of_both_kinds(self):
        self.assert_tens("without_parameters", 20)

    def test_handles_that_come_many_in_one_call(self):
        self.assert_tens("enumerated", 30)

    def test_nodes_of_graphs_with_kernels_of_libraries(self):
        self.assert_tens("in_graphs", 10 + 3 * 10)

    def test_handles_that_nobody_was_seen_to_give_have_their_code(self):
        """Name, parameters and work come from the image."""
        def hidden(case):
            report = self.report_of(case, SIMGPU_FAULT="hidden_handles", FLOPINJ_FORCE=1)
            self.assert_all_counted(report, 20)
            codes = harness.codes(report)
            self.assertEqual("function.unknown_handle" in codes, case == "side_by_side")
            return report
        self.assertEqual(self.work(hidden("without_parameters")), [(20, 20)])
        # Two images have a dot, and each was loaded by the first launch of its own.
        self.assertEqual(self.work(hidden("libraries")), [(10, 10), (15, 10)])
        # Both are there from the start: which of them a handle belongs to, nobody tells.
        signature, = hidden("side_by_side")["signatures"]
        self.assertTrue(signature["varying"])
        self.assertEqual(signature["parameters"], "merged")

    def test_signatures_of_two_processes_join_by_their_code(self):
        """What one process measured serves the other, and each code its own."""
        second = self.folder / "second.pb"
        self.run_profiled([CLIENT, "side_by_side"])
        self.run_profiled([CLIENT, "libraries"], output=second, FLOPINJ_MODE="timing")
        report = harness.reduce(self.trace, second)
        self.assert_all_counted(report, 40)
        self.assertEqual(self.work(report), [(10, 20), (15, 20)])

    def test_without_images_the_work_is_seen_to_vary(self):
        """Nobody shows the code, so the two are one signature; it is not taken for exact."""
        report = self.report_of("side_by_side", SIMGPU_FAULT="no_modules")
        self.assert_all_counted(report, 20)
        signature, = report["signatures"]
        self.assertTrue(signature["varying"])

    def test_parameters_that_never_repeat_end_in_one_class(self):
        # Only replay reads all groups of a signature that is launched once.
        report = self.report_of("never_repeating", FLOPINJ_MODE="full")
        self.assert_all_counted(report, 500)
        self.assertEqual(int(report["figures"]["flop"]), 500 * 8)
        self.assertEqual(len(report["signatures"]), 64 + 1)
        merged = max(report["signatures"], key=lambda s: s["launches"])
        self.assertEqual(merged["launches"], 500 - 64)
        self.assertEqual(merged["parameters"], "merged")

    def test_launches_too_rare_to_be_measured_count_with_their_class(self):
        """Each of the 64 is launched once: no window reads all its groups."""
        report = self.report_of("never_repeating")
        self.assert_all_counted(report, 500)
        self.assertEqual(int(report["figures"]["flop"]), 500 * 8)
        merged, = report["signatures"]
        self.assertEqual((merged["launches"], merged["parameters"], merged["varying"]),
                         (500, "merged", True))

    def test_layout_of_parameters_comes_from_the_code(self):
        self.run_profiled([harness.CLIENTS / "launch_client", "same_grid"])
        report = harness.reduce(self.trace)
        self.assert_all_counted(report, 60)
        self.assertEqual(self.work(report), [(2, 20), (34, 20), (2000, 20)])

    def test_without_any_layout_unlike_launches_share_a_signature_that_varies(self):
        self.run_profiled([harness.CLIENTS / "launch_client", "same_grid"],
                          SIMGPU_FAULT="no_modules")
        report = harness.reduce(self.trace)
        self.assert_balanced(report)
        signature, = report["signatures"]
        self.assertTrue(signature["varying"])


if __name__ == "__main__":
    harness.main()
