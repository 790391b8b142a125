#!/usr/bin/env python3
"""Streams recorded from real frameworks: flopreduce's report of each against the oracle, to the
last digit.

Usage: frameworks_test.py BUILD [PATTERN...]
       frameworks_test.py BUILD --differences [PATTERN...]   prints what differs, and as what
       frameworks_test.py BUILD --shorten     takes what no longer differs off the list
       frameworks_test.py BUILD --extend      the same, and puts what is new on it

expected_differences.json is the one list of what is known to differ: by cause, by stream, the
figures. The test holds it exactly: a difference that is not in it fails, and so does one in it that
no longer occurs. A cause that begins with "not known: " is no fault: the figure has to be reported
as not known, for the reason that follows."""

import concurrent.futures
import fnmatch
import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True

import compare  # noqa: E402

HERE = Path(__file__).resolve().parent
STREAMS, KNOWN = HERE / "streams", HERE / "expected_differences.json"
SUFFIX = ".jsonl.xz"


def streams(patterns):
    names = sorted(path.name.removesuffix(SUFFIX) for path in STREAMS.glob(f"*{SUFFIX}"))
    return [n for n in names if not patterns or any(fnmatch.fnmatchcase(n, p) for p in patterns)]


def expected():
    """By stream: {figure: cause}."""
    found = {}
    for cause, by_stream in json.loads(KNOWN.read_text()).items():
        for name, figures in by_stream.items():
            for figure in figures:
                found.setdefault(name, {})[figure] = cause
    return found


def differences(build, name):
    with tempfile.TemporaryDirectory(prefix="flopinj-frameworks-") as folder:
        return compare.differences(build, STREAMS / f"{name}{SUFFIX}", Path(folder) / "stream.pb")


def all_differences(build, names):
    """(name, differences) of each, two at a time or as many as there are cores."""
    with concurrent.futures.ProcessPoolExecutor() as pool:
        yield from zip(names, pool.map(differences, [build] * len(names), names))


def write(known):
    by_cause = {}
    for name, figures in known.items():
        for figure, cause in figures.items():
            by_cause.setdefault(cause, {}).setdefault(name, []).append(figure)
    ordered = {
        c: {n: sorted(f)
            for n, f in sorted(by.items())}
        for c, by in sorted(by_cause.items())
    }
    KNOWN.write_text(json.dumps(ordered, indent=1) + "\n")


class Streams(unittest.TestCase):
    build, patterns = None, []

    def test_reports(self):
        known = expected()
        names = streams(self.patterns)
        self.assertTrue(names, "no stream has such a name")
        for name, found in all_differences(self.build, names):
            with self.subTest(stream=name):
                differ = {figure: (value, right) for figure, value, right in found}
                new = {
                    f"{f}: reported {v}, is {r}"
                    for f, (v, r) in differ.items() if f not in known.get(name, {})
                }
                gone = {f for f in known.get(name, {}) if f not in differ}
                numbers = {
                    f
                    for f, cause in known.get(name, {}).items()
                    if cause.startswith("not known: ") and differ.get(f, (None, ))[0] is not None
                }
                self.assertFalse(new, "not in expected_differences.json")
                self.assertFalse(numbers, "reported as if it were known")
                self.assertFalse(
                    gone,
                    "in expected_differences.json, and right by now: run this test with --shorten")

    def test_list_names_streams(self):
        self.assertLessEqual(set(expected()), set(streams([])))


def main():
    build, words = Path(sys.argv[1]).resolve(), sys.argv[2:]
    if words[:1] == ["--differences"]:
        known = expected()
        for name, found in all_differences(build, streams(words[1:])):
            for figure, value, right in found:
                cause = known.get(name, {}).get(figure, "NEW")
                print(f"{name}: {figure}: reported {value}, is {right}  [{cause}]")
    elif words[:1] in (["--shorten"], ["--extend"]):
        known = expected()
        for name, found in all_differences(build, streams([])):
            differ = {figure for figure, _, _ in found}
            kept = {f: c for f, c in known.get(name, {}).items() if f in differ}
            if words[0] == "--extend":  # for a stream that was just recorded: each needs its cause
                kept |= {f: "not looked into yet" for f in differ - set(kept)}
            known[name] = kept
        write(known)
    else:
        Streams.build, Streams.patterns = build, words
        unittest.main(argv=[sys.argv[0]])


if __name__ == "__main__":
    main()
