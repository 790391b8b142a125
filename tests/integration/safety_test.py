"""What a profiler could break in the program, or lose with it. Every launch is axpy(100), 200
FLOP."""

import json
import os
import signal
import subprocess
import time
import unittest

import harness
from harness import CLIENTS, injected_environment

SAFETY = CLIENTS / "safety_client"


class Captures(harness.TestCase):
    """simgpu invalidates a capture when a profiler session begins, ends or is open beside it: then
    the client fails."""

    def report_of(self, case):
        self.run_profiled([SAFETY, case])
        report = harness.reduce(self.trace)
        self.assertEqual(report["diagnostics"], [])
        return report

    def test_no_window_is_opened_beside_a_capture(self):
        self.assert_all_counted(self.report_of("capture_beside"), 6 + 1 + 3)

    def test_an_open_window_is_closed_before_a_capture(self):
        self.assert_all_counted(self.report_of("window_before_capture"), 3 + 2)

    def test_capture_of_the_threads_own_stream(self):
        self.assert_all_counted(self.report_of("capture_own_stream"), 3 + 2)

    def test_a_first_launch_under_capture_is_asked_about_in_relaxed_mode(self):
        self.assert_all_counted(self.report_of("first_launch_in_capture"), 2 + 3)

    def test_measuring_goes_on_after_a_capture_that_never_ended(self):
        self.assert_all_counted(self.report_of("capture_given_up"), 3)


class IdleProgram(harness.TestCase):
    """Nothing is launched any more, and the program ends without exit handlers: what its last
    window read is there."""

    def idle_then(self, end, status):
        env = injected_environment(self.trace, SIMGPU_FAULT="no_clock")  # it goes on while idle
        client = subprocess.Popen([SAFETY, "idle"], env=env, stdin=subprocess.PIPE)
        try:
            deadline = time.monotonic() + 60
            while not (self.trace.exists() and
                       self.measured(self.trace)) and time.monotonic() < deadline:
                time.sleep(0.1)
            end(client)
            self.assertEqual(client.wait(60), status)
        finally:
            client.kill()
            client.wait()
            client.stdin.close()
        report = harness.reduce(self.trace, check=None)
        self.assert_all_counted(report, 3)

    def measured(self, trace):
        """The trace as far as it has come has a count for every launch."""
        done = harness.run([harness.FLOPREDUCE, "--format", "json", trace],
                           harness.clean_environment())
        ledger = json.loads(done.stdout)["ledger"][-1] if done.stdout else {"launches": 0}
        return ledger.get("measured", 0) + ledger.get("extrapolated", 0) == 3

    def test_immediate_exit(self):
        self.idle_then(lambda client: client.stdin.close(), 0)

    def test_signals(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(number):
                self.trace.unlink(missing_ok=True)
                self.idle_then(lambda client, n=number: os.kill(client.pid, n), -number)


class NeverMeasured(harness.TestCase):
    def test_a_kernel_that_the_user_names_is_counted_and_not_measured(self):
        self.run_profiled([CLIENTS / "launch_client", "same_grid"],
                          FLOPINJ_NEVER_MEASURE="spin,DOT")
        report = harness.reduce(self.trace)
        self.assert_balanced(report)
        ledger = report["ledger"][-1]
        self.assertEqual((ledger["launches"], ledger["unmeasured"]), (60, 60))
        kernel, = report["kernels"]
        self.assertIsNone(kernel["flop"])


class NoMemory(harness.TestCase):
    @unittest.skipIf(harness.SANITIZER_PRELOAD, "sanitizers have an allocator of their own")
    def test_a_failed_allocation_leaves_no_lock_behind(self):
        """Launches are lost in part; those made once there is memory again are measured as ever."""
        self.run_profiled([SAFETY, "no_memory"])
        report = harness.reduce(self.trace, check=None)  # 3: some launches have no name
        self.assert_balanced(report)
        small, = (s for s in report["signatures"] if s["grid"].startswith("4x"))
        self.assertEqual((small["launches"], small["flop_per_launch"]), (3, 200))


class ThreadKeys(harness.TestCase):
    """The C library has 1,024 keys for what threads hand back at their end: a program may take all
    of them."""

    def codes(self, case):
        self.run_profiled([SAFETY, case])
        report = harness.reduce(self.trace)
        self.assert_all_counted(report, 20)
        return harness.codes(report)

    def test_without_a_key_launches_are_counted_and_the_lack_is_said(self):
        self.assertIn("process.thread_keys", self.codes("no_thread_keys"))

    def test_with_keys_nothing_is_said(self):
        self.assertEqual(self.codes("threads_that_end"), [])


if __name__ == "__main__":
    harness.main()
