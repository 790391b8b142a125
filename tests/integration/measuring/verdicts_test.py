"""What a report says of itself: why a figure is missing, what became of the counters, who is slow,
which ranks are missing."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import read_varint, run  # noqa: E402

TRAINER = (harness.TRAINER, "--model", "mlp", "--batch", 8)


def text_of(*traces):
    return run([harness.FLOPREDUCE, "--all", "--color", "never", *traces],
               harness.clean_environment()).stdout


def packet_ends(trace):
    """Offsets at which packets end, by protobuf's encoding: key, size as a varint, bytes."""
    ends, at = set(), 0
    while at < len(trace):
        size, at = read_varint(trace, at + 1)
        at += size
        ends.add(at)
    return ends


class CountersThatWereNotRead(harness.TestCase):
    def check(self, state, cause, remedy, **settings):
        self.run_profiled([*TRAINER, "--steps", 3], **settings)
        report = harness.reduce(self.trace)
        process, = report["measuring"]
        self.assertEqual(process["counters_state"], state)
        missing = report["figures"]["ratio_why"]
        self.assertEqual(missing,
                         f"not measured: no FLOP counts of forward and backward: {cause}")
        # Both passes ran: "no forward or no backward launches" would be false.
        phases = harness.by(report, "phases")
        self.assertGreater(min(phases[name]["launches"] for name in ("forward", "backward")), 0)
        notice = report["notices"][0]["notice"]
        self.assertIn(cause, notice)
        self.assertIn(remedy, notice)
        text = text_of(self.trace)
        self.assertLess(text.index(notice[:60]), text.index("kernel launches"))
        self.assertIn(missing, text)

    def test_no_permission(self):
        self.check("refused", "counters were refused: no permission", "CAP_PERFMON",
                   SIMGPU_FAULT="no_privileges")

    def test_held_by_another_profiler(self):
        self.check("busy", "another profiler held the counters", "Nsight Compute",
                   SIMGPU_FAULT="hardware_busy")

    def test_modes_without_counters(self):
        for mode in ("timing", "count"):
            with self.subTest(mode=mode):
                self.check("not_asked", "counters were not asked for", "by formula alone",
                           FLOPINJ_MODE=mode, FLOPINJ_FORCE=1)

    def test_a_lone_rank_that_leaves_them_to_others(self):
        self.trace = self.folder / "trace.rank1.pb"
        self.check("other_ranks", "other ranks of the job read the counters",
                   "--measure-ranks all", RANK=1, FLOPINJ_OUTPUT=self.folder / "trace.pb")


class Ranks(harness.TestCase):
    def ranks(self, *numbers, size, steps=5):
        traces = []
        for rank in numbers:
            traces.append(self.folder / f"{rank}.pb")
            self.run_profiled([*TRAINER, "--steps", steps], output=self.folder / "%r.pb",
                              RANK=rank, WORLD_SIZE=size)
        return traces

    def test_the_rank_that_measures_is_not_slow(self):
        traces = self.ranks(0, 1, 2, 3, size=4)
        report = harness.reduce(*traces)
        self.assertNotIn("Slow: ", text_of(*traces))
        times = [p["gpu_time_ns"] for p in report["ranks"]]
        self.assertEqual(len(set(times)), 1, times)  # equal work takes equal simulated time
        self.assertEqual(sum(times), report["figures"]["gpu_time_ns"])
        for row in report["rank_slowdown"]:
            self.assertAlmostEqual(row["slowdown"] or 1, 1, delta=1e-6, msg=row)

    def test_missing_ranks_are_known_from_the_size_of_the_job(self):
        report = harness.reduce(*self.ranks(0, size=3))
        self.assertEqual((report["figures"]["world_size"], report["figures"]["ranks_missing"]),
                         (3, 2))
        self.assertEqual(report["odd_ranks"], [{"rank": rank, "problem": "missing"}
                                               for rank in (1, 2)])
        self.assertIn("No trace of ranks 1, 2 of 3", report["notices"][0]["notice"])
        self.trace = self.folder / "slurm.rank0.pb"
        self.run_profiled([*TRAINER, "--steps", 1], output=self.folder / "slurm.pb", SLURM_PROCID=0,
                          SLURM_STEP_NUM_TASKS=2)
        self.assertEqual(harness.reduce(self.trace)["odd_ranks"],
                         [{"rank": 1, "problem": "missing"}])
        self.trace = self.folder / "none.pb"  # a size without a rank, or below it, is none
        self.run_profiled([*TRAINER, "--steps", 1], WORLD_SIZE=8)
        self.assertIsNone(harness.reduce(self.trace)["figures"]["world_size"])


class Wall(harness.TestCase):
    def test_start_up_busy_and_gaps_make_up_the_wall_time(self):
        self.run_profiled([*TRAINER, "--steps", 12])
        time, = harness.reduce(self.trace)["device_time"]
        parts = [
            time[part]
            for part in ("before_first_kernel_ns", "busy_ns", "idle_ns", "after_last_kernel_ns")
        ]
        self.assertEqual(sum(parts), time["wall_ns"], parts)
        self.assertGreater(min(parts), 0, parts)


class CutTrace(harness.TestCase):
    def test_a_cut_file_names_the_cut(self):
        self.run_profiled([*TRAINER, "--steps", 200], FLOPINJ_FLUSH_MS=10)
        whole = self.trace.read_bytes()
        ends = packet_ends(whole)
        for share in (0.2, 0.5, 0.8):
            at = int(len(whole) * share)
            cut = self.folder / "cut.pb"
            # A cut between two packets would leave no unfinished packet.
            cut.write_bytes(whole[:at + (at in ends)])
            report = harness.reduce(cut, check=3)
            self.assertTrue(report["ledger"][-1]["balanced"], report["ledger"][-1])
            self.assert_balanced(report)
            first = text_of(cut).splitlines()[1]  # after the mark of simulated traces
            self.assertTrue(first.startswith("PARTIAL: "), first)
            self.assertIn("bytes at the end of an unfinished packet", first)


if __name__ == "__main__":
    harness.main()
