"""A job's tables: its report, as Arrow and Parquet."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

from flopinj._programs import Error, install
from flopinj.fleet import layout
from flopinj.fleet.layout import Taken
from flopinj.fleet.place import Place

try:
    import duckdb
    import pyarrow as pa
    import pyarrow.compute
    import pyarrow.csv
    import pyarrow.parquet
except ImportError as missing:
    raise Error(f"needs {missing.name}: {install('fleet')}", 1) from None

#: Tables of a report: as they are, and for the figures of a job.
_COPIED = ("rows", "step_list", "processes", "paths")
KEYS = (*_COPIED, "figures", "lost", "devices", "labels", "measuring", "rank_slowdown")
_ROWS_IN_FILE = 1 << 20
_NS_IN_HOUR = 3.6e12
_JOULES_IN_KWH = 3.6e6


class Worth(NamedTuple):
    """Of a recording. What is more is kept, as flopinj merge does."""

    launches: int
    ended: bool
    sound: bool  # nothing of it is lost


@dataclass(frozen=True)
class Input:
    """A trace, and what is wrong with it."""

    file: str
    bytes: int
    rank: int | None = None
    session: str | None = None
    simulated: bool | None = None
    begin_ns: int | None = None
    source: str | None = None
    problem: str | None = None
    version: str | None = None  # of the file, as its file system says
    mark: str | None = None  # the same wherever the file is
    whole: bool = False  # all of it is in the lake, and no more will come
    cluster: str = ""
    job_id: str | None = None
    requeues: int = 0
    restarts: int = 0
    sessions: list[str] = field(default_factory=list)  # of a summary there are several

    def but(self, problem: str | None) -> Input:
        """With a problem more."""
        if not problem:
            return self
        return replace(self, problem="; ".join(filter(None, (self.problem, problem))))


_INPUT = layout.MADE["inputs"]


@dataclass(frozen=True)
class Record:
    """What was taken in of a job."""

    sessions: dict[str, Worth]
    inputs: list[Input]
    taken_in: datetime | None = None

    def text(self, month: str, stem: str) -> str:
        return json.dumps({"month": month, "stem": stem, "sessions": self.sessions,
                           "taken_in": str(self.taken_in),
                           "inputs": [vars(one) for one in self.inputs]})


def record_of(lake: Place, one: Taken) -> Record:
    """Raises FileNotFoundError."""
    if not one.old:
        content = lake.read(one.record)
        if content is None:
            raise FileNotFoundError(one.record)
        found = unpacked(content)
        return Record({key: Worth(*worth) for key, worth in found["sessions"].items()},
                      [Input(**given) for given in found["inputs"]],
                      datetime.fromisoformat(found["taken_in"]))

    def rows(name: str) -> list[dict[str, Any]]:
        content = lake.read(one.table(name))
        if content is None:
            raise FileNotFoundError(name)
        # Only this thread reads. A thread of Arrow that still holds Python's bytes when the
        # interpreter ends would be ended in the middle of C++, which aborts the process.
        file = pa.parquet.ParquetFile(pa.BufferReader(content))
        found: list[dict[str, Any]] = file.read(use_threads=False).to_pylist()
        return found

    return Record(
        {row["session"]: Worth(int(row["launches"] or 0), bool(row["end"]), not row["damage"])
         for row in rows("processes")},
        [Input(**{key: row[key] for key in _INPUT if key in row},
               sessions=[row["session"]] if row["session"] else []) for row in rows("inputs")])


def packed(path: str) -> str:
    """Compressed, with the same bytes each time."""
    with open(path, "rb") as plain, pa.output_stream(f"{path}.zst", compression="zstd") as out:
        while block := plain.read(1 << 20):
            out.write(block)
    return f"{path}.zst"


def unpacked(content: bytes) -> Any:
    with pa.input_stream(pa.BufferReader(content), compression="zstd") as plain:
        return json.loads(plain.read())


def judged(inputs: list[Input], kept: list[Input]) -> list[Input]:
    """With what is wrong with traces only beside others."""
    real = next((one.file for one in (*kept, *inputs) if one.simulated is False), None)
    first = {one.session: one.file for one in kept if one.session}
    found = []
    for one in inputs:
        if one.simulated and real and not any(other.simulated for other in kept):
            one = replace(one, problem="left out: it was recorded on the simulated GPU, "
                                       f"{real} on a real one")
        elif one.session and first.setdefault(one.session, one.file) != one.file and not any(
                other.session == one.session and other.file == first[one.session] and
                other.source != one.source for other in kept):
            one = one.but(f"has the same recording as {first[one.session]}: it counts once")
        found.append(one)
    return found


def _type_of(column: str) -> pa.DataType:
    kind = layout.kind_of(column)
    if kind == "timestamp":
        return pa.timestamp("us", tz="UTC")
    return pa.decimal128(38) if kind == "decimal128" else getattr(pa, kind)()


def _schema(table: str) -> pa.Schema:
    return pa.schema([(name, pa.string() if (table, name) == ("inputs", "version") else
                       _type_of(name)) for name in layout.MADE[table]])


class Report:
    """A folder with tables of a report's CSV form."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.left_out: Counter[str] = Counter()  # numbers that are too large for their column
        processes = self.table("processes")
        columns = [processes[name].to_pylist() for name in (
            "session", "launches", "end", "damage", "run")]
        self.processes = processes
        self.worth = {session: Worth(int(launches or 0), bool(end), not damage)
                      for session, launches, end, damage, _ in zip(*columns)}
        self.runs: dict[str, int] = dict(zip(columns[0], columns[4]))

    def has(self, name: str) -> bool:
        return os.path.exists(f"{self.folder}/{name}.csv")

    def dicts(self, name: str) -> list[dict[str, str]]:
        if not self.has(name):
            return []
        with open(f"{self.folder}/{name}.csv", newline="", encoding="utf-8") as lines:
            return list(csv.DictReader(lines))

    def table(self, name: str) -> pa.Table:
        return pa.Table.from_batches(*self._all(name))

    def _all(self, name: str) -> tuple[list[pa.RecordBatch], pa.Schema]:
        schema, batches = self.batches(name)
        return list(batches), schema

    def batches(self, name: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """Some rows after others. Numbers that are too large, and unknown values, are null."""
        file = f"{self.folder}/{name}.csv"
        with open(file, newline="", encoding="utf-8") as lines:
            names = next(csv.reader(lines))
        # Instants are of a lake's own tables.
        types = {column: pa.string() if layout.kind_of(column) == "timestamp" else
                 _type_of(column) for column in names}
        return pa.schema(list(types.items())), self._batches(name, file, types)

    def _batches(self, name: str, file: str,
                 types: dict[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
        try:
            for batch in _read(file, types):
                yield _unguarded(batch, types)
        except pa.ArrowInvalid:  # whatever a trace says is a number in its table, and a line of it
            texts = dict.fromkeys(types, pa.string())
            for batch in _read(file, texts, max(os.path.getsize(file), 1 << 20)):
                columns = []
                for column, kind in types.items():
                    values = batch.column(column)
                    if kind != pa.string():
                        values, lost = _fitting(values.to_pylist(), kind)
                        self.left_out[name] += lost
                    columns.append(values)
                yield _unguarded(pa.RecordBatch.from_arrays(columns, list(types)), types)


def _read(file: str, types: dict[str, pa.DataType], block: int = 0) -> Iterator[pa.RecordBatch]:
    options = pa.csv.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=True)
    if os.path.getsize(file) < 1 << 25:  # all of it is checked before any of it is used
        yield from pa.csv.read_csv(
            file, pa.csv.ReadOptions(block_size=min(max(block, 1 << 20), 1 << 30)),
            convert_options=options).to_batches()
        return
    yield from pa.csv.open_csv(
        file, pa.csv.ReadOptions(block_size=min(max(block, 1 << 24), 1 << 30)),
        convert_options=options)


def _unguarded(batch: pa.RecordBatch, types: dict[str, pa.DataType]) -> pa.RecordBatch:
    """A text that looks like a formula has a ' in front."""
    columns = []
    for name, kind in types.items():
        values = batch.column(name)
        if kind == pa.string() and pa.compute.any(pa.compute.starts_with(values, "'")).as_py():
            values = pa.compute.replace_substring_regex(values, "^'", "", max_replacements=1)
        columns.append(values)
    return pa.RecordBatch.from_arrays(columns, list(types))


def _fitting(texts: list[str | None], kind: pa.DataType) -> tuple[pa.Array, int]:
    values = [None if text is None else float(text) if kind == pa.float64() else int(text)
              for text in texts]
    least, most = {pa.int64(): (-1 << 63, (1 << 63) - 1), pa.bool_(): (0, 1)}.get(
        kind, (-10**38 + 1, 10**38 - 1))
    fit: list[Any] = [value if value is not None and (
        kind == pa.float64() or least <= value <= most) else None for value in values]
    if kind == pa.bool_():
        fit = [None if value is None else bool(value) for value in fit]
    return pa.array(fit, kind), fit.count(None) - values.count(None)


def columns_hash(schema: pa.Schema) -> str:
    return layout.digest([(one.name, str(one.type)) for one in schema])[:6]


class Made:
    """Parquet files of a job on this machine, for a lake."""

    def __init__(self, job: str, ingest: str, pack: str, folder: str) -> None:
        self.job_name, self.ingest, self.pack, self.folder = job, ingest, pack, folder
        self.large: list[tuple[str, str, int, str]] = []  # table, columns, number, file
        self.small: list[tuple[str, str, str]] = []  # table, columns, file

    def report(self, report: Report) -> dict[str, int]:
        """Numbers that were left out of a table."""
        for name in layout.LARGE:
            if report.has(name):  # not all have steps
                self._large(name, *report.batches(name))
        self._small("processes", report.processes)
        self._small("paths", report.table("paths"))
        self._small("rank_slowdown", report.table("rank_slowdown"))
        self._summed()
        return dict(report.left_out)

    def _large(self, name: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        schema = schema.insert(0, pa.field("ingest", pa.string()))
        columns, rows, writer = columns_hash(schema), 0, None
        for batch in batches:
            if writer is None or rows + len(batch) > _ROWS_IN_FILE:
                if writer:
                    writer.close()
                file = f"{self.folder}/{name}{len(self.large)}.parquet"
                writer, rows = pa.parquet.ParquetWriter(file, schema, compression="zstd"), 0
                number = sum(table == name for table, *_ in self.large)
                self.large.append((name, columns, number, file))
            ingest = pa.repeat(self.ingest, len(batch))
            writer.write_batch(pa.RecordBatch.from_arrays([ingest, *batch.columns], schema=schema))
            rows += len(batch)
        if writer:
            writer.close()

    def _small(self, name: str, table: pa.Table) -> None:
        """Each row says which job it is of, and which taking in."""
        for column, value in (("pack", self.pack), ("ingest", self.ingest),
                              ("job", self.job_name)):
            table = table.add_column(0, column, pa.repeat(value, len(table)))
        file = f"{self.folder}/{name}.parquet"
        pa.parquet.write_table(table, file, compression="zstd")
        self.small.append((name, columns_hash(table.schema), file))

    def _summed(self) -> None:
        """What questions about all jobs would have to add up from `rows` again and again."""
        files = [file for table, _, _, file in self.large if table == "rows"]
        if not files:
            return
        connection = duckdb.connect()
        connection.execute("SET threads = 1; SET memory_limit = '128MB'")
        connection.execute(f"SET temp_directory = '{self.folder}'")
        connection.read_parquet(files).create_view("rows")
        text = (Path(__file__).parent / "queries" / "made" / "kernels.sql").read_text()
        self._small("kernels", connection.sql(text).to_arrow_table())
        connection.close()

    def job(self, report: Report | None, record: Record, made_by: str) -> dict[str, Any]:
        inputs = record.inputs
        self._small("inputs", pa.table([
            pa.array([getattr(one, name) for one in inputs], kind)
            for name, kind in zip(_INPUT, _schema("inputs").types)], schema=_schema("inputs")))
        row: dict[str, Any] = dict.fromkeys(layout.JOBS)
        row |= {"traces": len(inputs), "taken_in": record.taken_in, "made_by": made_by,
                "problems": sum(one.problem is not None for one in inputs)}
        first = next((one for one in inputs if one.session in record.sessions), None)
        if first:
            row |= {"cluster": first.cluster or None, "job_id": first.job_id or None,
                    "requeues": first.requeues, "restarts": first.restarts}
        begins = [one.begin_ns for one in inputs
                  if one.begin_ns and (not record.sessions or one.session in record.sessions)]
        row["begin"] = instant(min(begins)) if begins else None
        if report:
            row |= self._figures(report, row)
        self._rows("jobs", [row])
        return row

    def _figures(self, report: Report, row: dict[str, Any]) -> dict[str, Any]:
        (known,) = report.table("figures").to_pylist()
        columns = [report.processes[name].to_pylist() for name in ("begin_ns", "wall_ns")]
        spans = [(int(begin), int(begin) + int(wall or 0)) for begin, wall in zip(*columns)
                 if begin is not None and int(begin) < 1 << 63]
        joules, wall = known["energy_j"], known["wall_device_ns"]
        bound = "<=" in (known["flop_per_j_mark"] or "")  # some of the energy is not known
        known |= {"energy_joules": joules, "energy_joules_mark": known["energy_j_mark"],
                  "kwh": joules and joules / _JOULES_IN_KWH,
                  "flop_per_joule": None if bound else known["flop_per_j"],
                  "gpu_hours": wall and wall / _NS_IN_HOUR}
        known = {key: value for key, value in known.items() if key in row}
        known |= dict.fromkeys(("begin", "ended", "wall_ns"))
        if spans:  # else it is known of no process when it began
            begin, end = min(one for one, _ in spans), max(one for _, one in spans)
            known |= {"begin": instant(begin), "ended": instant(end), "wall_ns": end - begin}
        devices = report.dicts("devices")
        hosts = report.processes["hostname"].to_pylist()
        gpus: dict[object, list[dict[str, str]]] = defaultdict(list)
        for one in devices:
            gpus[hosts[int(one["process"])], one["uuid"] or one["ordinal"]].append(one)
        known["gpus"] = len(gpus)
        known["energy_gpus"] = sum(all(device["energy_j"] for device in one)
                                   for one in gpus.values())
        known["chip"] = ", ".join(sorted({one["chip"] or one["device"] for one in devices})) or None
        known["measuring_ranks"] = sum(
            one["counters_state"] == "read" for one in report.dicts("measuring"))
        self._labels(report, known)
        self._rows("lost", [
            {"line": one["line"], "parent": one["parent"] or None, "ns": int(float(one["ns"])),
             "ns_mark": one["ns_mark"] or None, "share": float(one["share"] or "nan"),
             "gpu_hours": float(one["ns"]) / _NS_IN_HOUR}
            for one in report.dicts("lost") if one["ns"]])
        self.days(known)
        return known

    def _labels(self, report: Report, known: dict[str, Any]) -> None:
        """Of each name the value that most processes have."""
        values: dict[str, Counter[str]] = defaultdict(Counter)
        for one in report.dicts("labels"):
            values[one["name"].removeprefix("'")][one["value"].removeprefix("'")] += 1
        rows = [{"name": name, "value": value, "processes": count}
                for name, of in sorted(values.items()) for value, count in sorted(of.items())]
        self._rows("labels", rows)
        for name in {"user", "team", "model", "cluster"} & set(values):
            known["user_name" if name == "user" else name] = min(
                values[name], key=lambda value: (-values[name][value], value))

    def days(self, known: dict[str, Any]) -> None:
        """A job counts on each of its days, by the part of its wall time that is there. One of
        which it is not known when it ran counts on none."""
        begin, end = known["begin"], known["ended"]
        if begin is None:
            return self._rows("days", [])
        day = begin.replace(hour=0, minute=0, second=0, microsecond=0)
        rows: list[dict[str, Any]] = []
        while day <= end and len(rows) < 3660:
            next_day = day + timedelta(days=1)
            part = (min(end, next_day) - max(begin, day)) / timedelta(microseconds=1)
            whole = (end - begin) / timedelta(microseconds=1)
            share = part / whole if whole else 1.0
            if share or not rows:
                rows.append({
                    "day": day.date(), "wall_ns": int(part * 1000), "share": share,
                    "gpu_hours": None if known["gpu_hours"] is None else known["gpu_hours"] * share,
                    "flop": None if known["flop"] is None else round(float(known["flop"]) * share)})
            day = next_day
        self._rows("days", rows)

    def _rows(self, name: str, rows: list[dict[str, Any]]) -> None:
        self._small(name, pa.Table.from_pylist(rows, _schema(name)))


def instant(ns: int) -> datetime:
    return datetime.fromtimestamp(0, timezone.utc) + timedelta(microseconds=ns // 1000)
