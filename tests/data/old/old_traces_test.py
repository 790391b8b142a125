"""Traces of earlier recorders say what they said: by theory, and to the last digit of every figure
that the reducer of their time printed. Use: old_traces_test.py FLOPREDUCE"""

import json
import subprocess
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "integration"))

from theory import Expected  # noqa: E402

FLOPREDUCE = Path(sys.argv.pop(1)).resolve()
TRAINED = ("mlp-plain", "cnn-pytorch", "mlp-graph-tally", "cnn-streams")


def reduce(*traces):
    done = subprocess.run([FLOPREDUCE, "--format", "json", *traces], cwd=HERE, text=True,
                          timeout=60, capture_output=True, check=True)
    report = json.loads(done.stdout)
    for device in report["time"]["devices"]:  # phases were in another order
        device["flop_over_time"].sort(key=lambda row: row["phase"])
    return report


# Keys of then (schema 1), and what they are called today.
RENAMED = {"backward_forward_ratio": "ratio", "backward_forward_matrix_ratio": "matrix_ratio",
           "backward_forward_expected": "expected_ratio",
           "backward_forward_expected_basis": "expected_ratio_basis", "coverage": "counted"}


def today(key, new):
    """What is under that key today: exact integers, which were texts, are beside the numbers."""
    if key.endswith("_exclusive"):
        key, new = key.removesuffix("_exclusive"), new["exclusive"]
    key = RENAMED[key] if RENAMED.get(key) in new else key
    if key in ("forward_formula_flop", "backward_formula_flop") and new[key] is None:
        return "0"  # no operator has a formula
    if key == "stable_hash":
        return str(int(new[key], 16))
    return new[f"{key}_exact" if f"{key}_exact" in new else key]


def lacking(old, new, where=""):
    """Every figure of `old` that `new` has not, or has otherwise. `new` may say more."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key, value in old.items():
            try:
                yield from lacking(value, today(key, new), f"{where}/{key}")
            except KeyError:
                yield f"{where}/{key} is gone"
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for i, (a, b) in enumerate(zip(old, new)):
            yield from lacking(a, b, f"{where}/{i}")
    elif isinstance(old, int) and abs(old) > 2**53 and new == str(old):
        return  # what JSON's numbers cannot hold is a text since then
    elif old != new or isinstance(old, bool) != isinstance(new, bool):
        yield f"{where} was {old}, is {new}"


class OldTraces(unittest.TestCase):
    maxDiff = None

    def test_figures_are_those_of_then(self):
        for old in sorted(HERE.glob("*.json")):
            if old.name.endswith(".shapes.json"):
                continue
            with self.subTest(old.stem):
                then = json.loads(old.read_text())
                self.assertGreater(len(then["kernels"]), 5)
                self.assertEqual(list(lacking(then, reduce(old.with_suffix(".pb").name))), [])

    def test_figures_are_those_of_theory(self):
        for name in TRAINED:
            with self.subTest(name):
                expected = Expected(json.loads((HERE / f"{name}.shapes.json").read_text()))
                report = reduce(f"{name}.pb")
                self.assertEqual(report["ledger"]["launches"], expected.launches)
                self.assertEqual(report["total"]["flop"], expected.flop)
                phases = {phase: (row["flop"], row["launches"])
                          for phase, row in report["phases"].items()}
                self.assertEqual(phases, {phase: (flop, expected.phase_launches[phase])
                                          for phase, flop in expected.phase_flop.items()})
                kernels = {row["name"]: (row["flop"], row["launches"]) for row in report["kernels"]}
                self.assertEqual(kernels, {kernel: (flop, expected.kernel_launches[kernel])
                                           for kernel, flop in expected.kernel_flop.items()})

    def test_a_difference_would_be_found(self):
        then = json.loads((HERE / "mlp-plain.json").read_text())
        other = reduce("mlp-plain.pb")
        other["kernels"][0]["launches"] += 1
        self.assertEqual(list(lacking(then, other)), ["/kernels/0/launches was 36, is 37"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
