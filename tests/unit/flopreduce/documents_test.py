"""Runs the commands that documents show, and compares what they print with what the documents say they print.

Usage: documents_test.py BUILD DOCUMENT...

A command is a line of an indented block that starts with "$ "; its output is what follows, to the next command or the block's end.
Commands of one document run in one folder, in their order, so that one can read what another wrote."""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BUILD, DOCUMENTS = Path(sys.argv[1]).resolve(), [Path(path) for path in sys.argv[2:]]


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
    if program == "flopreduce":
        return [BUILD / "bin/flopreduce", *arguments]
    if re.fullmatch(r"tests/networks/\w+\.py", program):
        return [sys.executable, ROOT / program, *(BUILD if a == "build/dev" else a for a in arguments)]
    raise AssertionError(f"no known program: {command}")


class Documents(unittest.TestCase):
    maxDiff = None

    def test_commands_print_what_is_written(self):
        environment = {**os.environ, "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        environment.pop("COLUMNS", None)
        for document in DOCUMENTS:
            commands = commands_of(document.read_text())
            self.assertGreater(len(commands), 0, f"{document} shows no command")
            with tempfile.TemporaryDirectory(prefix="flopinj-documents-") as folder:
                for command, expected in commands:
                    with self.subTest(document=document.name, command=command):
                        done = subprocess.run(arguments_of(command), cwd=folder, env=environment, capture_output=True, text=True,
                                              timeout=200, check=False)
                        self.assertEqual((done.returncode, done.stderr), (0, ""))
                        self.assertEqual(done.stdout.rstrip("\n"), expected)


class Reading(unittest.TestCase):
    def test_commands_and_their_output(self):
        text = "Words\n\n    $ flopreduce a 'b c'\n    one\n\n      two\n    $ flopreduce d\n\nWords\n\n    no output\n"
        self.assertEqual(commands_of(text), [("flopreduce a 'b c'", "one\n\n  two"), ("flopreduce d", "")])
        with self.assertRaises(AssertionError):
            arguments_of("rm -r x")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
