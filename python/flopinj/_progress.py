"""How far a long piece of work is, on standard error where that is a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

_Done = TypeVar("_Done")
_WIDTH = 40
_QUIET_S = 1.0  # work that is done by then shows nothing
_EVERY_S = 0.1


def shown(what: str, total: float, done: Iterable[_Done],
          worth: Callable[[_Done], float] = lambda _: 1) -> Iterator[_Done]:
    """The results of `done` as they come, each worth its part of `total`, under a bar with the
    seconds that are left."""
    if not sys.stderr.isatty():
        yield from done
        return
    began = time.monotonic()
    due, sum_of, line = began + _QUIET_S, 0.0, False
    try:
        for one in done:
            sum_of = min(total, sum_of + worth(one))
            now = time.monotonic()
            if now >= due and sum_of > 0:
                due, line = now + _EVERY_S, True
                print("\r" + _bar(what, sum_of / total, now - began), end="", file=sys.stderr,
                      flush=True)
            yield one
    finally:
        if line:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _bar(what: str, part: float, took_s: float) -> str:
    """
    >>> _bar("reading", 0.25, 3)
    'reading [##########                              ]  25 %, 9 s left\\x1b[K'
    """
    bar = "#" * int(part * _WIDTH)
    left = took_s / part * (1 - part)
    return f"{what} [{bar:{_WIDTH}}] {100 * part:3.0f} %, {left:.0f} s left\x1b[K"
