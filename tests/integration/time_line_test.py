"""The time line for Perfetto, read by what the Trace Event Format says of it: ranges cover their
kernels exactly, nest, and are sorted."""

import gzip
import json
import unittest
from collections import defaultdict
from decimal import Decimal

import harness

STEPS = 6


class TimeLine(harness.TestCase):
    def train(self, *arguments, **settings):
        self.run_profiled(
            [harness.TRAINER, "--batch", 8, "--model", "mlp", "--steps", STEPS, *arguments],
            FLOPINJ_FORCE=1, **settings)

    def time_line(self, *options):
        done = harness.run([harness.FLOPREDUCE, "--format", "chrome-trace", *options, self.trace],
                           harness.clean_environment(), check=True)
        return json.loads(done.stdout, parse_float=Decimal)

    def tracks(self, whole):
        """By (process, name of the track): kernels, and slices as (begin, end, name, depth)."""
        names, kernels, slices, open_ = {}, defaultdict(list), defaultdict(list), defaultdict(list)
        for event in whole["traceEvents"]:
            track = event["pid"], event["tid"]
            if event["ph"] == "M" and event["name"] == "thread_name":
                self.assertNotIn(track, names)
                names[track] = event["pid"], event["args"]["name"]
            elif event["ph"] == "X":
                self.assertGreaterEqual(event["dur"], 0)
                kernels[names[track]].append(
                    (event["ts"], event["ts"] + event["dur"], event["args"].get("range", ""),
                     event["cat"]))
            elif event["ph"] == "B":
                open_[track].append(event)
            elif event["ph"] == "E":
                begin = open_[track].pop()  # there is one
                slices[names[track]].append(
                    (begin["ts"], event["ts"], begin["name"], len(open_[track])))
        self.assertFalse(any(open_.values()))
        for rows in kernels.values():
            self.assertEqual(rows, sorted(rows, key=lambda row: row[:2]))
            for (_, end, *_), (begin, *_) in zip(rows, rows[1:]):
                self.assertLessEqual(end, begin)
        return kernels, slices

    def check_slices(self, kernels, slices):
        """Each slice reaches from its first kernel to its last, and every kernel is in the slices
        that its path names, in that order."""
        for begin, end, *_ in slices:
            self.assertLessEqual(begin, end)
            inside = [k for k in kernels if begin <= k[0] and k[1] <= end]
            self.assertEqual((inside[0][0], max(k[1] for k in inside)), (begin, end))
        for start, stop, path, _ in kernels:
            around = sorted((depth, name) for begin, end, name, depth in slices
                            if begin <= start and stop <= end)
            self.assertEqual("/".join(name for _, name in around), path)

    def test_ranges_phases_and_steps(self):
        for mode in ("plain", "autograd-thread", "graph", "streams"):
            with self.subTest(mode):
                self.train("--mode", mode)
                whole = self.time_line()
                kernels, slices = self.tracks(whole)
                self.assertTrue(kernels)
                for (pid, name), rows in kernels.items():
                    self.check_slices(rows, slices[pid, name + " ranges"])
                    phases = slices[pid, name + " phases"]
                    for begin, end, phase, depth in phases:
                        self.assertEqual(depth, 0)
                        inside = [k for k in rows if begin <= k[0] and k[1] <= end]
                        self.assertEqual({k[3] for k in inside}, {phase})
                        self.assertEqual((inside[0][0], inside[-1][1]), (begin, end))
                    self.assertEqual(sum(1 for k in rows if not any(
                        b <= k[0] and k[1] <= e for b, e, *_ in phases)), 0)
                steps = [row for (_, name), rows in slices.items() if name.startswith("steps")
                         for row in rows]
                workers = 4 if mode == "streams" else 1
                numbers = sorted(int(name.removeprefix("step ")) for _, _, name, _ in steps)
                self.assertEqual(len(numbers), len(set(numbers)))
                self.assertGreaterEqual(len(numbers), STEPS)
                self.assertEqual(len(numbers) % STEPS, 0)
                if workers == 1:
                    self.assertEqual(numbers, list(range(1, STEPS + 1)))

    def test_each_step_has_its_own_range(self):
        self.train()
        kernels, slices = self.tracks(self.time_line())
        (where, rows), = kernels.items()
        steps = [row for row in slices[where[0], where[1] + " ranges"] if row[3] == 0]
        self.assertEqual([name for _, _, name, _ in sorted(steps)], ["step"] * STEPS)
        of_steps = [row[:2] for row in slices[where[0], "steps"]]
        self.assertEqual(of_steps, [row[:2] for row in sorted(steps)])

    def test_counters(self):
        self.train()
        whole = self.time_line("--peak", "fp32=1T")
        by_name = defaultdict(list)
        for event in whole["traceEvents"]:
            if event["ph"] == "C":
                by_name[event["name"]].append((event["ts"], float(event["args"][event["name"]])))
        self.assertEqual(set(by_name), {"FLOP/s", "HFU %"})
        # All FLOP are fp32: utilization is FLOP/s / peak.
        self.assertEqual(len(by_name["FLOP/s"]), len(by_name["HFU %"]))
        # A launch's FLOP are whole numbers in each bin that it lies in.
        bin_s = float(by_name["FLOP/s"][1][0] - by_name["FLOP/s"][0][0]) / 1e6
        for (a, rate), (b, share) in zip(by_name["FLOP/s"], by_name["HFU %"]):
            self.assertEqual(a, b)
            self.assertAlmostEqual(share, rate / 1e12 * 100, delta=2 / bin_s / 1e12 * 100)
        self.assertGreater(max(share for _, share in by_name["HFU %"]), 0)

    def test_metadata(self):
        self.train()
        process, = self.time_line()["otherData"]["processes"]
        report = harness.reduce(self.trace)
        header = report["processes"][0]
        self.assertEqual(process["pid"], header["pid"])
        self.assertIn("trainer --batch 8", process["command"])
        self.assertTrue(process["host"])

    def test_compressed(self):
        self.train()
        plain, packed = self.folder / "t.json", self.folder / "t.json.gz"
        for path in (plain, packed):
            harness.run([harness.FLOPREDUCE, "--format", "chrome-trace", "-o", path, self.trace],
                        harness.clean_environment(), check=True)
        self.assertEqual(gzip.decompress(packed.read_bytes()), plain.read_bytes())
        self.assertLess(packed.stat().st_size * 4, plain.stat().st_size)

    def test_time_range(self):
        self.train()
        everything = [e for e in self.time_line()["traceEvents"] if e["ph"] == "X"]
        begin, end = everything[len(everything) // 3]["ts"], everything[len(everything) // 2]["ts"]
        chosen = [e for e in self.time_line("--time-range", f"{begin}us..{end}us")["traceEvents"]
                  if e["ph"] == "X"]
        self.assertEqual(
            [e["ts"] for e in chosen],
            [e["ts"] for e in everything if e["ts"] + e["dur"] >= begin and e["ts"] < end])
        for wrong in ("", "..", "5", "3s..2s", "x..y", "1s..1s", "-1s..2s"):
            done = harness.run([harness.FLOPREDUCE, "--format", "chrome-trace",
                                f"--time-range={wrong}", self.trace], harness.clean_environment())
            if wrong:
                self.assertEqual((done.returncode, done.stdout), (2, ""), wrong)
                self.assertIn("--time-range", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
