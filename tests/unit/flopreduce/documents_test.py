"""Runs the commands that documents show, and compares what they print with what the documents say
they print.

Usage: documents_test.py BUILD           the test
       documents_test.py BUILD --write   writes into the documents of COMMANDS what their commands
       print

A command is a line of an indented block that starts with "$ "; its output is what follows, to the
next command or the block's end. Commands of one document run in one folder, in their order, so that
one can read what another wrote. Of samples that are the report of a program, the sections are
compared that do not depend on the machine, times and shares left out."""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(sys.argv[1]).resolve()
COMMANDS = ("docs/published-figures.md", "docs/networks.md")
OPERATORS = "Operators: backward / forward of matrix work"
# Document, its program's options, sections.
SAMPLES = (
    ("README.md", ("--model", "cnn", "--mode", "autograd-thread"),
     ("Phases", "Kernels by GPU time (5 of 14)")),
    ("tools/flopreduce/README.md", ("--model", "cnn", "--mode", "autograd-thread", "--steps", "12",
                                    "--ranges", "pytorch"), (OPERATORS,)),
)
ENVIRONMENT = {
    **{k: v for k, v in os.environ.items() if k != "COLUMNS"}, "NO_COLOR": "1",
    "PYTHONDONTWRITEBYTECODE": "1"
}


def commands_of(text):
    """Pairs of a command and its output."""
    found, inside = [], False
    for line in text.splitlines():
        if line.startswith("    $ "):
            found.append([line[6:], []])
            inside = True
        elif line and not line.startswith("    "):
            inside = False
        elif inside:
            found[-1][1].append(line[4:])
    return [(command, "\n".join(output).rstrip("\n")) for command, output in found]


def arguments_of(command):
    program, *arguments = shlex.split(command)
    if program.startswith("COLUMNS="):
        return ["env", program, *arguments_of(shlex.join(arguments))]
    if program == "flopreduce":
        return [BUILD / "bin/flopreduce", *arguments]
    if re.fullmatch(r"tests/networks/\w+\.py", program):
        return [
            sys.executable, ROOT / program, *(BUILD if a == "build/dev" else a for a in arguments)
        ]
    raise AssertionError(f"no known program: {command}")


def output_of(arguments, folder, **environment):
    done = subprocess.run(arguments, cwd=folder, env=ENVIRONMENT | environment, text=True,
                          capture_output=True, timeout=200, check=False)
    assert (done.returncode, done.stderr) == (0, ""), f"exit code {done.returncode}: {done.stderr}"
    return done.stdout.rstrip("\n")


def section(text, title):
    """The lines of a section as words, without what time they took."""
    lines = iter(line.strip() for line in text.splitlines())
    assert title in lines, f"no section '{title}'"  # which goes on to the line behind it
    found = []
    for line in lines:
        if not line:
            break
        line = re.sub(r"[\d.]+ ([num]?s|%)(?!\w)", "...", line)
        found.append(" ".join(line.split()))
    return found


class Commands(unittest.TestCase):
    maxDiff = None

    def test_they_print_what_is_written(self):
        for name in COMMANDS:
            commands = commands_of((ROOT / name).read_text())
            self.assertGreater(len(commands), 0, f"{name} shows no command")
            with tempfile.TemporaryDirectory(prefix="flopinj-documents-") as folder:
                for command, expected in commands:
                    with self.subTest(document=name, command=command):
                        self.assertEqual(output_of(arguments_of(command), folder), expected,
                                         "written anew by --write")


class Samples(unittest.TestCase):
    def test_they_are_what_programs_give(self):
        for name, options, titles in SAMPLES:
            with tempfile.TemporaryDirectory(prefix="flopinj-documents-") as folder:
                run = [
                    BUILD / "bin/flopinj", "run", "--simulate", "--budget", "none",
                    "--plan-wait-ms", "60000", "-o", "t.pb", "--"
                ]
                subprocess.run([*run, BUILD / "lib/flopinj/trainer/trainer", *options], cwd=folder,
                               env=ENVIRONMENT, check=True, capture_output=True, timeout=200)
                report = "\n\n".join(
                    output_of([BUILD / "bin/flopreduce", *options, "t.pb"], folder, COLUMNS="96")
                    for options in ((), ("--all",)))
            for title in titles:
                with self.subTest(document=name, section=title):
                    self.assertEqual(section((ROOT / name).read_text(), title),
                                     section(report, title))


class Reading(unittest.TestCase):
    def test_commands_and_their_output(self):
        text = ("Words\n\n    $ flopreduce a 'b c'\n    one\n\n      two\n    $ flopreduce d\n\n"
                "Words\n\n    no output\n")
        self.assertEqual(commands_of(text), [("flopreduce a 'b c'", "one\n\n  two"),
                                             ("flopreduce d", "")])
        with self.assertRaises(AssertionError):
            arguments_of("rm -r x")

    def test_sections_without_times(self):
        text = ("  Head\n\n    One\n      a  1.5 kFLOP  2.000 us  3.1 %\n      b      2   17 s\n\n"
                "    Two\n      c\n")
        self.assertEqual(section(text, "One"), ["a 1.5 kFLOP ... ...", "b 2 ..."])
        self.assertEqual(section(text, "Two"), ["c"])


def write():
    for name in COMMANDS:
        text = (ROOT / name).read_text()
        with tempfile.TemporaryDirectory(prefix="flopinj-documents-") as folder:
            for command, written in commands_of(text):
                before, after = ("".join(f"\n    {line}".rstrip(" ")
                                         for line in output.splitlines())
                                 for output in (written, output_of(arguments_of(command), folder)))
                text = text.replace(f"    $ {command}{before}\n", f"    $ {command}{after}\n", 1)
        (ROOT / name).write_text(text)


if __name__ == "__main__":
    if sys.argv[2:] == ["--write"]:
        write()
    else:
        unittest.main(argv=sys.argv[:1])
