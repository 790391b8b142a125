"""Programs whose work in flight waits for what they do after their next launch, on a simulated GPU
whose work is asynchronous and whose windows wait for all work in flight. Under the profiler they
end as without it."""

import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import CLIENTS  # noqa: E402

WAITING = CLIENTS / "waiting_client"
# Cases that launch dot(7) 10 times when nothing waits any more.
THEN_MEASURED = ("destroyed_stream", "ended_thread", "only_captured")
# How it came into a graph.
GRAPHS = ("host", "kernel", "clone", "child", "by_hand", "exchanged", "updated")
CASES = ("host_function", "callback", "kernel", "stream_wait", "pipeline", *THEN_MEASURED,
         *("graph_" + how for how in GRAPHS))
LIMIT_S = 60  # they end within a second where nothing hangs


class WaitingPrograms(harness.TestCase):
    def ends(self, case, env):
        client = subprocess.Popen([str(WAITING), case], env=env, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  start_new_session=True)
        try:
            _, stderr = client.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            self.fail(f"{case} hangs")
        finally:
            harness.kill_session(client)
        self.assertEqual(client.returncode, 0, stderr)

    def test_they_end_without_the_profiler(self):
        for case in CASES:
            with self.subTest(case):
                env = harness.clean_environment()
                env.update(LD_LIBRARY_PATH=str(harness.SIMGPU), SIMGPU_ASYNC="1")
                self.ends(case, env)

    def test_they_end_under_the_profiler(self):
        for case in CASES:
            with self.subTest(case):
                env = harness.injected_environment(self.folder / f"{case}-%r-%p.pb", SIMGPU_ASYNC=1)
                self.ends(case, env)
                for trace in self.folder.glob(f"{case}-*.pb"):
                    report = harness.reduce(trace)
                    self.assert_balanced(report)
                    if case in THEN_MEASURED:
                        dot = harness.by(report, "kernels")["dot"]
                        self.assertEqual((dot["launches"], dot["flop"]), (10, 10 * 2 * 7))

    def test_they_end_with_the_settings_of_a_user(self):
        """The tests' own settings measure sooner, and more, than those that a user gets."""
        for case in CASES:
            with self.subTest(case):
                output = self.folder / f"{case}-%r-%p.pb"
                env = harness.injected_environment(output, SIMGPU_ASYNC=1)
                ours = {name for name in env if name.startswith("FLOPINJ_")} - {"FLOPINJ_OUTPUT"}
                self.ends(case, {name: env[name] for name in env if name not in ours})

    def test_a_launch_that_is_long_in_a_window_is_named(self):
        said = "a launch of spin has been inside a measurement window for 10 s"
        env = harness.injected_environment(self.trace, SIMGPU_ASYNC=1, SIMGPU_FAULT="no_clock")
        with subprocess.Popen([str(WAITING), "long_launch"], env=env, text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE) as client:
            self.assertIn(said, client.stderr.readline())
            _, more = client.communicate(timeout=LIMIT_S)  # the end of its input ends the launch
        self.assertEqual((client.returncode, more), (0, ""))
        report = harness.reduce(self.trace)
        diagnostic, = [d for d in report["diagnostics"] if d["code"] == "counters.long_launch"]
        self.assertIn(said, diagnostic["message"])


if __name__ == "__main__":
    harness.main()
