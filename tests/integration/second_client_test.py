"""Another client of CUPTI in the program: both have their records where CUPTI can share. Where it
cannot the program runs on, and the trace says which times are missing and why."""

import harness
from harness import CLIENTS

CLIENT = CLIENTS / "second_client"
TRAINER = (harness.TRAINER, "--steps", 12, "--batch", 8)


class SecondClient(harness.TestCase):
    def profile(self, command, **settings):
        done = self.run_profiled(command, FLOPINJ_FORCE=1, **settings)
        self.report = harness.reduce(self.trace)
        self.codes = harness.codes(self.report)
        self.untimed = sum(d["launches_unplaced"] for d in self.report["device_time"])
        return done

    def test_it_has_its_records_and_we_have_ours(self):
        for version in ("13.2", "13.3", "13.5"):
            with self.subTest(version):
                done = self.profile([CLIENT], SIMGPU_CUPTI_VERSION=version)
                self.assertEqual(done.stdout, "records 20\n")
                self.assert_all_counted(self.report, 40)
                self.assertEqual((self.untimed, self.codes), (0, []))

    def test_an_older_cupti_has_one_client(self):
        for version in ("12.8", "13.0", "13.1"):
            with self.subTest(version):
                done = self.profile([CLIENT], SIMGPU_CUPTI_VERSION=version)
                self.assertRegex(done.stdout, r"^refused \d+\n$")
                self.assert_all_counted(self.report, 40)
                self.assertEqual((self.untimed, self.codes), (0, []))

    def test_times_that_another_has_taken(self):
        """From the 20th kernel on; the work is counted all the same."""
        self.profile(TRAINER, SIMGPU_FAULT="take_activity=20")
        self.assertIn("cupti.activity_taken", self.codes)
        self.assertGreater(self.untimed, 0)
        self.assertEqual(self.report["ledger"][-1]["unmeasured"], 0)
        screen, everything = (harness.run([harness.FLOPREDUCE, "--color", "never", *options,
                                           self.trace], harness.clean_environment()).stdout
                              for options in ((), ("--all",)))
        self.assertIn("another profiler in the program", everything)
        self.assertIn("have no time: see --sections diagnostics", screen.splitlines()[1])

    def test_where_cupti_shares_nothing_can_be_taken(self):
        self.profile(TRAINER, SIMGPU_FAULT="take_activity=20", SIMGPU_CUPTI_VERSION="13.3")
        self.assertEqual((self.untimed, self.codes), (0, []))


if __name__ == "__main__":
    harness.main()
