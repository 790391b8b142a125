#!/usr/bin/env python3
"""The table of thirteen networks at three batch sizes, of flopreduce's reports: FLOP of forward and
backward for one image (one fused multiply-add is two), their ratio in matrix work beside 2 - f1,
and utilization over GPU time by each method. All that is by formula, of traces that made_trace.py
writes. With --traces there are columns "hw", of traces that tests/gpu/run recorded on a GPU
(pytorch.NAME.batchN.pb of its data.tar.gz, in that folder), and "-" where there is none."""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import made_trace
from networks import TABLES, TRAINING_STEPS, Network

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
from report_tables import by  # noqa: E402

BATCHES = (1, 64, 128)
METHODS = ("executed", "formula", "theory", "one", "batch", "epoch")
HARDWARE = ("hw forward", "hw backward", "hw ratio", "hw executed")
HEAD = ("network", "images", "forward", "backward", "ratio", "2 - f1", *METHODS, *HARDWARE)


def report(build, trace, batch, *options):
    done = subprocess.run(
        [build / "bin/flopreduce", "--format", "json", "--batch-size",
         str(batch), *options, trace], capture_output=True, check=False, timeout=120)
    if done.returncode not in (0, 3):
        raise SystemExit(f"flopreduce: {done.stderr.decode()}")
    return json.loads(done.stdout)


def by_formula(build, name, batch):
    """The report of a made trace."""
    with tempfile.TemporaryDirectory(prefix="flopinj-networks-") as folder:
        trace = Path(folder) / "made.pb"
        made_trace.training(Network(name), batch).write(build / "test-bin/write_trace", trace)
        return report(build, trace, batch, "--peak", f"fp32={made_trace.PEAK:g}")


def percent(share):
    return "-" if share is None else f"{100 * share:.2f} %"


def executed(found, images):
    """Forward and backward for one image, their ratio, and utilization by method."""
    def each(phase):
        flop = by(found, "phases").get(phase, {}).get("flop")
        return "not measured" if flop is None else f"{int(flop) / images / 1e6:,.2f} M"
    ratio = found["figures"]["matrix_ratio"]
    shares = {method["name"]: percent(method["utilization_gpu_time"])
              for method in found["utilization"]}
    return (each("forward"), each("backward"), "-" if ratio is None else f"{ratio:.4f}"), shares


def row(build, name, batch, traces):
    figures, shares = executed(by_formula(build, name, batch), made_trace.STEPS * batch)
    cells = [
        name,
        str(batch), *figures, f"{Network(name).ratio:.4f}", *(shares[method] for method in METHODS)
    ]
    trace = traces and traces / f"pytorch.{name}.batch{batch}.pb"
    if not trace or not trace.exists():
        return [*cells, *"----"]
    figures, shares = executed(report(build, trace, batch), TRAINING_STEPS * batch)
    return [*cells, *figures, shares["executed"]]


def text(rows, columns):
    """A table of these columns."""
    places = [HEAD.index(column) for column in ("network", "images", *columns)]
    cells = [[r[place] for place in places] for r in (HEAD, *rows)]
    width = [max(map(len, column)) for column in zip(*cells)]
    return "\n".join(
        "  ".join([r[0].ljust(width[0]), *(cell.rjust(w) for cell, w in zip(r[1:], width[1:]))])
        for r in cells)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path, help="build folder")
    parser.add_argument("--traces", type=Path, metavar="FOLDER", help="traces recorded on hardware")
    options = parser.parse_args()
    print(
        "BY FORMULA but for columns 'hw': nothing ran; all work takes the time of half a made-up "
        "peak."
    )
    rows = [row(options.build, name, batch, options.traces) for name in TABLES for batch in BATCHES]
    hardware = HARDWARE if options.traces else ()
    print("\nFLOP for one image")
    print(text(rows, ("forward", "backward", "ratio", "2 - f1", *hardware[:3])))
    print("\nUtilization by method")
    print(text(rows, (*METHODS, *hardware[3:])))


if __name__ == "__main__":
    main()
