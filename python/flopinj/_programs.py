"""The programs of the installed tree. A console script becomes the program: process id, signals
and exit code are the program's own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

#: bin, lib and share, as `cmake --install` makes them.
TREE = Path(__file__).parent / "_tree"


def path(name: str) -> str:
    """Where the program `name` of bin is. Raises FileNotFoundError with a remedy."""
    program = TREE / "bin" / name
    if not program.is_file():
        raise FileNotFoundError(
            f"{program} is missing: install the package with pip (its sources have no programs)"
        )
    return str(program)


def become(program: str, arguments: list[str]) -> None:
    os.execv(program, [program, *arguments])


def flopinj() -> None:
    become(path("flopinj"), sys.argv[1:])


def flopreduce() -> None:
    become(path("flopreduce"), sys.argv[1:])
