"""Which tests of a CTest run were skipped, and why: a line of each reason, with the tests that gave
it. Use: skipped.py JUNIT

A test that is skipped says "skipped: REASON; `COMMAND` brings it" on a line of its own. Cases of
Python's unittest that are skipped within a test have their reason behind "skipped" in quotes.
"""

import re
import sys
from collections import defaultdict
from xml.etree import ElementTree

MOST = 2  # names of a line
WHOLE = re.compile(r"^skipped: (.+)$", re.I | re.M)
CASE = re.compile(r"^.* \.\.\. skipped '(.+)'$|^.* \.\.\. skipped \"(.+)\"$", re.M)


def reasons(test):
    output = test.findtext("system-out") or ""
    if test.find("skipped") is not None or test.get("status") in ("notrun", "disabled"):
        yield next(iter(WHOLE.findall(output)), "it gives no reason"), "tests"
        return
    for single, double in CASE.findall(output):
        yield single or double, "cases"


def main():
    found = {"tests": defaultdict(list), "cases": defaultdict(list)}
    for test in ElementTree.parse(sys.argv[1]).iter("testcase"):
        for reason, kind in reasons(test):
            found[kind][reason].append(test.get("name"))
    for kind, said in found.items():
        for reason, names in sorted(said.items()):
            of = (f"{len(names)} cases of " if len(names) > 1 else "a case of ") * (kind == "cases")
            some = list(dict.fromkeys(names))
            more = f" and {len(some) - MOST} more" * (len(some) > MOST)
            print(f"skipped: {of}{' '.join(some[:MOST])}{more}: {reason}")


if __name__ == "__main__":
    main()
