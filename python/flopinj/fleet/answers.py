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

_NUMBERS = (int, float, Decimal)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pyarrow


def write(answer: pyarrow.Table, form: str) -> None:
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
        _text(names, rows)


def _guarded(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula has a ' in front, as in flopreduce's CSV
    form. Numbers are no texts."""
    risky = isinstance(value, str) and value[:1] in tuple("=+-@'\t\r\n")
    return "'" + value if risky else value


def _plain(value: Any) -> Any:
    """As JSON can have it: exact integers beyond 2^53 as text, as flopreduce writes them."""
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


def _text(names: list[str], rows: list[tuple[Any, ...]]) -> None:
    """Columns; a figure has its mark before it."""
    columns: list[tuple[str, list[str], bool]] = []
    for name, values in zip(names, zip(*rows) if rows else [()] * len(names)):
        cells = [_shown(name, value) for value in values]
        if columns and name == f"{columns[-1][0]}_mark":
            before = columns[-1][1]
            before[:] = [f"{mark} {cell}" if mark != "-" else cell
                         for mark, cell in zip(cells, before)]
            continue
        columns.append((name, cells, any(isinstance(value, _NUMBERS) for value in values)))
    widths = [max(map(len, (name, *cells))) for name, cells, _ in columns]
    for line in zip(*((name, *cells) for name, cells, _ in columns)):
        print("  ".join(cell.rjust(width) if number else cell.ljust(width)
                        for cell, width, (_, _, number) in zip(line, widths, columns)).rstrip())
