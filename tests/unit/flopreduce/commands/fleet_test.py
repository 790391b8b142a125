"""Merging thousands of recordings: the same bytes by any way, the memory of one recording, few open
files, and what is bad costs itself. Use: fleet_test.py FLOPREDUCE MAKE_TRACES"""

import csv
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

FLOPREDUCE, MAKE_TRACES = sys.argv[1:3]
RANKS = 2000
LAUNCHES = 18  # of a rank
# Its runtime keeps freed memory for a while.
ADDRESS_SANITIZER = b"__asan_init" in Path(FLOPREDUCE).read_bytes()


def run(*arguments, **how):
    return subprocess.run([FLOPREDUCE, *map(str, arguments)], capture_output=True, timeout=300,
                          **how)


def few_open_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))


def peak_bytes(*arguments):
    """Of memory that a run of flopreduce took."""
    child = subprocess.Popen([FLOPREDUCE, *map(str, arguments)])
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, child.returncode
    return usage.ru_maxrss << 10


class Fleet(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="flopreduce-fleet-")
        cls.folder = Path(cls.temporary.name)
        cls.traces = cls.folder / "traces"
        cls.traces.mkdir()
        subprocess.run([MAKE_TRACES, "fleet", str(RANKS), str(cls.traces)], check=True)
        cls.ranks = [cls.traces / f"rank{rank}.pb" for rank in range(RANKS)]
        cls.flat = cls.folder / "flat.sum"
        assert run("merge", "-o", cls.flat, *cls.ranks).returncode == 0
        cls.number = 0

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def merged(self, *inputs, code=0, options=(), **how):
        """The summary, and what was said."""
        Fleet.number += 1
        out = self.folder / f"{Fleet.number}.sum"
        done = run("merge", "-o", out, *options, *inputs, **how)
        self.assertEqual(done.returncode, code, done.stderr.decode()[-2000:])
        return out, done.stderr.decode()

    def report(self, *inputs):
        return json.loads(run("--format", "json", *inputs).stdout)

    def tree(self, inputs, width):
        while len(inputs) > 1:
            inputs = [self.merged(*inputs[at:at + width])[0]
                      for at in range(0, len(inputs), width)]
        return inputs[0].read_bytes()

    def test_any_way_of_merging_makes_the_same_bytes(self):
        whole = self.flat.read_bytes()
        few = self.ranks[:300]
        expected = self.merged(*few)[0].read_bytes()
        shuffled = few[:]
        random.Random(1).shuffle(shuffled)
        self.assertEqual(self.merged(*shuffled)[0].read_bytes(), expected)
        self.assertEqual(self.tree(shuffled, 8), expected)
        self.assertEqual(self.tree(self.ranks, 100), whole)
        self.assertEqual(self.merged(self.flat)[0].read_bytes(), whole)
        self.assertEqual(self.merged(self.flat, self.traces)[0].read_bytes(), whole)
        # Names of files are in no byte: other folders, other names, no name at all.
        links = self.folder / "links"
        links.mkdir()
        for number, path in enumerate(shuffled):
            (links / f"{number}.pb").hardlink_to(path)
        self.assertEqual(self.merged(links)[0].read_bytes(), expected)
        one_pipe = b"".join(path.read_bytes() for path in shuffled)
        self.assertEqual(self.merged("-", input=one_pipe)[0].read_bytes(), expected)
        report = self.report(self.flat)
        self.assertEqual(report["figures"]["launches"], RANKS * LAUNCHES)
        self.assertEqual([row["rank"] for row in report["processes"]], list(range(RANKS)))

    def test_a_list_of_the_recordings_in_each_input(self):
        both, _ = self.merged(*self.ranks[:2])
        listed = self.folder / "list.csv"
        self.merged(both, self.ranks[2], self.ranks[0], options=("--list", listed))
        with open(listed, newline="") as lines:
            rows = list(csv.DictReader(lines))
        self.assertEqual([(row["file"], row["rank"]) for row in rows],
                         [(str(both), "0"), (str(both), "1"), (str(self.ranks[2]), "2"),
                          (str(self.ranks[0]), "0")])
        of = {str(row["rank"]): row["session"]
              for row in self.report(*self.ranks[:3])["processes"]}
        self.assertEqual([row["session"] for row in rows],
                         [of[rank] for rank in ("0", "1", "2", "0")])

    def test_some_tables_as_files(self):
        folder = self.folder / "some"
        done = run("--format=csv", "--table=figures,rows", "-o", f"{folder}/", self.flat)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(file.name for file in folder.iterdir()),
                         ["figures.csv", "rows.csv"])
        for key in ("figures", "rows"):
            alone = run("--format=csv", f"--table={key}", self.flat).stdout
            self.assertEqual((folder / f"{key}.csv").read_bytes(), alone)
        said = run("--format=csv", "--table=figures,rows", self.flat)
        self.assertEqual(said.returncode, 2)
        self.assertIn(b"go to a folder", said.stderr)

    def test_more_inputs_than_open_files(self):
        summary, _ = self.merged(self.traces, preexec_fn=few_open_files)
        self.assertEqual(summary.read_bytes(), self.flat.read_bytes())
        done = run("--format", "json", self.traces, preexec_fn=few_open_files)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["figures"]["launches"], RANKS * LAUNCHES)

    @unittest.skipIf(ADDRESS_SANITIZER, "the address sanitizer's memory is not flopreduce's")
    def test_memory_does_not_grow_with_the_recordings(self):
        size = self.flat.stat().st_size
        few = peak_bytes("merge", "-o", self.folder / "few.sum", *self.ranks[:20])
        for inputs in ((self.traces,), (self.flat,)):
            grown = peak_bytes("merge", "--force", "-o", self.folder / "many.sum", *inputs) - few
            # Of each recording it is known where it is: some hundred bytes.
            self.assertLess(grown, 2000 * RANKS, inputs)
            self.assertLess(grown, size, inputs)

    @unittest.skipIf(ADDRESS_SANITIZER, "the address sanitizer's memory is not flopreduce's")
    def test_reports_of_very_many_traces_take_little_memory(self):
        """10,000 take 300 MB at most, with 30 MB that do not depend on their number; all tables as
        JSON take 1.3 times as much."""
        text = ("--jobs=1", "-o", "/dev/null", self.traces)
        self.assertLess(peak_bytes("--force", *text), 30e6 + 27e3 * RANKS)
        self.assertLess(peak_bytes("--force", "--format=json", *text),
                        1.3 * (30e6 + 27e3 * RANKS))

    def test_what_is_bad_costs_itself_and_is_named(self):
        good = self.ranks[:100]
        bad = self.folder / "bad"
        bad.mkdir()
        corrupt, truncated, text, simulated, copy = (
            bad / name for name in ("corrupt.pb", "truncated.pb", "text.pb", "simulated.pb",
                                    "copy.pb"))
        for path, rank in ((corrupt, 200), (truncated, 201)):
            path.write_bytes(self.ranks[rank].read_bytes())
        broken = bytearray(corrupt.read_bytes())
        broken[broken.index(b"kernel_4")] ^= 1
        corrupt.write_bytes(broken)
        truncated.write_bytes(truncated.read_bytes()[:-60])
        text.write_text("no trace\n")
        with open(simulated, "wb") as out:
            subprocess.run([MAKE_TRACES, "fleet_simulated"], stdout=out, check=True)
        copy.write_bytes(self.ranks[7].read_bytes())
        missing = bad / "missing.pb"
        summary, said = self.merged(*good[:50], corrupt, missing, truncated, copy, text, simulated,
                                    *good[50:], code=3)
        for path in (corrupt, missing, truncated, text, simulated):
            self.assertIn(f"{path}: ", said)
        self.assertNotIn("copy.pb", re.sub("; traces there: .*", "", said))
        for path in good:
            self.assertNotIn(f"{path}:", said)
        # The others are there as they are without the bad ones.
        expected = self.merged(*good)[0].read_bytes()
        self.assertEqual(summary.read_bytes()[:len(expected)], expected)
        report = self.report(summary)
        self.assertEqual([row["rank"] for row in report["processes"]],
                         [*range(100), 200, 201])
        self.assertEqual({(d["file"], d["kind"]) for d in report["damage"]} & {
            ("rank 200, node25 pid 500", "bad_frame"),
            ("rank 201, node25 pid 501", "torn_tail")},
            {("rank 200, node25 pid 500", "bad_frame"),
             ("rank 201, node25 pid 501", "torn_tail")})
        self.assertEqual({d["file"] for d in report["damage"]},
                         {"rank 200, node25 pid 500", "rank 201, node25 pid 501"})

    def test_of_copies_the_one_with_most_launches_counts(self):
        """However they come: traces of a program that still ran are copied more than once."""
        whole = self.ranks[3]
        early = self.folder / "early.pb"
        early.write_bytes(whole.read_bytes()[:-150])
        expected = self.merged(whole)[0].read_bytes()
        early_summary, whole_summary = self.merged(early)[0], self.merged(whole)[0]
        self.assertNotEqual(early_summary.read_bytes(), expected)
        for inputs in ((early, whole), (whole, early), (early_summary, whole),
                       (whole, early_summary), (early, whole_summary),
                       (early_summary, whole_summary), (whole_summary, early_summary)):
            self.assertEqual(self.merged(*inputs)[0].read_bytes(), expected, inputs)

    def test_a_damaged_place_in_a_summary_costs_one_recording(self):
        whole = self.flat.read_bytes()
        for place in (b"node77", b"kernel_4"):  # in a header; in a definition
            at = whole.index(place, len(whole) // 4)
            broken = bytearray(whole)
            broken[at] ^= 1
            path = self.folder / "broken.sum"
            path.write_bytes(broken)
            again, said = self.merged(path)
            self.assertIn("broken.sum: ", said)
            for summary in (path, again):
                report = self.report(summary)
                self.assertTrue(report["figures"]["partial"])
                self.assertEqual(report["figures"]["launches"], RANKS * LAUNCHES, place)
                self.assertEqual(len(report["processes"]), RANKS)
                damaged = {d["file"] for d in report["damage"]} - {str(path)}
                self.assertLessEqual(len(damaged), 2, damaged)
            self.assertEqual(self.merged(again)[0].read_bytes(), again.read_bytes())
            # Joined with the recording itself, all is whole again.
            mended = self.merged(again, self.traces)[0]
            if place == b"kernel_4":
                self.assertEqual(mended.read_bytes(), whole)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
