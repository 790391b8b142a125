"""Rows of SQLite as data frames. Columns of numbers have no declared type there; what does not fit
into 64 bits comes as text, all digits of it."""

from __future__ import annotations

from flopinj._programs import needed

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Any

    import pandas
    import pyarrow

_INT64 = range(-(1 << 63), 1 << 63)


def _columns(cursor: sqlite3.Cursor) -> dict[str, list[Any]]:
    names = [column[0] for column in cursor.description]
    values = list(zip(*cursor)) or [()] * len(names)
    return {name: _numbers(name, list(column)) for name, column in zip(names, values)}


def _numbers(name: str, column: list[Any]) -> list[Any]:
    """A FLOP column whose values are not all text has exact integers in it."""
    if not name.endswith("flop") or not any(isinstance(value, str) for value in column):
        return column
    return [int(value) if isinstance(value, str) and value.isdigit() else value for value in column]


def _kind(column: list[Any]) -> type:
    """int, float, or str for anything else."""
    kinds = {type(value) for value in column if value is not None}
    return int if kinds == {int} else float if kinds and kinds <= {int, float} else str


def pandas_frame(cursor: sqlite3.Cursor) -> pandas.DataFrame:
    """Integers stay integers, also where some are missing or wider than 64 bits."""
    pandas = needed("pandas", "; report[name] has the rows of a table without it")
    frame = {}
    for name, column in _columns(cursor).items():
        kind = {int: "int64", float: "float64", str: "object"}[_kind(column)]
        if kind == "int64" and not all(value is None or value in _INT64 for value in column):
            kind = "object"
        elif kind == "int64" and None in column:
            kind = "Int64"
        frame[name] = pandas.Series(column, dtype=kind)
    return pandas.DataFrame(frame)


def arrow_table(cursor: sqlite3.Cursor) -> pyarrow.Table:
    """FLOP are decimal128(38, 0) where they are whole numbers."""
    pyarrow = needed("pyarrow")
    columns = {}
    for name, column in _columns(cursor).items():
        whole = pyarrow.decimal128(38) if name.endswith("flop") else pyarrow.int64()
        kind = {int: whole, float: pyarrow.float64(), str: pyarrow.string()}[_kind(column)]
        columns[name] = pyarrow.array(column, kind)
    return pyarrow.table(columns)
