"""A job's tables: what flopreduce says of it, as Arrow and Parquet."""

from __future__ import annotations

import csv
import json
from dataclasses import fields, replace
from pathlib import Path

from flopinj._programs import Error
from flopinj.fleet import layout

try:
    import pyarrow as pa
    import pyarrow.compute
    import pyarrow.csv
    import pyarrow.parquet
except ImportError:
    raise Error("needs pyarrow: pip install 'flopinj[fleet]'", 1) from None

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from flopinj.fleet.work import Input

_FIGURES = ("hfu", "mfu", "hfu_kernel_time", "ratio", "coverage", "step_time")
_JOB = pa.schema([
    ("begin", pa.timestamp("us")), ("simulated", pa.bool_()), ("partial", pa.bool_()),
    ("traces", pa.int64()), ("problems", pa.int64()), ("processes", pa.int64()),
    ("world_size", pa.int64()), ("ranks_missing", pa.int64()), ("launches", pa.int64()),
    ("unmeasured_launches", pa.int64()), ("flop", pa.decimal128(38)), ("flop_mark", pa.string()),
    ("gpu_time_ns", pa.int64()), ("gpu_time_ns_mark", pa.string()),
    *((name, pa.float64()) for name in _FIGURES)
])
_INPUT = {"bytes": pa.int64(), "rank": pa.int64(), "simulated": pa.bool_(), "begin_ns": pa.int64()}


def _type_of(column: str) -> pa.DataType:
    kind = layout.kind_of(column)
    return pa.decimal128(38) if kind == "decimal128" else getattr(pa, kind)()


def read(file: str) -> pa.Table:
    """A table of flopreduce's CSV form; unknown values are null."""
    with open(file, newline="", encoding="utf-8") as lines:
        names = next(csv.reader(lines))
    types = {name: _type_of(name) for name in names}
    table = pa.csv.read_csv(file, convert_options=pa.csv.ConvertOptions(
        column_types=types, null_values=[""], strings_can_be_null=True))
    for number, name in enumerate(names):
        if types[name] == pa.string():  # a text that looks like a formula has a ' in front
            plain = pa.compute.replace_substring_regex(table[name], "^'", "", max_replacements=1)
            table = table.set_column(number, name, plain)
    return table


def figures(folder: str) -> dict[str, Any]:
    """The job's own, from its report and its table of the whole."""
    report = json.loads(Path(folder, "report.json").read_bytes())
    with open(Path(folder, "tables", "report.csv"), newline="", encoding="utf-8") as lines:
        whole = next(csv.DictReader(lines))
    found: dict[str, Any] = {name: report[name] for name in ("simulated", "partial", *_FIGURES)}
    found["processes"] = len(report["traces"])
    found["world_size"] = report["ranks"]["world_size"]
    found["ranks_missing"] = len(report["ranks"]["missing"])
    for name in ("launches", "unmeasured_launches", "flop", "gpu_time_ns"):
        found[name] = int(whole[name]) if whole[name] else None
    for name in ("flop_mark", "gpu_time_ns_mark"):
        found[name] = whole[name] or None
    return found


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
            copy = f"has the same recording as {first[one.session]}: it counts once"
            problem = f"{problem}; {copy}" if problem else copy
        found.append(replace(one, problem=problem))
    return found


def of_inputs(inputs: list[Input]) -> pa.Table:
    from flopinj.fleet.work import Input

    return pa.table({
        field.name: pa.array([getattr(one, field.name) for one in inputs],
                             _INPUT.get(field.name, pa.string()))
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
