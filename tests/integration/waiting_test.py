"""Programs whose work in flight waits for what they do after their next launch, on a simulated GPU
whose work is asynchronous and whose windows wait for all work in flight. Under the profiler they
end as without it."""

import subprocess
import unittest

import harness
from harness import CLIENTS

WAITING = CLIENTS / "waiting_client"
CASES = ("host_function", "callback", "kernel", "stream_wait", "graph", "pipeline")
LIMIT_S = 10  # they end within a second where nothing hangs


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
                    self.assert_balanced(harness.reduce(trace))


if __name__ == "__main__":
    harness.main()
