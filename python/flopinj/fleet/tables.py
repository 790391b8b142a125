"""A job's tables: what flopreduce says of it, as Arrow and Parquet."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass, fields, replace
from typing import Any

from flopinj._programs import Error
from flopinj.fleet import layout
from flopinj.fleet.place import Place

try:
    import pyarrow as pa
    import pyarrow.compute
    import pyarrow.csv
    import pyarrow.parquet
except ImportError:
    raise Error("needs pyarrow: pip install 'flopinj[fleet]'", 1) from None


@dataclass(frozen=True)
class Input:
    """A trace, and what is wrong with it."""

    file: str
    bytes: int
    rank: int | None
    session: str | None = None
    simulated: bool | None = None
    begin_ns: int | None = None
    source: str | None = None
    problem: str | None = None

    def but(self, problem: str | None) -> Input:
        """With a problem more."""
        both = "; ".join(filter(None, (self.problem, problem)))
        return replace(self, problem=both or None)


#: Of a recording: its launches, whether it has ended, and whether nothing of it is lost. What is
#: more is kept, as flopreduce merge does.
Worth = tuple[int, bool, bool]


def worth_of(row: dict[str, Any]) -> Worth:
    return int(row["launches"] or 0), bool(row["end"]), not row["damage"]


def _type_of(column: str) -> pa.DataType:
    kind = layout.kind_of(column)
    return pa.decimal128(38) if kind == "decimal128" else getattr(pa, kind)()


_FIGURES = ("hfu", "mfu", "hfu_kernel_time", "ratio", "coverage", "step_time")
_JOB = pa.schema([("begin", pa.timestamp("us")), *((name, _type_of(name)) for name in (
    "simulated", "partial", "traces", "problems", "processes", "world_size", "ranks_missing",
    "launches", "unmeasured_launches", "flop", "flop_mark", "gpu_time_ns", "gpu_time_ns_mark",
    *_FIGURES, *(f"{name}_mark" for name in _FIGURES if name not in ("coverage", "step_time"))))])


def read(file: str) -> tuple[pa.Table, int]:
    """A table of flopreduce's CSV form, and how many numbers were too large for their column.
    These, and unknown values, are null."""
    with open(file, newline="", encoding="utf-8") as lines:
        names = next(csv.reader(lines))
    types = {name: _type_of(name) for name in names}
    left_out = 0
    try:
        table = _read(file, types)
    except pa.ArrowInvalid:  # whatever a trace says is a number in its table, and a line of it
        table = _read(file, dict.fromkeys(names, pa.string()), os.path.getsize(file))
        for number, name in enumerate(names):
            if types[name] != pa.string():
                values, lost = _fitting(table[name].to_pylist(), types[name])
                table, left_out = table.set_column(number, name, values), left_out + lost
    for number, name in enumerate(names):
        if types[name] == pa.string():  # a text that looks like a formula has a ' in front
            plain = pa.compute.replace_substring_regex(table[name], "^'", "", max_replacements=1)
            table = table.set_column(number, name, plain)
    return table, left_out


def _read(file: str, types: dict[str, pa.DataType], block: int = 0) -> pa.Table:
    return pa.csv.read_csv(
        file, pa.csv.ReadOptions(block_size=min(max(block, 1 << 20), 1 << 30)),
        convert_options=pa.csv.ConvertOptions(
            column_types=types, null_values=[""], strings_can_be_null=True))


def _fitting(texts: list[str | None], kind: pa.DataType) -> tuple[pa.Array, int]:
    values = [None if text is None else float(text) if kind == pa.float64() else int(text)
              for text in texts]
    least, most = {pa.int64(): (-1 << 63, (1 << 63) - 1), pa.bool_(): (0, 1)}.get(
        kind, (-10**38 + 1, 10**38 - 1))
    fit = [value if value is not None and (kind == pa.float64() or least <= value <= most)
           else None for value in values]
    if kind == pa.bool_():
        fit = [None if value is None else bool(value) for value in fit]
    return pa.array(fit, kind), fit.count(None) - values.count(None)


def column(content: bytes, name: str) -> list[Any]:
    return _rows_of(content, [name])[name].to_pylist()


def _rows_of(content: bytes, names: list[str] | None = None) -> pa.Table:
    """Read by this thread alone. A thread of Arrow's that still has Python's bytes when the
    interpreter ends is ended in the middle of C++, and that aborts the process."""
    return pa.parquet.ParquetFile(pa.BufferReader(content)).read(names, use_threads=False)


def of_before(lake: Place, job: str, version: str) -> tuple[dict[str, Worth], list[Input]]:
    """What an earlier taking in has of each session, and the traces that it was given."""
    def rows(name: str) -> list[dict[str, Any]]:
        content = lake.read(layout.file_of(name, job, version))
        if content is None:
            raise FileNotFoundError(name)
        return _rows_of(content).to_pylist()

    names = {field.name for field in fields(Input)}
    return ({row["session"]: worth_of(row) for row in rows("processes")},
            [Input(**{key: value for key, value in row.items() if key in names})
             for row in rows("inputs")])


def figures(folder: str) -> dict[str, Any]:
    """The job's own, from flopreduce's table of the whole."""
    return read(f"{folder}/figures.csv")[0].to_pylist()[0]


def judged(inputs: list[Input]) -> list[Input]:
    """With what is wrong with traces only beside others."""
    real = next((one.file for one in inputs if one.simulated is False), None)
    first: dict[str, str] = {}
    found = []
    for one in inputs:
        problem = one.problem
        if one.simulated and real:
            problem = f"left out: it was recorded on the simulated GPU, {real} on a real one"
        elif one.session and first.setdefault(one.session, one.file) != one.file:
            one = one.but(f"has the same recording as {first[one.session]}: it counts once")
            problem = one.problem
        found.append(replace(one, problem=problem))
    return found


def of_inputs(inputs: list[Input]) -> pa.Table:
    return pa.table({
        field.name: pa.array([getattr(one, field.name) for one in inputs], _type_of(field.name))
        for field in fields(Input)})


def of_job(known: dict[str, Any], inputs: list[Input]) -> pa.Table:
    begins = [one.begin_ns for one in inputs if one.begin_ns]
    row = dict.fromkeys(_JOB.names) | known | {
        "begin": min(begins) // 1000 if begins else None, "traces": len(inputs),
        "problems": sum(one.problem is not None for one in inputs)}
    return pa.Table.from_pylist([row], _JOB)


def write(table: pa.Table, file: str, job: str, version: str) -> str:
    """The name of the Parquet file; each row says which job it is of, and which taking in."""
    for name, value in (("ingest", version), ("job", job)):
        table = table.add_column(0, name, pa.array([value] * len(table), pa.string()))
    pa.parquet.write_table(table, file, compression="zstd")
    return file
