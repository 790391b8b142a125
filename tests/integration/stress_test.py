"""Many signatures, threads and modules: nothing is lost and nothing grows without bound."""

import unittest

import harness
from harness import CLIENTS

MIB = 1 << 20


class Stress(harness.TestCase):
    def stress(self, case, launches, settled, growth, *arguments, **settings):
        """Runs a case: its report, and how many launches it has. Memory may grow by `growth` from
        the round numbered `settled` to the last, where without a bound each further round would
        take as much again as the first."""
        done = self.run_profiled([CLIENTS / "stress_client", case, *arguments], **settings)
        memory = [
            int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("rss ")
        ]
        if not harness.SANITIZER_PRELOAD:  # they keep what is freed
            self.assertGreater(len(memory), settled + 1)
            self.assertLess(memory[-1] - memory[settled], growth, memory)
        report = harness.reduce(self.trace)
        self.assert_balanced(report)
        ledger = report["ledger"][-1]
        self.assertEqual(ledger["launches"], launches, ledger)
        # Where the machine is busy the writer's turn may come too late for a full ring.
        late = {"ring_full"} if ledger["dropped"] else set()
        self.assertEqual(set(harness.reasons(report, "dropped")), late, ledger)
        self.assertLess(ledger["dropped"], launches / 10, ledger)
        return report, launches - ledger["dropped"]

    def test_ten_thousand_signatures(self):
        # Rings, buffers and tables of fixed size fill during the first forty rounds. Where a busy
        # machine makes the writer late, its queues, which are bounded, take some MiB later, too;
        # without a bound 50 rounds would take 1,000 MiB.
        rounds, settled = (10, 0) if harness.SANITIZER_PRELOAD else (100, 50)
        for mode, level in (("multiplex", "launches"), ("timing", "tally")):
            with self.subTest(mode):
                self.trace = self.folder / f"{mode}.pb"
                report, recorded = self.stress(
                    "signatures", rounds * 10_000, settled, 12 * MIB, str(rounds),
                    FLOPINJ_MODE=mode, FLOPINJ_LEVEL=level)
                kernel = report["kernels"][0]
                self.assertEqual((kernel["signatures"], kernel["launches"]), (10_000, recorded))
                self.assertEqual(kernel["flop"], recorded * 2 if mode == "multiplex" else None)

    def test_sixty_four_threads(self):
        report, recorded = self.stress("threads", 15 * 64 * 200, 3, 40 * MIB)
        self.assertEqual(report["kernels"][0]["flop"], recorded * 6)
        self.assertEqual(harness.by(report, "ranges")["worker"]["launches"], recorded)

    def test_modules_that_come_and_go(self):
        modules = 100 if harness.SANITIZER_PRELOAD else 1_000  # which read PTX 20 times slower
        report, recorded = self.stress("modules", modules, 0, 8 * MIB, str(modules))
        self.assertEqual(report["kernels"][0]["flop"], recorded * 4)
        self.assertEqual(report["kernels"][0]["signatures"], 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
