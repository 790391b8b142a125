#!/usr/bin/env python3
"""The table of thirteen networks at three batch sizes, of flopreduce's reports: FLOP of forward and backward for one image (one fused
multiply-add is two), their ratio in matrix work beside 2 - f1, and utilization over GPU time by each method.

Without --traces the traces are made by formula (made_trace.py), and so is every number. With --traces they are what tests/gpu/run
recorded (its data.tar.gz: pytorch.NAME.batchN.pb); those that are not there are left out."""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import made_trace
from networks import TABLES, TRAINING_STEPS, Network

BATCHES = (1, 64, 128)
METHODS = ("executed", "formula", "theory", "one", "batch", "epoch")
HEAD = ("network", "batch", "forward", "backward", "ratio", "2 - f1", *METHODS)


def report(build, trace, batch, *options):
    done = subprocess.run([build / "bin/flopreduce", "--format", "json", "--batch-size", str(batch), *options, trace],
                          capture_output=True, check=False, timeout=120)
    if done.returncode not in (0, 3):
        raise SystemExit(f"flopreduce: {done.stderr.decode()}")
    return json.loads(done.stdout)


def by_formula(build, name, batch):
    """The report of a made trace."""
    with tempfile.TemporaryDirectory(prefix="flopinj-networks-") as folder:
        trace = Path(folder) / "made.pb"
        made_trace.training(Network(name), batch).write(build / "test-bin/write_trace", trace)
        return report(build, trace, batch, "--peak", f"fp32={made_trace.PEAK:g}")


def percent(utilization):
    share = utilization["utilization"]
    return "-" if share is None else f"{100 * share:.2f} %"


def row(name, batch, steps, found):
    def each(phase):
        flop = found["phases"].get(phase, {}).get("flop")
        return "not measured" if flop is None else f"{int(flop) / (steps * batch) / 1e6:,.2f} M"
    ratio = found["backward_forward_matrix_ratio"]
    shares = {method["name"]: percent(method["gpu_time"]) for method in found["utilization"]["methods"]}
    return (name, str(batch), each("forward"), each("backward"), "-" if ratio is None else f"{ratio:.4f}",
            f"{Network(name).ratio:.4f}", *(shares[method] for method in METHODS))


def text(rows):
    width = [max(len(r[i]) for r in rows) for i in range(len(HEAD))]
    return "\n".join("  ".join([r[0].ljust(width[0]), *(cell.rjust(w) for cell, w in zip(r[1:], width[1:]))]) for r in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path, help="build folder")
    parser.add_argument("--traces", type=Path, metavar="FOLDER", help="traces recorded on hardware")
    options = parser.parse_args()
    rows = [HEAD]
    for name in TABLES:
        for batch in BATCHES:
            if options.traces is None:
                rows.append(row(name, batch, made_trace.STEPS, by_formula(options.build, name, batch)))
                continue
            trace = options.traces / f"pytorch.{name}.batch{batch}.pb"
            if trace.exists():
                rows.append(row(name, batch, TRAINING_STEPS, report(options.build, trace, batch)))
    print("BY FORMULA: nothing here ran; all work is taken to run at half of a made-up peak." if options.traces is None else
          f"Executed, of {len(rows) - 1} traces in {options.traces}.")
    print(text(rows))


if __name__ == "__main__":
    main()
