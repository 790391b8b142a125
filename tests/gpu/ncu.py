"""Nsight Compute as an independent reference: the same counters of the same program, read by
ncu."""

import csv
import io
import re

from check import Row

# An instruction counter and a hardware counter that flopinj reads as well.
METRICS = ("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
           "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum",
           "sm__inst_executed_pipe_tensor_op_hmma.sum")
LAUNCHES = 120  # as many as fit into the step's time


def reading(command):
    return ["ncu", "--metrics", ",".join(METRICS), *command]


def command(program):
    return reading(["--csv", "--page", "raw", "--print-units", "base", "--launch-count", LAUNCHES,
                    program])


def kernel_name(text):
    """A kernel's name without its return type, parameters and anonymous namespaces."""
    text = text.replace("(anonymous namespace)::", "").removeprefix("void ")
    return re.sub(r"\s", "", text.partition("(")[0])


def _shape(text):
    return tuple(int(number) for number in re.findall(r"\d+", text)[:3])


def read(text):
    """(kernel, grid, block, metric) to the set of values that ncu read."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    values = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        if not row.get("Grid Size"):
            continue  # the line of units
        for metric in METRICS:
            cell = (row.get(metric) or "").replace(",", "")
            if cell:
                key = (kernel_name(row["Kernel Name"]), _shape(row["Grid Size"]),
                       _shape(row["Block Size"]), metric)
                values.setdefault(key, set()).add(float(cell))
    return values


def read_report(report):
    """The same of a report's signatures."""
    values = {}
    shapes = {signature["stable_hash"]: [tuple(map(int, signature[key].split("x")))
                                         for key in ("grid", "block")]
              for signature in report["signatures"]}
    for metric in report["samples"]:
        if metric["metric"] in METRICS and metric["min"] == metric["max"]:
            key = (kernel_name(metric["kernel"]), *shapes[metric["stable_hash"]],
                   metric["metric"])
            values.setdefault(key, set()).add(metric["mean"])
    return values


def compare(step, text, report):
    """A row for each figure that ncu and flopinj both read."""
    theirs, ours = read(text), read_report(report)
    rows = []
    for key in sorted(theirs.keys() & ours.keys()):
        name, grid, block, metric = key
        agree = theirs[key] <= ours[key]
        shown = f"ncu {sorted(theirs[key])}, flopinj {sorted(ours[key])}"
        rows.append(Row(f"{step}: {name} {grid} {block} {metric}", "", None, None,
                        shown if agree else f"NOT EXPLAINED {shown}", agree))
    if not rows:
        rows.append(Row(f"{step}: no figure in common", "", None, None, "NOT EXPLAINED", False))
    return rows
