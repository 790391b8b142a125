"""What examples share: numbers as options, and what they say at their end, which is the command
that reads the trace or that makes one."""

import argparse
import sys

import flopinj


def options(description, **defaults):
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()


def say_next(launcher="python"):
    status = flopinj.status()
    if status and "output" in status:
        print(f"Read the trace:  flopinj report {status['output']}")
    else:
        print(f"Not recorded. Profile it:  flopinj run -- {launcher} {' '.join(sys.argv)}")
