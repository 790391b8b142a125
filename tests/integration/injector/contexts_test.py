"""Green contexts beside the primary one."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import harness  # noqa: E402

CLIENT = harness.CLIENTS / "context_client"


class Contexts(harness.TestCase):
    def report_of(self, case, launches, **settings):
        self.run_profiled([CLIENT, case], **settings)
        report = harness.reduce(self.trace)
        self.assert_balanced(report)
        self.assertEqual(report["ledger"][-1]["launches"], launches)
        self.assertIn("counters.green_context", harness.codes(report))
        self.assertEqual(report["recorders"][0]["windows_discarded"], 0)
        return report

    def test_launches_in_green_contexts_are_in_no_window(self):
        """simgpu counts twice what runs there, and one range too many in another's window. dot(5),
        10 FLOP, runs 15 times in each context; dot(9), 18 FLOP, 15 times in the green one only."""
        for case in ("green_context", "green_stream"):
            with self.subTest(case):
                report = self.report_of(case, 45, FLOPINJ_FORCE=1)
                # By flop_per_launch: dot(5) has its count from the primary context.
                work = sorted((s["flop_per_launch"] or 0, s["launches"])
                              for s in report["signatures"])
                self.assertEqual(work, [(0, 15), (10, 30)])
                self.assertEqual(harness.reasons(report, "unmeasured"), {"green_context": 15})
                self.assertEqual([s["unmeasured_reason"] for s in report["signatures"]
                                  if s["unmeasured_reason"]], ["green_context"])

    def test_a_program_on_green_contexts_alone_is_told_so_first(self):
        report = self.report_of("green_stream_alone", 15)
        self.assertTrue(report["notices"][0]["notice"].startswith(
            "No FLOP were measured: the kernels ran only on green contexts"), report["notices"])
        self.assertEqual(report["measuring"][0]["counters_state"], "none_read")

    def test_a_window_ends_before_a_launch_there_that_wants_none(self):
        report = self.report_of("collective_in_green_context", 30)
        kernels = harness.by(report, "kernels")
        self.assertEqual(kernels["dot"]["flop"], 15 * 10)


if __name__ == "__main__":
    harness.main()
