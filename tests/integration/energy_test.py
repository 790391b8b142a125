"""The energy of devices. The simulated board draws 400 W, whatever it does, by the simulated clock
(tools/simgpu/README.md); its counter has whole millijoules."""

import harness
from attaching import Attach, ask

WATTS = 400


class Energy(harness.TestCase):
    def train(self, rank=0, fault="", **settings):
        self.trace = self.folder / f"{rank}.pb"
        self.run_profiled([harness.TRAINER, "--model", "mlp", "--steps", 50],
                          output=self.folder / "%r.pb", RANK=rank, FLOPINJ_FORCE=1,
                          SIMGPU_FAULT=fault, **settings)
        return harness.reduce(self.trace)

    def check_power(self, device):
        """Two readings, each up to a millijoule less than it was."""
        energy = device["energy_j"]
        self.assertGreater(energy, 0)
        self.assertAlmostEqual(device["power_w"], WATTS, delta=WATTS * 0.001 / energy)

    def test_a_device_draws_the_power_of_its_board(self):
        for level in ("launches", "tally"):
            with self.subTest(level=level):
                report = self.train(FLOPINJ_LEVEL=level)
                device, = report["devices"]
                self.check_power(device)
                # The recording has all of the readings' time, and what its start took beside.
                process, = report["processes"]
                self.assertLessEqual(device["energy_j"], WATTS * process["wall_ns"] / 1e9)
                figures = report["figures"]
                self.assertEqual(figures["energy_j"], device["energy_j"])
                self.assertAlmostEqual(figures["flop_per_j"] * figures["energy_j"],
                                       figures["flop"], delta=1e-6 * figures["flop"])
                summary = self.folder / "one.sum"
                harness.run([harness.FLOPREDUCE, "merge", "--force", "-o", summary, self.trace],
                            harness.clean_environment(), check=True)
                merged = harness.reduce(summary)
                self.assertEqual(merged["figures"]["energy_j"], figures["energy_j"])

    def test_the_energy_of_a_job_is_that_of_all_its_devices(self):
        traces = [self.folder / f"{rank}.pb" for rank in range(2)]
        alone = [self.train(rank, FLOPINJ_MEASURE_RANKS="all")["figures"]["energy_j"]
                 for rank in range(2)]
        both = harness.reduce(*traces)["figures"]
        self.assertAlmostEqual(both["energy_j"], sum(alone), places=9)
        # Of one of them it is not known, so the sum is a lower bound.
        self.train(1, "nvml_mig", FLOPINJ_MEASURE_RANKS="all")
        some = harness.reduce(*traces)["figures"]
        self.assertIsNone(some["energy_j"])
        self.assertAlmostEqual(some["energy_j_at_least"], alone[0], places=9)

    def test_why_it_is_not_known(self):
        for fault, why in (("nvml_not_loaded", "nvmlInit: Driver Not Loaded"),
                           ("nvml_mig", "divided .MIG."),
                           ("nvml_no_energy", "has no energy counter"),
                           ("nvml_shared", "other processes compute on the GPU")):
            with self.subTest(fault=fault):
                report = self.train(fault=fault)
                device, = report["devices"]
                self.assertIsNone(device["energy_j"])
                self.assertRegex(device["energy_j_why"], why)
                self.assertIsNone(report["figures"]["energy_j"])
                self.assertRegex(report["figures"]["energy_j_why"], why)
        report = self.train(FLOPINJ_NO_ENERGY=1)
        self.assertIsNone(report["figures"]["energy_j"])
        self.assertRegex(report["figures"]["energy_j_why"], "read no energy")


class Running(Attach):
    def test_the_energy_of_a_program_that_runs_grows_at_every_level(self):
        """At level tally after two messages each one replaces an earlier one."""
        for level in ("launches", "tally"):
            with self.subTest(level=level):
                client = self.endless(FLOPINJ_LEVEL=level, FLOPINJ_MODE="timing")
                trace, seen = ask(client.pid, "start")["output"], set()

                def grows():
                    device, = harness.reduce(trace, check=None)["devices"] or [{}]
                    seen.add(device.get("energy_j") or device.get("energy_j_at_least"))
                    return len(seen - {None}) >= 5

                self.wait_for(grows)
                client.kill()


if __name__ == "__main__":
    harness.main()
