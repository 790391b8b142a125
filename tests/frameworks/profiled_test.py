#!/usr/bin/env python3
"""The same program by emit_nvtx, by flopinj.torch's observer and by torch.profiler: phases,
formulas and ratios are the same, on every stream.

profiled_test.py BUILD [STREAM...]

profiles/NAME.json.xz are files of PyTorch's own profiler of the programs whose streams have these
names (record/profiled.py): of each event they have what emit_nvtx said of it."""

import json
import lzma
import subprocess
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True

import as_gpu  # noqa: E402
import compare  # noqa: E402
import kineto  # noqa: E402
import recorded  # noqa: E402
import stream  # noqa: E402

# What these programs tell by NVTX's domains, torch.profiler does not see.
WITH_DOMAINS = {"made_up_tensorflow_plugins"}
PROFILES = Path(__file__).resolve().parent / "profiles"


def table(report, name, keys, values):
    return {tuple(row[key] for key in keys): {value: row.get(value) for value in values}
            for row in report[name]}


class SameProgram(recorded.Streams):
    maxDiff = None

    def by_profiler(self, lines):
        path = self.trace.with_suffix(".json")
        path.write_text(json.dumps(kineto.trace(lines)))
        done = subprocess.run([self.build / "bin/flopreduce", "--format", "json", path],
                              capture_output=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return json.loads(done.stdout)

    def said(self, report):
        """Of launches without a count."""
        self.assertEqual(report["damage"], [])
        bounds = ("", "_at_least", "_at_most", "_low", "_high", "_estimate")
        of_formula = [f"{name}{bound}" for name in ("formula_flop", "model_flop", "calls")
                      for bound in bounds]
        return {
            "phases": table(report, "phases", ("phase", ), ("launches", "gpu_time_ns")),
            "operators": table(report, "operators", ("operator", "phase"),
                               ["launches", "cause", *of_formula]),
            "layers": table(report, "layers", ("layer", ),
                            ("forward_gpu_time_ns", "backward_gpu_time_ns", "expected",
                             "expected_low", "expected_high", "forward_formula_flop",
                             "backward_formula_flop")),
            "work": table(report, "operator_work", ("operator", ),
                          ("forward_gpu_time_ns", "backward_gpu_time_ns", "expected",
                           "expected_low", "expected_high", "forward_formula_flop",
                           "backward_formula_flop")),
        }

    def test_reports_are_the_same(self):
        names = self.streams or sorted(
            {p.name.split(".")[0] for p in recorded.STREAMS.glob("*.jsonl.xz")} - WITH_DOMAINS)
        for name in names:
            plain, observed = as_gpu.convert_both(recorded.STREAMS / f"{name}.jsonl.xz")
            for gpu in filter(None, (plain, observed)):
                with self.subTest(name, observed=gpu is observed):
                    lines = [uncounted(line) for line in gpu.lines]
                    by_nvtx = self.said(self.report(lines))
                    by_profiler = self.said(self.by_profiler(lines))
                    for part, expected in by_nvtx.items():
                        self.assertEqual(by_profiler[part], expected, part)


class Recorded(unittest.TestCase):
    def test_pytorchs_profiler_says_what_emit_nvtx_says(self):
        paths = sorted(PROFILES.glob("*.json.xz"))
        self.assertNotEqual(paths, [])
        for path in paths:
            with self.subTest(path.name):
                name = path.name.split(".")[0]
                _, events = stream.read(recorded.STREAMS / f"{name}.jsonl.xz")
                self.assertEqual(names_of_profile(path), names_of_stream(events))


def uncounted(line):
    word, *rest = line.split("\t")
    return "\t".join(("kernel", rest[0], "-", "-", rest[3])) if word == "kernel" else line


SETTINGS = ("kernel_size", "stride", "padding", "dilation", "transposed")  # that streams have


def names_of_stream(events):
    """Of operators with sizes: name, sizes, number and settings, in the order in which they
    began."""
    found = []
    for event in events:
        if event[0] != "+":
            continue
        name, fields = kineto.fields(event[2])
        if "sizes" in fields:
            arguments = event[3].get("args", {}) if len(event) > 3 else {}
            settings = {s: arguments[s] for s in SETTINGS if s in arguments} \
                if name in kineto.PLACES else {}
            found.append((name, json.loads(fields["sizes"]), fields.get("seq"), settings))
    return found


def names_of_profile(path):
    """The same of PyTorch's own file, settings by their places among the arguments."""
    with lzma.open(path, "rt") as file:
        events = json.load(file)["traceEvents"]
    found = []
    for event in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
        args = event["args"]
        if not args.get("Input Dims"):
            continue
        number, sizes, settings = args.get("Sequence number"), [], {}
        for shape in args["Input Dims"]:  # a list of tensors is as many arguments
            sizes += shape if shape and isinstance(shape[0], list) else [shape]
        for setting, place in kineto.PLACES.get(event["name"], {}).items():
            if setting in SETTINGS:
                text = args["Concrete Inputs"][place]
                settings[setting] = json.loads(text.lower())
        found.append((event["name"], sizes, None if number is None else str(number), settings))
    return found


if __name__ == "__main__":
    SameProgram.build = Path(sys.argv[1]).resolve()
    SameProgram.streams = sys.argv[2:]
    unittest.main(argv=sys.argv[:1])
