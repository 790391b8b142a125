"""The device's counters are held while windows are wanted, and are free for others else: one
context of a device at a time."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import CLIENTS  # noqa: E402

CLIENT = CLIENTS / "lease_client"


class Leases(harness.TestCase):
    def client(self, case, **settings):
        done = self.run_profiled([CLIENT, case], FLOPINJ_FORCE=1, FLOPINJ_LOG="debug", **settings)
        self.report = harness.reduce(self.trace)
        self.launches = int(re.search(r"launches (\d+)", done.stdout).group(1))
        return done

    def codes(self):
        return harness.codes(self.report)

    def flop_of(self, **kernels):
        by_name = harness.by(self.report, "kernels")
        self.assertEqual({name: by_name[name]["flop"] for name in kernels},
                         {name: flop for name, flop in kernels.items()})

    def test_they_are_free_while_no_window_is_wanted(self):
        done = self.client("rest")
        self.assertEqual(re.findall(r"^(held|free)$", done.stdout, re.MULTILINE), ["held", "free"])
        self.assertIn("are free for others", done.stderr)
        self.assert_all_counted(self.report, 60 + self.launches)
        self.flop_of(axpy=60 * 128, dot=20 * self.launches)
        self.assertEqual(self.codes(), [])

    def test_what_another_has_taken_meanwhile_is_asked_for_again(self):
        """When the client itself has let go of them, just before its next launch. They are free
        again before the second request comes, after a second."""
        self.client("rest", SIMGPU_FAULT="taken_when_free=900")
        self.assertEqual(set(self.codes()), {"counters.busy"})
        self.assert_all_counted(self.report, 60 + self.launches)
        self.flop_of(axpy=60 * 128, dot=20 * self.launches)

    def test_a_cupti_that_wants_the_launching_thread(self):
        """Then it disables them, at its next launch."""
        self.client("rest_3", SIMGPU_FAULT="switch_elsewhere")
        self.assert_all_counted(self.report, 60 + self.launches)
        self.flop_of(axpy=60 * 128, dot=20 * self.launches)

    def test_contexts_of_one_device_take_turns(self):
        for fault in ("", "one_context"):
            with self.subTest(fault):
                self.client("contexts", SIMGPU_FAULT=fault)
                self.assertEqual(self.codes(), [])
                self.assert_all_counted(self.report, 2 * self.launches)
                self.flop_of(axpy=128 * self.launches, dot=20 * self.launches)


if __name__ == "__main__":
    harness.main()
