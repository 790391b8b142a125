#!/usr/bin/env python3
"""Streams recorded from real frameworks: flopreduce's report of each against the oracle, to the
last digit.

Usage: frameworks_test.py BUILD [PATTERN...]
       frameworks_test.py BUILD --differences [PATTERN...]   prints what differs, and as what
       frameworks_test.py BUILD --renew       makes the list anew; unmarked differences end it

No figure may differ without a mark: the report itself has to say that the figure is not known, or a
range, or at least so much, and why (compare.mark()). expected_differences.json is the one list of
such figures: by mark, by stream. The test holds it exactly: a difference that is not in it fails,
and so does one in it that no longer occurs or has another mark."""

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
    """By stream: {figure: mark}."""
    found = {}
    for mark, by_stream in json.loads(KNOWN.read_text()).items():
        for name, figures in by_stream.items():
            for figure in figures:
                found.setdefault(name, {})[figure] = mark
    return found


def differences(build, name):
    with tempfile.TemporaryDirectory(prefix="flopinj-frameworks-") as folder:
        return compare.differences(build, STREAMS / f"{name}{SUFFIX}", Path(folder) / "stream.pb")


def all_differences(build, names):
    """(name, differences) of each, two at a time or as many as there are cores."""
    with concurrent.futures.ProcessPoolExecutor() as pool:
        yield from zip(names, pool.map(differences, [build] * len(names), names))


def unmarked(found):
    return {f"{f}: reported {v}, is {r}" for f, v, r, mark in found if mark is None}


def renew(build):
    by_mark = {}
    for name, found in all_differences(build, streams([])):
        if bare := unmarked(found):
            sys.exit(f"{name}: no mark in the report: {bare}")
        for figure, _, _, mark in found:
            by_mark.setdefault(mark, {}).setdefault(name, []).append(figure)
    ordered = {
        mark: {name: sorted(figures)
               for name, figures in sorted(by.items())}
        for mark, by in sorted(by_mark.items())
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
                self.assertFalse(unmarked(found), "no mark in the report")
                self.assertEqual({figure: mark
                                  for figure, _, _, mark in found}, known.get(name, {}),
                                 "not as in expected_differences.json: --renew")

    def test_list_names_streams(self):
        self.assertLessEqual(set(expected()), set(streams([])))


def main():
    build, words = Path(sys.argv[1]).resolve(), sys.argv[2:]
    if words[:1] == ["--differences"]:
        for name, found in all_differences(build, streams(words[1:])):
            for figure, value, right, mark in found:
                print(f"{name}: {figure}: reported {value}, is {right}  [{mark or 'NO MARK'}]")
    elif words[:1] == ["--renew"]:
        renew(build)
    else:
        Streams.build, Streams.patterns = build, words
        unittest.main(argv=[sys.argv[0]])


if __name__ == "__main__":
    main()
