"""The energy of devices. The simulated board draws 400 W, whatever it does, by the simulated clock
(tools/simgpu/README.md); its counter has whole millijoules. On a busy machine the program may be so
far before the counter is read that the energy is a lower bound of the recording's."""

import csv
import io
from pathlib import Path

import harness
import ranks
from attaching import Attach, ask
from report_tables import figure

WATTS = 400
ENERGY, REALTIME, TRACE_CLOCK = 24, 15, 14  # of a packet; of its header


class Energy(harness.TestCase):
    def train(self, rank=0, fault="", **settings):
        self.trace = self.folder / f"{rank}.pb"
        self.run_profiled([harness.TRAINER, "--model", "mlp", "--steps", 50],
                          output=self.folder / "%r.pb", RANK=rank, FLOPINJ_FORCE=1,
                          SIMGPU_FAULT=fault, **settings)
        return harness.reduce(self.trace)

    def check_power(self, device):
        """Two readings, each up to a millijoule less than it was."""
        energy = figure(device, "energy_j")
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
                figures = report["figures"]
                energy = figure(figures, "energy_j")
                self.assertLessEqual(energy, WATTS * process["wall_ns"] / 1e9)
                for mark in ("", "_at_least"):
                    self.assertEqual(figures.get(f"energy_j{mark}"), device.get(f"energy_j{mark}"))
                self.assertAlmostEqual(figure(figures, "flop_per_j") * energy,
                                       figures["flop"], delta=1e-6 * figures["flop"])
                summary = self.folder / "one.sum"
                harness.run([harness.FLOPREDUCE, "merge", "--force", "-o", summary, self.trace],
                            harness.clean_environment(), check=True)
                merged = harness.reduce(summary)
                self.assertEqual(figure(merged["figures"], "energy_j"), energy)

    def test_the_energy_of_a_job_is_that_of_all_its_devices(self):
        traces = [self.folder / f"{rank}.pb" for rank in range(2)]
        alone = [figure(self.train(rank, FLOPINJ_MEASURE_RANKS="all")["figures"], "energy_j")
                 for rank in range(2)]
        both = harness.reduce(*traces)["figures"]
        self.assertAlmostEqual(figure(both, "energy_j"), sum(alone), places=9)
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
        for fault in ("nvml_hang=1", "nvml_hang=2", "nvml_hang=5", "nvml_slow=60000"):
            with self.subTest(fault=fault):
                report = self.train(fault=fault)
                self.check_recorded(report)
                device, = report["devices"]
                self.assertEqual(device["energy_j_why"], "NVML did not answer")
                self.assertEqual(report["figures"]["energy_j_why"], "NVML did not answer")
        report = self.train(FLOPINJ_NO_ENERGY=1)
        self.assertIsNone(report["figures"]["energy_j"])
        self.assertRegex(report["figures"]["energy_j_why"], "read no energy")

    def check_recorded(self, report):
        """All launches, and the end. A program of few steps makes as many with NVML as without."""
        if not hasattr(self, "launches"):
            self.launches = self.train(FLOPINJ_NO_ENERGY=1)["ledger"][-1]["launches"]
        self.assertEqual(report["ledger"][-1]["launches"], self.launches)
        self.assertEqual(report["processes"][0]["end"], "exit")

    def test_nvml_that_is_slow_costs_nothing_else(self):
        self.check_recorded(self.train(fault="nvml_slow=50"))

    def test_an_nvml_that_no_longer_answers_leaves_a_lower_bound(self):
        """Of the first readings at least; the calls before are the initialisation's."""
        report = self.train(fault="nvml_hang=8", FLOPINJ_FLUSH_MS=50)
        self.check_recorded(report)


