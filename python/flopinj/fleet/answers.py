"""Answers of queries for people and programs."""

from __future__ import annotations

import csv
import json
import re
import sys
from datetime import datetime
from decimal import Decimal
from typing import Any

_LARGE = re.compile("flop|launches|_ns$|bytes")  # columns whose figures have many digits

# As reports show figures to people: the end of a column's name says the unit.
_SHARES = re.compile("(^|_)(hfu|mfu|hfu_kernel_time|coverage|share)$")
_TIMES = {"_ns": 1e-9, "_time": 1.0, "gpu_hours": 3600.0}  # in seconds
_RATES = {"_per_s": "/s", "_per_joule": "/J"}
_PREFIXES = (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))

#: Lines of where the peak went, by the words of a report's first screen.
LINES = {
    "idle": "no kernel runs",
    "idle_start_end": "start and end",
    "idle_copies": "copies alone",
    "idle_host_late": "host late",
    "idle_queued": "launched in time",
    "idle_between_steps": "between steps",
    "idle_long_gaps": "long gaps",
    "idle_short_gaps": "short gaps",
    "communication": "communication alone",
    "uncounted": "no FLOP count",
    "integer": "integer products",
    "other": "other kernels below peak",
    "other_memory": "memory",
    "other_below_roof": "below the roof",
    "matrix": "products below peak",
    "matrix_memory": "memory",
    "matrix_blocks": "blocks",
    "matrix_below_roof": "below the roof",
    "profiler": "slowed by measuring",
    "recompute": "recomputation",
    "padding": "padding",
    "other_flop": "other FLOP",
    "model": "model FLOP",
}

_NUMBERS = (int, float, Decimal)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pyarrow


def write(answer: pyarrow.Table, form: str, *, units: bool = False) -> None:
    """`units`: as people read figures, in the form for them."""
    names = answer.column_names
    rows = list(zip(*(column.to_pylist() for column in answer.columns)))
    if form == "csv":
        table = csv.writer(sys.stdout)
        table.writerow(map(_guarded, names))
        table.writerows(map(_guarded, row) for row in rows)
    elif form == "json":
        json.dump([dict(zip(names, map(_plain, row))) for row in rows], sys.stdout, indent=2)
        print()
    else:
        _text(names, rows, units)


def _guarded(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula has a ' in front, as in a report's CSV
    form. Numbers are no texts."""
    risky = isinstance(value, str) and value[:1] in tuple("=+-@'\t\r\n")
    return "'" + value if risky else value


def _plain(value: Any) -> Any:
    """As JSON can have it: exact integers beyond 2^53 as text, as reports write them."""
    if isinstance(value, (bool, float, type(None))):
        return value
    if isinstance(value, (int, Decimal)):
        whole = int(value)
        return (float(value) if whole != value else whole if abs(whole) < 1 << 53 else
                str(value))
    return str(value)


def _shown(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, Decimal)):
        return f"{value:,}" if _LARGE.search(name) else str(value)
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    text = str(value)  # names come from recorded programs
    return text if text.isprintable() else text.encode("unicode_escape").decode()


def _time(seconds: float) -> str:
    for unit, of in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)):
        if seconds >= of or unit == "ns":
            break
    if seconds >= 36_000:
        return f"{seconds / 3600:,.0f} h"
    if seconds >= 3600:
        return f"{seconds / 3600:.2f} h"
    return f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds / of:.4g} {unit}"


def _prefixed(value: float, unit: str) -> str:
    for prefix, of in _PREFIXES:
        if abs(value) >= of:
            return f"{value / of:.4g} {prefix}{unit}"
    return f"{value:.4g} {unit}"


def _in_units(name: str, value: Any) -> str:
    """
    >>> _in_units("hfu", 0.574), _in_units("gpu_time_ns", 2_424_000), _in_units("flop", 3 * 10**12)
    ('57.4 %', '2.424 ms', '3 TFLOP')
    >>> _in_units("gpu_hours", 36.5), _in_units("lost_gpu_hours", 0.0001), _in_units("jobs", 8)
    ('36 h', '360 ms', '8')
    >>> _in_units("mfu", 0.00123), _in_units("coverage", 1.0)
    ('0.12 %', '100.0 %')
    >>> _in_units("peak_flop_per_s", 989e12), _in_units("flop_per_joule", None)
    ('989 TFLOP/s', '-')
    >>> _in_units("line", "idle_host_late"), _in_units("parent", "idle"), _in_units("parent", None)
    ('host late', 'no kernel runs', '-')
    """
    if name in ("line", "parent"):
        return LINES.get(value, _shown(name, value))
    if isinstance(value, bool) or not isinstance(value, _NUMBERS):
        return _shown(name, value)
    if _SHARES.search(name):
        return f"{100 * float(value):{'.1f' if value >= 0.01 or value == 0 else '.2g'}} %"
    for end, seconds in _TIMES.items():
        if name.endswith(end):
            return _time(float(value) * seconds)
    for end, per in _RATES.items():
        if name.endswith(f"flop{end}"):
            return _prefixed(float(value), f"FLOP{per}")
    return _prefixed(float(value), "FLOP") if name.endswith("flop") else _shown(name, value)


def _text(names: list[str], rows: list[tuple[Any, ...]], units: bool) -> None:
    """Columns; a figure has its mark before it."""
    shown = _in_units if units else _shown
    columns: list[tuple[str, list[str], bool]] = []
    before_it = ""
    for name, values in zip(names, zip(*rows) if rows else [()] * len(names)):
        cells = [shown(name, value) for value in values]
        if name.endswith("_mark") and before_it == name.removesuffix("_mark"):
            before = columns[-1][1]
            before[:] = [f"{mark} {cell}" if mark != "-" else cell
                         for mark, cell in zip(cells, before)]
            continue
        before_it = name
        heading = name.removesuffix("_ns").replace("_", " ") if units else name
        columns.append((heading, cells, any(isinstance(value, _NUMBERS) for value in values)))
    widths = [max(map(len, (name, *cells))) for name, cells, _ in columns]
    for line in zip(*((name, *cells) for name, cells, _ in columns)):
        print("  ".join(cell.rjust(width) if number else cell.ljust(width)
                        for cell, width, (_, _, number) in zip(line, widths, columns)).rstrip())
