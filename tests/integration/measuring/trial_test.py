"""What opening an instrumented window costs is found out without a launch in it, before the first
one is opened: it may be that of patching every kernel of the program."""

import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from theory import Expected  # noqa: E402

GPT = (harness.TRAINER, "--model", "gpt", "--print-shapes", "--batch", 1, "--layers", 1,
       "--context", 32, "--vocabulary", 32, "--steps", 24)
PRODUCTS = ("product_nt", "product_nn", "product_tn", "product_tn_add")


class Trials(harness.TestCase):
    def train(self, fault, **settings):
        """With the simulated clock, by which patching takes so long and the program is judged."""
        settings = {"FLOPINJ_BUDGET": 1, **settings}
        done = self.run_profiled(GPT, FLOPINJ_FORCE=1, SIMGPU_FAULT=fault, **settings)
        self.expected = Expected(json.loads(done.stdout))
        self.report = harness.reduce(self.trace)
        self.figures = self.report["figures"]
        self.assert_balanced(self.report)
        self.windows_ms = self.report["overhead"][0]["windows_ns"] * 1e-6

    def assert_exact(self, but_for=None):
        self.assert_all_counted(self.report, self.expected.launches)
        self.assertEqual(self.figures["flop"], self.expected.flop)
        self.assertEqual([said for said in self.report["diagnostics"]
                          if but_for is None or but_for not in said["message"]], [])

    def test_what_the_budget_has_no_room_for_is_not_opened(self):
        """A wait of a second is all that it costs; FLOP are bounds, those of tensor cores are
        counted."""
        self.train("slow_patching=1000000")
        said, = self.report["diagnostics"]
        self.assertEqual(said["code"], "counters.costly")
        took = int(re.search(r"took (\d+) ms", said["message"]).group(1))
        self.assertGreater(took, 2000)  # of kernels, at a second each
        self.assertLess(self.windows_ms, 2000)  # what it may cost at the start
        self.assertEqual(self.figures["bounded_launches"], self.expected.launches)
        self.assertIsNone(self.figures["flop"])
        self.assertGreaterEqual(self.figures["flop_at_most"], self.expected.flop)
        self.assertEqual(harness.precisions(self.report)["tensor_bf16"],
                         sum(self.expected.kernel_flop[name] for name in PRODUCTS))

    def test_what_it_has_room_for_is(self):
        self.train("slow_patching=100")
        self.assert_exact()

    def test_without_a_bound_nothing_is_tried(self):
        self.train("slow_patching=1000000", FLOPINJ_BUDGET="none")
        self.assert_exact()

    def test_where_the_planner_may_not_switch_or_close(self):
        """Where the program launches too seldom, the planner tries to close a window, and says
        that it could not: on a busy machine."""
        for fault, but_for in (("switch_elsewhere", None),
                               ("stop_elsewhere", "closed only by threads that launch")):
            with self.subTest(fault):
                self.train(fault)
                self.assert_exact(but_for)


if __name__ == "__main__":
    harness.main()
