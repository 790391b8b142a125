"""CUPTI's records of kernels beside its counters, which no document promises: where they do not go
together FLOP are as ever, times that are not known are none, and one line says so."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from theory import Expected  # noqa: E402

MLP = (harness.TRAINER, "--model", "mlp", "--batch", 8, "--steps", 200, "--print-shapes")


class Records(harness.TestCase):
    def train(self, **settings):
        done = self.run_profiled(MLP, FLOPINJ_FORCE=1, **settings)
        shapes, _ = json.JSONDecoder().raw_decode(done.stdout[done.stdout.index("{"):])
        self.expected = Expected(shapes)
        self.report = harness.reduce(self.trace)
        self.untimed = sum(row["launches_unplaced"] for row in self.report["device_time"])

    def assert_counted(self):
        self.assert_balanced(self.report)
        self.assert_all_counted(self.report, self.expected.launches)
        self.assertEqual(self.report["figures"]["flop"], self.expected.flop)

    def test_of_launches_in_windows_none_is_usable(self):
        for how in ("absent", "zero", "early"):
            with self.subTest(how):
                self.train(SIMGPU_FAULT=f"windowed_records={how}")
                self.assert_counted()
                said, = self.report["diagnostics"]
                self.assertEqual(said["code"], "activity.in_windows")
                self.assertGreater(self.untimed, 0)
                self.assertLess(self.untimed, self.expected.launches / 2)
                self.assertEqual(said["times"], self.untimed)

    def test_no_counters_beside_them(self):
        """They are off while counters are held, so the launches of a short program have no time."""
        self.train(SIMGPU_FAULT="no_records_beside")
        self.assert_counted()
        self.assertEqual(harness.codes(self.report), ["cupti.records_off"])
        self.assertGreater(self.untimed, self.expected.launches / 2)

    def test_they_come_back_with_the_counters(self):
        """The client makes no launch for 3 s, and then others."""
        self.run_profiled([harness.CLIENTS / "lease_client", "rest_3"], FLOPINJ_FORCE=1,
                          SIMGPU_FAULT="no_records_beside")
        report = harness.reduce(self.trace)
        self.assertEqual(harness.codes(report), ["cupti.records_off"])
        launches = report["ledger"][-1]["launches"]
        self.assertEqual(report["ledger"][-1]["unmeasured"], 0)
        self.assertLess(sum(row["launches_unplaced"] for row in report["device_time"]), launches)

    def test_without_counters_they_are_whole(self):
        self.train(SIMGPU_FAULT="no_records_beside,windowed_records=zero", FLOPINJ_MODE="timing")
        self.assertEqual(harness.codes(self.report), [])
        self.assertEqual(self.untimed, 0)


if __name__ == "__main__":
    harness.main()
