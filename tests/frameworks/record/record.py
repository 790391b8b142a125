#!/usr/bin/env python3
"""Records streams anew: record.py FOLDER [NAME...]. Each program runs in a process of its own,
forked once PyTorch is loaded."""

import argparse
import json
import os
import sys
import tempfile
import traceback
from pathlib import Path

sys.dont_write_bytecode = True
import torch  # noqa: E402

import harness  # noqa: E402
import libraries  # noqa: E402, F401
import made_up  # noqa: E402
import programs  # noqa: E402
import random_networks  # noqa: E402

stream = harness.stream


def record(name, program, out, quiet=False):
    """In a process of its own."""
    if quiet:
        for number in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    with tempfile.TemporaryDirectory(prefix="flopinj-frameworks-") as folder:
        log = Path(folder) / "nvtx.log"
        os.environ["FRAMEWORKS_NVTX_LOG"] = str(log)
        torch.manual_seed(1)
        torch.set_num_threads(1)
        recorder = harness.Recorder(log)
        program(recorder)
        header = {
            "program": name, "framework": f"PyTorch {torch.__version__}", "note": " ".join(
                (program.__doc__ or "").split())
        }
        header |= getattr(recorder, "versions", {})
        stream.write(out / f"{name}.jsonl.xz", header, harness.events_of(log))


REFUSED = 3  # exit code of a child whose program PyTorch refused


def in_child(work):
    """The exit code of a process of its own: 0 when it ended well."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except (RuntimeError, ValueError, IndexError):
            traceback.print_exc()
            os._exit(REFUSED)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def all_programs():
    found = Path(__file__).resolve().parent / "found.json"
    return programs.PROGRAMS | {
        name: random_networks.program(description)
        for name, description in (json.loads(found.read_text()) if found.exists() else {}).items()
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    failed, known = [], all_programs()
    for name in [n for n in options.names or known if n not in made_up.MADE_UP]:
        if in_child(lambda: record(name, known[name], options.out)) == 0:
            print(name, (options.out / f"{name}.jsonl.xz").stat().st_size)
        else:
            failed.append(name)
    # JAX has threads of its own, after which no process should be forked.
    for name in [n for n in options.names or made_up.MADE_UP if n in made_up.MADE_UP]:
        make = made_up.MADE_UP[name]
        header = {
            "program": name, "framework": "names from sources", "made_up": True,
            "note": " ".join(make.__doc__.split())
        }
        stream.write(options.out / f"{name}.jsonl.xz", header, make())
        print(name, (options.out / f"{name}.jsonl.xz").stat().st_size)
    if failed:
        sys.exit(f"not recorded: {', '.join(failed)}")


if __name__ == "__main__":
    main()
