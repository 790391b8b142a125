"""Traces of earlier recorders say what they said: by theory, and to the last digit of every figure
that the reducer of their time printed. Use: old_traces_test.py FLOPREDUCE"""

import json
import subprocess
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / folder) for folder in ("integration", "support")]

from report_tables import figure  # noqa: E402
from theory import Expected  # noqa: E402

FLOPREDUCE = Path(sys.argv.pop(1)).resolve()
TRAINED = ("mlp-plain", "cnn-pytorch", "mlp-graph-tally", "cnn-streams")


def reduce(*traces):
    done = subprocess.run([FLOPREDUCE, "--format", "json", *traces], cwd=HERE, text=True,
                          timeout=60, capture_output=True, check=True)
    return json.loads(done.stdout)


# Keys of then (schema 1), and what is under them in the tables of time and of ratios today.
TIME = {"busy_ns": "busy: some kernel runs", "idle_ns": "idle between kernels", "wall_ns": "wall",
        "own_ns": "profiler overhead"}
RATIO = {"backward_forward_ratio": "backward / forward",
         "backward_forward_matrix_ratio": "matrix work only",
         "backward_forward_expected": "expected of matrix work, most",
         "first_layer_share": "first layer's share of matrix work"}
RENAMED = {"backward_forward_matrix_ratio": "matrix_ratio",
           "backward_forward_expected": "expected_ratio",
           "backward_forward_expected_basis": "expected_ratio_basis"}


def plain(row, *left_out, **more):
    """Without lists and objects, which are rows of other tables."""
    return {RENAMED.get(key, key): value for key, value in row.items()
            if key not in left_out and not isinstance(value, (dict, list))} | more


def of_work(old):
    yield "figures", plain(old["total"])
    yield "ledger", plain(old["ledger"])
    for precision, flop in old["precision"].items():
        yield "precisions", {"precision": precision, "flop": flop}
    for kind, rows in (("phase", [{**row, "name": name} for name, row in old["phases"].items()]),
                       ("kernel", old["kernels"])):
        for row in rows:
            yield f"{kind}s", plain(row, "name", **{kind: row["name"]})
            for precision, flop in row.get("precision", {}).items():
                yield f"{kind}_precisions", {kind: row["name"], "precision": precision,
                                             "flop": flop}
    for row in old["ranges"]:
        own = [key for key in row if key.endswith("_exclusive")]
        yield "ranges", plain(row, "path", *own, range=row["path"])
        if row["launches_exclusive"]:
            yield "ranges_exclusive", {"range": row["path"], **{
                key.removesuffix("_exclusive"): row[key] for key in own}}
    if old["outside_ranges"]["launches"]:
        yield "ranges_exclusive", plain(old["outside_ranges"], range=None)
    for layer in old["layers"]:
        yield "first_layers", plain(layer, "path", layer=layer["path"])
    for row in old["operator_work"]:
        # 0 was said where no operator has a formula; what is partial is a bound today.
        unknown = [key for key in row if key.endswith("_formula_flop") and row[key] == "0"]
        if row["operator"] == "aten::conv2d":  # with an input gradient that nobody computed
            unknown.append("backward_formula_flop")
        yield "operator_work", plain(row, *unknown, "forward_formula_partial",
                                     "backward_formula_partial")
        for direction in ("forward", "backward", "recompute"):
            if row[direction]["launches"]:
                yield "operator_passes", plain(
                    row[direction], **{"operator": row["operator"], "pass": direction})
    for key, name in RATIO.items():
        if key in old and (old[key] is not None or "expected" not in key):  # else a range today
            yield "ratio", {"figure": name, "value": old[key]}


def of_recording(old):
    for signature in old["signatures"]:
        stable_hash = f"{int(signature['stable_hash']):016x}"
        shape = {name: "x".join(map(str, signature[name])) for name in ("grid", "block")}
        yield "signatures", {**plain(signature), **shape, "stable_hash": stable_hash}
        for metric in signature["metrics"]:
            yield "samples", plain(metric, stable_hash=stable_hash, kernel=signature["kernel"])
    for device in old["devices"]:
        yield "devices", plain(device, "name", "trace", device=device["name"],
                               process=device["trace"]) | device["ledger"]
    for key, name in TIME.items():
        yield "time", {"what": name, "ns": old["time"][key]}
    for device in old["time"]["devices"]:
        where = {"trace": device["trace"], "ordinal": device["ordinal"]}
        yield "device_time", plain(device)
        yield from (("device_idle_gaps", {**where, **gap}) for gap in device["idle_gaps"])
        yield from (("largest_gaps", {**where, **gap}) for gap in device["largest_gaps"])
        for series in device["flop_over_time"]:
            for number, flop in enumerate(series["flop"]):
                yield "flop_over_time", plain(
                    series, **where, flop=flop,
                    begin_ns=series["begin_ns"] + number * series["bin_ns"])
    for process in old["measuring"]:
        yield "measuring", plain(process, "counters", "budget_percent", **process["coverage"],
                                 budget_share=process["budget_percent"])
        yield from (("coverage_growth", {"process": process["trace"], **point})
                    for point in process["coverage_growth"])


def today(row, key):
    """What the row has under that key, or as its bound."""
    return figure(row, key) if f"{key}_exact" in row else row.get(key)


def same(was, now):
    """Which integers are texts has changed since then."""
    if isinstance(was, str) != isinstance(now, str) and now is not None:
        return str(was) == str(now)
    return was == now and isinstance(was, bool) == isinstance(now, bool)


def lacking(old, new):
    """Every row of `old` that `new` has not, or has otherwise. `new` may say more."""
    left = {table: [rows] if table == "figures" else list(rows)
            for table, rows in new.items() if table != "schema_version"}
    for table, row in [*of_work(old), *of_recording(old)]:
        def differing(other, row=row):
            return (f"{key} was {value}, is {today(other, key)}" for key, value in row.items()
                    if not same(value, today(other, key)))

        rows = left[table]  # in the order of then, but for some tables
        number = next((i for i, other in enumerate(rows) if next(differing(other), None) is None),
                      None)
        if number is not None:
            del rows[number]
            continue
        nearest = min(rows, default={}, key=lambda other: len(list(differing(other))))
        yield from (f"{table}: {what}" for what in differing(nearest))


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
                self.assertEqual(report["ledger"][-1]["launches"], expected.launches)
                self.assertEqual(report["figures"]["flop"], expected.flop)
                phases = {row["phase"]: (row["flop"], row["launches"]) for row in report["phases"]}
                self.assertEqual(phases, {phase: (flop, expected.phase_launches[phase])
                                          for phase, flop in expected.phase_flop.items()})
                kernels = {row["kernel"]: (row["flop"], row["launches"])
                           for row in report["kernels"]}
                self.assertEqual(kernels, {kernel: (flop, expected.kernel_launches[kernel])
                                           for kernel, flop in expected.kernel_flop.items()})

    def test_a_difference_would_be_found(self):
        then = json.loads((HERE / "mlp-plain.json").read_text())
        other = reduce("mlp-plain.pb")
        other["kernels"][0]["launches"] += 1
        self.assertEqual(list(lacking(then, other)), ["kernels: launches was 36, is 37"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
