"""What an example says at its end: the command that reads its trace, or that makes one."""

import sys

import flopinj


def say_next(launcher="python"):
    status = flopinj.status()
    if status and "output" in status:
        print(f"Read the trace:  flopreduce {status['output']}")
    else:
        print(f"Not recorded. Profile it:  flopinj run -- {launcher} {' '.join(sys.argv)}")
