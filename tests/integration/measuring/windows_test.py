"""Windows on CUPTIs that behave in ways which nothing documents: where they can be closed, what
else becomes a range, launches that fail in one, counters that are not there at first. The program
is measured all the same where that is possible, and the trace says what was learned."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from theory import Expected  # noqa: E402

TRAINER = (harness.TRAINER, "--batch", 8, "--steps", 12, "--print-shapes")


class Case(harness.TestCase):
    def codes_of(self, command, **settings):
        """Codes of the trace's diagnostics, but for notes; each once."""
        self.done = self.run_profiled(command, FLOPINJ_FORCE=1, **settings)
        self.report = harness.reduce(self.trace)
        return sorted({d["code"] for d in self.report["diagnostics"] if d["severity"] != "info"})

    def assert_whole(self):
        """Every launch has its count, and the sum is that of theory."""
        self.assert_all_counted(self.report, self.report["ledger"][-1]["launches"])
        shapes, _ = json.JSONDecoder().raw_decode(self.done.stdout[self.done.stdout.index("{"):])
        self.assertEqual(self.report["figures"]["flop"], Expected(shapes).flop)


class Windows(Case):
    def test_no_window_is_closed_where_its_last_launch_has_not_returned(self):
        """On CUPTIs that refuse to close one there, or lack that launch's range."""
        for fault in ("stop_at_exit", "short_at_exit"):
            with self.subTest(fault):
                self.assertEqual(self.codes_of(TRAINER, SIMGPU_FAULT=fault), [])
                self.assert_whole()
                self.assertEqual(self.report["recorders"][0]["windows_discarded"], 0)

    def test_windows_that_never_agree_end_measuring(self):
        codes = self.codes_of([*TRAINER, "--sleep-ms", 5], SIMGPU_FAULT="lose_ranges=1")
        self.assertEqual(codes, ["counters.mismatch", "counters.windows"])
        self.assertEqual(self.report["recorders"][0]["windows_discarded"], 3)
        self.assert_balanced(self.report)
        ledger = self.report["ledger"][-1]
        self.assertEqual((ledger["unmeasured"], ledger["dropped"]), (ledger["launches"], 0))
        self.assertEqual(Expected(json.loads(self.done.stdout)).kernel_launches,
                         {k["kernel"]: k["launches"] for k in self.report["kernels"]})

    def test_an_idle_program_whose_windows_only_its_own_thread_may_close(self):
        codes = self.codes_of([*TRAINER, "--sleep-ms", 250],
                              SIMGPU_FAULT="stop_elsewhere,no_clock")
        self.assertEqual(codes, ["counters.windows"])
        self.assert_whole()

    def test_ranges_that_no_launch_made(self):
        codes = self.codes_of([*TRAINER, "--sleep-ms", 5], SIMGPU_FAULT="copy_ranges")
        self.assertIn("counters.windows", codes)
        self.assert_whole()

    def test_ranges_that_are_lost_without_an_error(self):
        """Every seventh: windows that lack one are thrown away, and none is taken for another."""
        codes = self.codes_of([*TRAINER, "--sleep-ms", 5], SIMGPU_FAULT="lose_ranges=7")
        self.assertIn("counters.windows", codes)
        self.assertGreater(self.report["recorders"][0]["windows_discarded"], 1)
        self.assert_whole()

    def test_counters_that_are_busy_at_first(self):
        """For 300 ms; the first pause is 1 s, and the program runs for 3."""
        codes = self.codes_of([*TRAINER, "--sleep-ms", 250], SIMGPU_FAULT="hardware_busy_for=300")
        self.assertEqual(codes, ["counters.busy"])
        self.assert_whole()

    def test_the_first_launch_that_fails_in_a_window_is_the_last(self):
        """Their blocks have room for 64 more registers in each thread, and not for 200."""
        codes = self.codes_of([harness.CLIENTS / "tight_client", "roomy"],
                              SIMGPU_FAULT="instrumented_registers=200")
        self.assertEqual(self.done.stdout, "failed 1 of 40\n")
        self.assertEqual(codes, ["counters.launch_failed"])
        self.assertRegex(self.done.stderr, r"a launch of axpy failed with CUDA error 701 inside a "
                                           r"window that instruments kernels")
        self.assert_balanced(self.report)
        self.assertEqual(self.report["ledger"][-1]["launches"], 39)


class TightLaunches(Case):
    """Launches that fit as they are and would not with instrumented code: no call fails, the trace
    says why, and the kernels' FLOP are between nothing and what their pipes ran."""

    def test_no_launch_fails(self):
        for case, elements, fault, code in (
                ("cooperative", 1000, "instrumented_cooperative", "counters.cooperative"),
                ("wide", 1000, "instrumented_registers=64", "counters.registers"),
                ("wide", 1000, "instrumented_registers=64,hidden_handles",  # registers not known
                 "counters.registers"),
                ("full_memory", 32, "instrumented_memory=256", "counters.device_memory")):
            with self.subTest(case):
                codes = self.codes_of([harness.CLIENTS / "tight_client", case], SIMGPU_FAULT=fault)
                self.assertEqual(codes, [code])
                self.assert_balanced(self.report)
                self.assertEqual(self.report["ledger"][-1]["unmeasured"], 0)
                figures = self.report["figures"]
                self.assertEqual(figures["bounded_launches"], 20)
                self.assertGreaterEqual(figures["flop_at_most"], 20 * 2 * elements)
                self.assertEqual(figures["flop_at_most"], figures["flop_doubtful"])


if __name__ == "__main__":
    harness.main()
