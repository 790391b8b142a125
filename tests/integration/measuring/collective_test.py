"""Ranks whose kernels wait for each other in memory, as NCCL's do: they end with the right sums,
with windows of the profiler around them too, and only the other kernels are measured."""

import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import harness  # noqa: E402

CLIENT = harness.CLIENTS / "collective_client"
PTX = harness.SOURCE / "tests" / "integration" / "clients" / "collective_kernels.ptx"
STEPS, WORDS = 30, 960
LIMIT_S = 60  # they end within a second where nothing hangs
CASES = [(ranks, how) for ranks in (2, 3, 4) for how in ("threads", "one")]
ELEMENTS = {"f32": WORDS, "bf16": 2 * WORDS}


class Collectives(harness.TestCase):
    def ends(self, ranks, how, env):
        env = {**env, "SIMGPU_ASYNC": "1", "SIMGPU_DEVICES": str(ranks)}
        client = subprocess.Popen([str(CLIENT), str(PTX), str(ranks), str(STEPS), how], env=env,
                                  stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                  start_new_session=True)
        try:
            _, stderr = client.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            self.fail("it hangs")
        finally:
            harness.kill_session(client)
        self.assertEqual(client.returncode, 0, stderr)

    def test_sums_are_right_without_the_profiler(self):
        env = {**harness.clean_environment(), "LD_LIBRARY_PATH": str(harness.SIMGPU)}
        for ranks, how in CASES:
            with self.subTest(ranks=ranks, how=how):
                self.ends(ranks, how, env)

    def test_sums_are_right_and_all_else_is_measured_under_the_profiler(self):
        for ranks, how in CASES:
            with self.subTest(ranks=ranks, how=how):
                self.ends(ranks, how, harness.injected_environment(self.trace, FLOPINJ_FORCE=1))
                report = harness.reduce(self.trace)
                self.assert_balanced(report)
                kernels = harness.by(report, "kernels")
                launches = STEPS * ranks
                for kind, elements in ELEMENTS.items():
                    gradient = kernels[f"gradient_{kind}"]
                    self.assertEqual((gradient["launches"], gradient["flop"]),
                                     (launches, 2 * elements * launches))
                    reduce = kernels[f"ncclDevKernel_AllReduce_Sum_{kind}_RING_LL"]
                    self.assertEqual((reduce["launches"], reduce["flop"]), (launches, None))
                self.assertEqual(harness.reasons(report, "unmeasured"),
                                 {"never_measured": 2 * launches})

    def test_in_graphs_they_are_in_no_window(self):
        self.ends(2, "graphs", harness.injected_environment(self.trace, FLOPINJ_FORCE=1))
        report = harness.reduce(self.trace)
        self.assert_balanced(report)
        self.assertEqual(set(harness.reasons(report, "unmeasured")),
                         {"never_measured", "graph_only"})


if __name__ == "__main__":
    harness.main()
