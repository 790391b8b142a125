"""Runs flopreduce on the traces that make_traces writes. For the tests of its forms of output."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "support"))

FLOPREDUCE, MAKE_TRACES = sys.argv[1:3]
_folder = tempfile.TemporaryDirectory(prefix="flopreduce-forms-")
FOLDER = Path(_folder.name)


def trace(name):
    path = FOLDER / f"{name}.pb"
    if not path.exists():
        path.write_bytes(
            subprocess.run([MAKE_TRACES, name], capture_output=True, check=True,
                           timeout=120).stdout)
    return path


def run(*arguments):
    return subprocess.run([FLOPREDUCE, *map(str, arguments)], capture_output=True, timeout=300)


def report(*names):
    """The JSON report: what other forms are compared with."""
    return json.loads(run("--format", "json", *map(trace, names)).stdout)
