"""Commands of flopreduce with what they answer: the table answers.cases, which begins with how a
case is written. Use: answers_test.py FLOPREDUCE MAKE_TRACES"""

import itertools
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FLOPREDUCE, MAKE_TRACES = (Path(p).resolve() for p in sys.argv[1:3])
TABLE = Path(__file__).with_name("answers.cases")
FAILS = (2, 5)  # with one line on standard error, and nothing on standard output


def rows():
    """[(line number, [field])]; what is indented goes on with the line before."""
    found = []
    for number, line in enumerate(TABLE.read_text().splitlines(), 1):
        if line.startswith(" "):
            found[-1][1] += " " + line.strip()
        elif line and line[0] != "#":
            found.append([number, line])
    return [(number, [field.strip() for field in re.split(r"\s\|(?:\s|$)", row)])
            for number, row in found]


def plain(text):
    """With its escapes read."""
    return text.encode().decode("unicode_escape") if "\\" in text else text


def spelled(command, texts):
    """[(command, texts)]: with each of the alternatives {A;B}, and their first words for $1, $2."""
    parts = re.split(r"\{([^{}]*;[^{}]*)\}", command)  # what is between them, and they
    for chosen in itertools.product(*(part.split(";") for part in parts[1::2])):
        words = itertools.zip_longest(parts[::2], chosen, fillvalue="")
        yield "".join(itertools.chain(*words)), [
            re.sub(r"\$(\d)", lambda m: chosen[int(m[1]) - 1].split()[0], text) for text in texts]


class Answers(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="flopreduce-cases-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def make(self, name, content):
        path = self.folder / name
        if name.endswith("/"):
            path.mkdir()
        elif content.startswith("@"):
            path.write_bytes((self.folder / content[1:]).read_bytes())
        else:
            path.write_text(plain(content))

    def run_one(self, command):
        environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")}
        return subprocess.run([FLOPREDUCE, *shlex.split(command)], cwd=self.folder, text=True,
                              capture_output=True, timeout=60, env=environment)

    def check(self, code, expected, done):
        self.assertEqual(done.returncode, code)
        if code in FAILS:
            self.assertTrue(done.stderr.startswith("flopreduce: "))
            if not any(text.startswith("out: ") for text in expected):
                self.assertEqual(done.stdout, "")
            if not any("\n" in plain(text) for text in expected):
                self.assertEqual(len(done.stderr.splitlines()), 1)
        elif code == 0 and not any(text.startswith("err: ") for text in expected):
            self.assertEqual(done.stderr, "")
        for text in expected:
            where, words = re.fullmatch(r"(?:(out|err|not|line): )?(.*)", text, re.S).groups()
            words = plain(words)
            output = (done.stderr if where == "err" or where is None and code in (1, *FAILS)
                      else done.stdout)
            if where == "not":
                self.assertNotIn(words, done.stdout)
            elif where == "line":
                self.assertIn(words.split(), [line.split() for line in done.stdout.splitlines()])
            else:
                self.assertIn(words, output)

    def test_every_case(self):
        cases = []
        for number, (first, *fields) in rows():
            what, *names = first.split()
            if what == "traces":
                for name in names:
                    (self.folder / f"{name}.pb").write_bytes(
                        subprocess.run([MAKE_TRACES, name], capture_output=True, check=True).stdout)
            elif what == "file":
                self.make(*names, "".join(fields))
            else:
                command, *expected = fields
                cases += [(number, int(what), *one) for one in spelled(command, expected)]
        there = sorted(self.folder.iterdir())
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            answers = pool.map(lambda case: self.run_one(case[2]), cases)
            for (number, code, command, expected), done in zip(cases, answers, strict=True):
                with self.subTest(f"{TABLE.name}:{number}: flopreduce {command}",
                                  stderr=done.stderr[:2000], stdout=done.stdout[:2000]):
                    self.check(code, expected, done)
        self.assertEqual(sorted(self.folder.iterdir()), there)
        self.assertGreater(len(cases), 200)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
