#!/usr/bin/env python3
"""Streams recorded from real frameworks: flopreduce's report of each against the oracle, to the
last digit.

Usage: frameworks_test.py BUILD [PATTERN...]
       frameworks_test.py BUILD --differences [PATTERN...]   prints what differs, and as what
       frameworks_test.py BUILD --renew       makes the list anew; unmarked differences end it

No figure may differ without a mark: the report itself has to say that the figure is not known, or a
range, or at least so much, and why (compare.mark()). expected_differences.json is the one list of
such figures: by mark, by stream. The test holds it exactly: a difference that is not in it fails,
and so does one in it that no longer occurs or has another mark. Where operators' names have the
settings that flopinj.torch adds to emit_nvtx's, figures are the same; some are right that were not
known."""

import concurrent.futures
import fnmatch
import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True

import as_gpu  # noqa: E402
import compare  # noqa: E402

HERE = Path(__file__).resolve().parent
STREAMS, KNOWN = HERE / "streams", HERE / "expected_differences.json"
SUFFIX = ".jsonl.xz"
# Figures of the list that are right where names have settings.
RIGHT_WITH_SETTINGS = {
    "complex_products": ["formula of aten::linear: forward", "formula of aten::matmul: forward",
                         "formula of aten::mm: backward"],
    "frozen_stem": ["formula of aten::conv2d: forward"],
    "random_27130": ["formula of aten::conv1d: forward"],
    "random_31532": ["formula of aten::convolution: backward"],
    "random_32106": ["formula of aten::conv2d: recompute",
                     "formula of aten::convolution: backward"],
    "random_32282": ["formula of aten::conv2d: forward"],
    "random_33017": ["formula of aten::conv2d: forward"],
} | dict.fromkeys(("mobilenet_v2-autocast-checkpoint", "mobilenet_v2-checkpoint", "random_29077",
                   "random_29204", "random_7704", "unet-autocast-checkpoint", "unet-checkpoint"),
                  ["formula of aten::conv2d: recompute"])
# And figures that are said with less certainty. Two convolutions of the same sizes, which differ in
# their stride, are one range by emit_nvtx: what is known of the first layer is said of both.
OTHERWISE_WITH_SETTINGS = {
    "cnn_twins": {
        "backward / forward, expected (kernels do not say which gradient)": "a range, and assumed",
        "formula of aten::convolution_backward: backward (kernels do not say which gradient)":
            "at most: gradients are not told, with the cause",
    },
    "random_29077": {
        "backward / forward, expected (kernels do not say which gradient)":
            "not known, with the reason",
        "formula of aten::convolution_backward: backward (kernels do not say which gradient)":
            "at most: gradients are not told, with the cause",
    },
}


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
    """With the names of emit_nvtx, and with those of flopinj.torch's observer: None where these
    have no settings."""
    with tempfile.TemporaryDirectory(prefix="flopinj-frameworks-") as folder:
        return [gpu and compare.differences(build, gpu, Path(folder) / "stream.pb")
                for gpu in as_gpu.convert_both(STREAMS / f"{name}{SUFFIX}")]


def all_differences(build, names):
    """(name, differences) of each, two at a time or as many as there are cores."""
    with concurrent.futures.ProcessPoolExecutor() as pool:
        yield from zip(names, pool.map(differences, [build] * len(names), names))


def unmarked(found):
    return {f"{f}: reported {v}, is {r}" for f, v, r, mark in found if mark is None}


def renew(build):
    by_mark = {}
    for name, (found, _) in all_differences(build, streams([])):
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

    @classmethod
    def setUpClass(cls):
        cls.found = dict(all_differences(cls.build, streams(cls.patterns)))

    def test_reports(self):
        known = expected()
        self.assertTrue(self.found, "no stream has such a name")
        for name, (found, _) in self.found.items():
            with self.subTest(stream=name):
                self.assertFalse(unmarked(found), "no mark in the report")
                self.assertEqual({figure: mark
                                  for figure, _, _, mark in found}, known.get(name, {}),
                                 "not as in expected_differences.json: --renew")

    def test_reports_of_operators_with_settings(self):
        known, better = expected(), {}
        found_by_name = {name: found for name, (_, found) in self.found.items()
                         if found is not None}
        for name, found in found_by_name.items():
            with self.subTest(stream=name):
                self.assertFalse(unmarked(found), "no mark in the report")
                marks = {figure: mark for figure, _, _, mark in found}
                otherwise = OTHERWISE_WITH_SETTINGS.get(name, {}).items()
                self.assertLessEqual(otherwise, marks.items())
                self.assertLessEqual(marks.items() - otherwise, known.get(name, {}).items())
                if gone := known.get(name, {}).keys() - marks.keys():
                    better[name] = sorted(gone)
        if not self.patterns:
            self.assertGreater(len(found_by_name), 30)
            self.assertEqual(better, RIGHT_WITH_SETTINGS)

    def test_list_names_streams(self):
        self.assertLessEqual(set(expected()), set(streams([])))


def main():
    build, words = Path(sys.argv[1]).resolve(), sys.argv[2:]
    if words[:1] == ["--differences"]:
        for name, (found, _) in all_differences(build, streams(words[1:])):
            for figure, value, right, mark in found:
                print(f"{name}: {figure}: reported {value}, is {right}  [{mark or 'NO MARK'}]")
    elif words[:1] == ["--renew"]:
        renew(build)
    else:
        Streams.build, Streams.patterns = build, words
        unittest.main(argv=[sys.argv[0]])


if __name__ == "__main__":
    main()
