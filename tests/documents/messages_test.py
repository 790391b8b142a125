"""docs/troubleshooting.md lists each diagnostic of the recorder and each reason of an unmeasured
launch that the sources have, and no other."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# A diagnostic's code is a word, a dot and a name; names of libraries look like one.
CODE = re.compile(r'"((?!lib)[a-z]+\.[a-z_]+)"')
REASON = re.compile(r'(?:return|k[A-Z][A-Za-z]* =) "([a-z_]+):?"')
REASON_FILES = ("report/builders/ledger.cpp", "report/ledger.h")


def sources(*folders):
    for folder in folders:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".h", ".cpp"):
                yield path.read_text()


def part(title):
    page = (ROOT / "docs/troubleshooting.md").read_text()
    return page.split(f"\n## {title}\n")[1].split("\n## ")[0]


class Troubleshooting(unittest.TestCase):

    def test_has_every_diagnostic(self):
        in_sources = {code for text in sources("injector", "collector", "tools/import")
                      for code in CODE.findall(text)} - {"torch.profiler"}
        self.assertGreater(len(in_sources), 50)
        self.assertEqual(set(re.findall(r"`([a-z]+\.[a-z_]+)`", part("Diagnostics"))), in_sources)

    def test_has_every_reason(self):
        in_sources = {
            reason for name in REASON_FILES
            for reason in REASON.findall((ROOT / "tools/flopreduce" / name).read_text())
        }
        self.assertGreater(len(in_sources), 6)
        written = re.findall(r"`([a-z_]+)(?::GROUP)?`[:,]",
                             part("Why launches have no FLOP count"))
        self.assertEqual(set(written), in_sources)


if __name__ == "__main__":
    unittest.main()