class Steps(harness.TestCase):
    """Readings in place of the recorded ones, of a counter that grows by a millijoule in 10 ns."""

    def setUp(self):
        super().setUp()
        self.run_profiled([harness.TRAINER, "--model", "mlp", "--steps", 12],
                          output=self.folder / "0.pb", FLOPINJ_FORCE=1)
        self.recorded = ranks.Trace((self.folder / "0.pb").read_bytes())
        header = {number: value for number, _, value in self.recorded.header}
        self.to_trace = header[TRACE_CLOCK] - header[REALTIME]

    def steps(self, *files):
        done = harness.run([harness.FLOPREDUCE, "--format=csv", "--table=step_list", *files],
                           harness.clean_environment(), check=True)
        return list(csv.DictReader(io.StringIO(done.stdout)))

    def read_every(self, share):
        """A trace whose counter is read so often in a step of usual length."""
        steps = self.steps(self.folder / "0.pb")
        begin = int(steps[0]["begin_ns"]) + self.to_trace
        length = sorted(int(step["wall_ns"]) for step in steps)[len(steps) // 2]
        end = int(steps[-1]["begin_ns"]) + self.to_trace + 2 * length
        bodies = [body for body in self.recorded.bodies if body[0][0] != ENERGY]
        for at in range(begin, end, length // share):
            of_device = ranks.encoded([(1, 0, 1), (2, 0, begin - 1000), (3, 0, at),
                                       (4, 0, (at - begin + 1000) // 10), (5, 0, 1)])
            bodies.insert(-1, [(ENERGY, 2, ranks.encoded([(1, 2, of_device)]))])
        trace = self.folder / f"{share}.pb"
        trace.write_bytes(b"".join(ranks.framed(body, at) for at, body in enumerate(bodies, 1)))
        return trace, length

    def test_a_step_that_spans_many_readings_has_its_energy(self):
        trace, length = self.read_every(50)
        summary = self.folder / "50.sum"
        harness.run([harness.FLOPREDUCE, "merge", "-o", summary, trace],
                    harness.clean_environment(), check=True)
        for file in (trace, summary):
            long = [step for step in self.steps(file) if int(step["wall_ns"]) >= length]
            self.assertGreaterEqual(len(long), 6)
            for step in long:
                self.assertAlmostEqual(float(step["energy_j"]), int(step["wall_ns"]) / 1e4,
                                       delta=0.002)
                self.assertEqual(step["energy_j_mark"], "~")

    def test_others_have_none(self):
        trace, length = self.read_every(8)
        short = [step for step in self.steps(trace) if int(step["wall_ns"]) <= length]
        self.assertGreaterEqual(len(short), 6)
        self.assertEqual({step["energy_j"] for step in short}, {""})


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

    def test_an_nvml_that_hangs_neither_delays_the_end_nor_takes_launches(self):
        """The thread that hangs is left behind, and is the only one that a process ever has."""
        client = self.endless(FLOPINJ_MODE="timing", SIMGPU_FAULT="nvml_hang=12")
        for number in range(3):
            trace = ask(client.pid, "start")["output"]

            def late():
                return number > 0 or "energy.no_answer" in harness.codes(
                    harness.reduce(trace, check=None))

            self.wait_for(late)
            self.wait_for(lambda: int(ask(client.pid, "status")["launches"]) > 0)
            ask(client.pid, "stop")
            report = harness.reduce(trace)
            self.assertEqual(report["processes"][0]["end"], "detach")
            self.assertEqual(report["ledger"][-1]["launches"],
                             int(ask(client.pid, "status")["launches"]))
            device, = report["devices"]
            if number > 0:
                self.assertEqual(device["energy_j_why"], "NVML did not answer")
            else:  # what was read before
                self.assertIsNone(device["energy_j"])
                self.assertGreater(device["energy_j_at_least"], 0)
            names = [(task / "comm").read_text()
                     for task in Path(f"/proc/{client.pid}/task").iterdir()]
            self.assertEqual(names.count("flopinj-energy\n"), 1)
        client.kill()


if __name__ == "__main__":
    harness.main()
