"""flopinj demo, and the commands of flopreduce as flopinj's."""

import contextlib
import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import harness
from theory import Expected

TRACE = Path(__file__).resolve().parents[1] / "golden" / "training.pb"
MODEL = ("--model", "gpt", "--checkpoint")
BUSY = 10  # processes that only compute, beside the program
# Without a pause while a recording begins and its first launches are measured, which takes a second
# of these; then, all of them together, half of the time.
COMPUTE = """
import time
began = time.time()
while (now := time.time()) < began + 600:
    if now > began + 4 and now % 0.2 < 0.1:
        time.sleep(0.1 - now % 0.2)
"""
ENERGY = ("energy_j", "power_w", "flop_per_j")


class Case(harness.TestCase):
    def flopinj(self, *words, expect=0):
        done = harness.run([harness.FLOPINJ, *words], harness.clean_environment(),
                           cwd=self.folder, timeout=600)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done


def busy_machine():
    """One core has all the load, and so the program has that core only: the others are left to the
    tests that run beside. Ends with its `with`, and of itself after ten minutes."""
    stack = contextlib.ExitStack()
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    stack.callback(os.sched_setaffinity, 0, cores)
    for _ in range(BUSY):
        program = stack.enter_context(subprocess.Popen(
            [sys.executable, "-c", COMPUTE]))
        stack.callback(program.kill)
    return stack


class Demo(Case):
    def test_its_figures_are_those_of_theory_and_it_may_run_again(self):
        for _ in range(2):
            done = self.flopinj("demo")
            self.assertEqual(sorted(path.name for path in self.folder.iterdir()),
                             ["flopinj-demo.html", "flopinj-demo.pb"])
        shapes = subprocess.run([harness.TRAINER, *MODEL, "--steps", "0", "--print-shapes"],
                                capture_output=True, check=True).stdout
        shapes = json.loads(shapes) | {"steps": 20}
        flop = Expected(shapes).flop
        self.assertIn(f"{flop:,} in ", done.stdout)
        self.check_screen(self.folder / "flopinj-demo.pb")
        page = (self.folder / "flopinj-demo.html").read_text()
        self.assertIn(f"{flop:,}", page)
        report = harness.reduce(self.folder / "flopinj-demo.pb")
        figures = report["figures"]
        steps, = report["step_summary"]  # of all launches
        self.assertAlmostEqual(steps["mfu"] / steps["hfu"], figures["mfu"] / figures["hfu"], 4)
        # Its host runs ahead: no step is shorter than its kernels, no share above theirs.
        self.assertLessEqual(steps["hfu"], figures["hfu_kernel_time"])
        rows = harness.run([harness.FLOPREDUCE, "--format=csv", "--table=step_list",
                            self.folder / "flopinj-demo.pb"], harness.clean_environment(),
                           check=True).stdout
        for step in csv.DictReader(rows.splitlines()):
            self.assertLessEqual(int(step["busy_ns"]), int(step["wall_ns"]))
        # A share of peak that one can see, and recomputed work between HFU and MFU.
        self.assertGreater(figures["mfu"], 0.2)
        self.assertGreater(figures["hfu"], figures["mfu"])
        self.assertIn(f"a page: {self.folder}/flopinj-demo.html", done.stderr)

    def figures(self):
        """All that the demo's screen and its trace say, but for what is of the machine: the
        process, when it ran, what the profiler cost in real time, when it wrote, and what the
        energy meter showed whenever it was read."""
        screen = re.sub(r"(?m)^  Profiler cost .*$", "", self.flopinj("demo").stdout)
        report = harness.reduce(self.folder / "flopinj-demo.pb")
        for real in ("processes", "runs", "overhead", "coverage_growth"):
            del report[real]
        for row in report["ranks"]:
            del row["own_ns"]
        report["screen"] = [row for row in report["screen"] if row["name"] != "Profiler cost"]
        report["time"] = [row for row in report["time"] if "real time" not in row["what"]]
        for row in (report["figures"], *report["devices"]):
            for key in [key for key in row if key.startswith(ENERGY)]:
                del row[key]
        said = json.dumps([screen.splitlines(), report], indent=1)
        return re.sub(r" pid \d+\b", " pid ...", said).splitlines()

    def test_its_figures_are_the_same_on_a_busy_machine(self):
        idle = self.figures()
        self.assertIn("2,120 measured, 0 extrapolated, 0 unmeasured, 0 dropped", "".join(idle))
        with busy_machine():
            busy = self.figures()
        self.assertEqual([pair for pair in zip(idle, busy) if pair[0] != pair[1]], [])
        self.assertEqual(len(idle), len(busy))

    def check_screen(self, trace):
        for width in (60, 80, 100):
            lines = subprocess.run([harness.FLOPREDUCE, trace], capture_output=True, check=True,
                                   text=True, env=harness.clean_environment() |
                                   {"COLUMNS": str(width)}).stdout.splitlines()
            self.assertLessEqual(len(lines), 30)
            self.assertLessEqual(max(map(len, lines)), width)
            self.assertTrue(any(line.startswith("  Executed ") for line in lines[8:12]), lines)
            for line in ("  HFU ", "  MFU ", "  Peak lost "):
                self.assertTrue(any(line in shown for shown in lines[:10]), lines)


class ReducersCommands(Case):
    def test_they_are_the_same(self):
        for words in (("report", TRACE), ("report", "--format", "json", TRACE),
                      ("compare", TRACE, TRACE), ("query", TRACE, "select count(*) from kernels"),
                      ("report", "--help"), ("merge",), ("--complete", "merge", "--")):
            with self.subTest(words):
                here, there = (subprocess.run(["flopinj", *words], executable=program,
                                              env=harness.clean_environment(),
                                              capture_output=True, check=False)
                               for program in (harness.FLOPINJ, harness.FLOPREDUCE))
                self.assertEqual((here.returncode, here.stdout, here.stderr),
                                 (there.returncode, there.stdout, there.stderr))

    def test_each_says_the_name_that_it_was_started_by(self):
        for program, words, report in ((harness.FLOPINJ, ["compare", TRACE], "flopinj report"),
                                       (harness.FLOPREDUCE, ["compare", TRACE], "flopreduce")):
            name = program.name
            done = subprocess.run([program, *words], env=harness.clean_environment(),
                                  capture_output=True, check=False, text=True)
            self.assertTrue(done.stderr.startswith(f"{name}: B is required"), done.stderr)
            self.assertIn(f"(see {name} compare --help)", done.stderr)
            shown = subprocess.run([program, "report", "--help"], capture_output=True, check=True,
                                   text=True).stdout
            self.assertTrue(shown.startswith(f"Usage: {report} [OPTION...] [TRACE...]"), shown)
            self.assertIn(f"{report} --format html -o report.html", shown)

    def test_help_names_all(self):
        shown = self.flopinj("help").stdout
        there = subprocess.run([harness.FLOPREDUCE, "--complete", ""], capture_output=True,
                               check=True, text=True).stdout
        commands = [line.split("\t")[0] for line in there.splitlines()[1:] if "\t" in line]
        self.assertGreater(len(commands), 8)
        for command in commands:
            self.assertRegex(shown, rf"(?m)^  {command} ")
        self.assertEqual(self.flopinj("help", "compare").stdout,
                         self.flopinj("compare", "--help").stdout)


if __name__ == "__main__":
    harness.main()
