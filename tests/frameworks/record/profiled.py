#!/usr/bin/env python3
"""Profiles recorded programs anew by torch.profiler: profiled.py FOLDER NAME... writes
FOLDER/NAME.json.xz, the profiler's own file of the same program whose calls of NVTX
streams/NAME.jsonl.xz has, as ../profiled_test.py reads it: events and their arguments as PyTorch
wrote them, but for what says nothing of the program (addresses, numbers of the profiler's own)."""

import argparse
import contextlib
import json
import lzma
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
import torch  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402

import harness  # noqa: E402
import networks  # noqa: E402, F401
import programs  # noqa: E402

KEPT = ("Input Dims", "Input type", "Concrete Inputs", "Sequence number", "Fwd thread id")


class Recorder(harness.Recorder):
    """The profiler in the place of emit_nvtx; notes are for nobody."""

    def __init__(self, path):
        self.path = path
        self.engines = 0
        self.evaluating = False

    def note(self, text):
        pass

    @contextlib.contextmanager
    def observing(self):
        yield

    @contextlib.contextmanager
    def recording(self):
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
            yield
        profiler.export_chrome_trace(str(self.path))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="+")
    options = parser.parse_args()
    for name in options.names:
        torch.manual_seed(1)
        torch.set_num_threads(1)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            programs.PROGRAMS[name](Recorder(path))
            trace = json.loads(path.read_text())
        events = []
        for event in trace["traceEvents"]:
            if event.get("ph") == "X" and event.get("cat") in ("cpu_op", "user_annotation"):
                event["args"] = {k: v for k, v in event["args"].items() if k in KEPT}
                events.append(event)
        trace = {"schemaVersion": trace["schemaVersion"], "torch": torch.__version__,
                 "traceEvents": events}
        path = options.out / f"{name}.json.xz"
        with lzma.open(path, "wt", preset=9 | lzma.PRESET_EXTREME) as out:
            json.dump(trace, out, separators=(",", ":"))
        print(name, len(events))


if __name__ == "__main__":
    main()
