"""A kernel whose work depends on data: the report's 95 % interval against the work that the program
put into memory."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import CLIENTS  # noqa: E402

SHAPES = ("uniform", "two_values", "exponential", "trend", "periodic")
SEEDS_OF_A_SHAPE = 20
LAUNCHES = 8000


class Varying(harness.TestCase):
    def reduced(self, shape, seed):
        trace = self.folder / f"{shape}-{seed}.pb"
        done = self.run_profiled([CLIENTS / "varying_client", shape, LAUNCHES, seed], output=trace,
                                 FLOPINJ_BUDGET="none", FLOPINJ_LEVEL="tally")
        return harness.reduce(trace), int(done.stdout)

    def test_interval_covers_the_truth(self):
        covered, intervals, missed = 0, 0, []
        for shape in SHAPES:
            for seed in range(1, SEEDS_OF_A_SHAPE + 1):
                report, truth = self.reduced(shape, seed)
                self.assert_all_counted(report, LAUNCHES)
                total = report["figures"]
                self.assertEqual(total["varying_launches"], LAUNCHES)
                interval = [harness.exact(total, key) for key in ("flop_low", "flop_high")]
                if interval == [None, None]:  # said, not passed over
                    self.assertEqual(total["too_few_samples_launches"], LAUNCHES)
                    continue
                intervals += 1
                if interval[0] <= truth <= interval[1]:
                    covered += 1
                else:
                    missed.append((shape, seed, truth, total["flop"], interval))
        runs = len(SHAPES) * SEEDS_OF_A_SHAPE
        print(
            f"{runs} runs of {LAUNCHES} launches, {intervals} with an interval, "
            f"{covered} cover the truth"
        )
        self.assertGreaterEqual(intervals, runs * 95 // 100)
        self.assertGreaterEqual(covered, intervals * 95 / 100, missed)

    def test_every_launch_measured_gives_the_truth(self):
        trace, launches = self.folder / "full.pb", 300
        done = self.run_profiled([CLIENTS / "varying_client", "exponential", launches, 1],
                                 output=trace, FLOPINJ_MODE="full", FLOPINJ_BUDGET="none")
        total = harness.reduce(trace)["figures"]
        self.assertEqual(int(total["flop"]), int(done.stdout))
        self.assertEqual(total["launches"], launches)
        for key in ("unmeasured_launches", "varying_launches", "agreeing_launches"):
            self.assertEqual(total[key], 0, key)


if __name__ == "__main__":
    harness.main()
