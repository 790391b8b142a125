"""Programs that fork while their other threads are inside the library: the children use NVTX and
end, as they do without the library. FLOPINJ_TEST_SEED draws other pauses between forks."""

import os
import threading

import attaching
import harness
from harness import CLIENTS, injected_environment

FORK = CLIENTS / "fork_client"
LIMIT_S = 200
SEED = int(os.environ.get("FLOPINJ_TEST_SEED", 1))
# NVTX's functions, threads that come and go, and the driver's.
RANGES = ("push", "push_new", "mark", "range", "find", "register", "create", "operators", "thread")
CALLS = ("launch", "graph", "wait", "module", "copies")
IN_CALLBACKS = ("push_new", "register", "launch", "module")


class Fork(harness.TestCase):
    def forks(self, busy, origin, children, **settings):
        with self.subTest(busy=busy, origin=origin, seed=SEED, **settings):
            env = injected_environment(self.folder / "t-%p.pb", FLOPINJ_FORCE=1, **settings)
            done = harness.run([FORK, busy, origin, children, SEED], env, timeout=LIMIT_S)
            self.assertEqual((done.returncode, done.stdout),
                             (0, f"{children} children, 0 failed\n"), done.stderr)

    def test_while_other_threads_are_busy(self):
        for busy in RANGES + CALLS:
            self.forks(busy, "thread", 100)

    def test_in_callbacks_and_host_functions(self):
        for origin in ("callback", "host"):
            for busy in IN_CALLBACKS:
                self.forks(busy, origin, 50, SIMGPU_CUPTI_VERSION="13.3")

    def test_it_waits_for_no_call_of_ours(self):
        """Threads of ours are then in calls of CUPTI and NVML for longer than the time limit."""
        for fault in (f"slow_host={2_000 * LIMIT_S}", f"nvml_slow={2_000 * LIMIT_S}"):
            self.forks("push", "thread", 20, SIMGPU_FAULT=fault, FLOPINJ_PLAN_WAIT_MS=0)

    def test_in_a_signal_handler(self):
        for busy in ("push", "find"):
            self.forks(busy, "handler", 200)

    def test_before_cuda_is_used(self):
        """The children have recordings of their own."""
        for busy in RANGES:
            self.forks(busy, "before", 8, FLOPINJ_MODE="count")
        traces = [path for path in self.folder.iterdir() if path.stat().st_size > 0]
        self.assertEqual(len(traces), 8 * len(RANGES))
        for trace in traces:
            self.assertEqual(harness.reduce(trace)["ledger"][-1]["launches"], 1)

    def test_while_nothing_is_recorded(self):
        for busy in RANGES:
            self.forks(busy, "thread", 100, FLOPINJ_DORMANT=1)


class Requests(attaching.Attach):
    def test_while_recordings_begin_and_end(self):
        client = self.start([FORK, "launch", "thread", 300, SEED], stdout=-1, FLOPINJ_FORCE=1)
        ended = threading.Event()

        def ask():
            while not ended.is_set():
                for verb in ("start", "status", "stop"):
                    try:
                        attaching.ask(client.pid, verb)
                    except (OSError, ValueError, attaching.Refused):  # it ends
                        pass
        asking = threading.Thread(target=ask)
        asking.start()
        try:
            out, errors = client.communicate(timeout=LIMIT_S)
        finally:
            ended.set()
            asking.join()
        self.assertEqual((client.returncode, out), (0, "300 children, 0 failed\n"),
                         f"seed {SEED}: {errors}")


if __name__ == "__main__":
    harness.main()
