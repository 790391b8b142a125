"""Takes the traces of a folder into a lake: what is to be done, and an engine that does it."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import duckdb

from flopinj import _programs, _progress
from flopinj.fleet import engines, keep, layout, work
from flopinj.fleet import lake as lakes
from flopinj.fleet.engines import Run
from flopinj.fleet.lake import Lake
from flopinj.fleet.layout import Taken
from flopinj.fleet.place import File, Place
from flopinj.fleet.tables import Input

_FILES_IN_PART = 2048
_BYTES_IN_PART = 1 << 30
_FILES_TO_LOOK_AT = 256


@dataclass
class Outcome:
    """What ingest() did."""

    done: list[str] = field(default_factory=list)  # jobs that are in the lake anew
    as_before: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)  # not in the lake, or as they were before
    traces: int = 0  # of both
    # Job, trace ("": the whole job), and what is wrong with it.
    problems: list[tuple[str, str, str]] = field(default_factory=list)
    passed_over: int = 0  # files that are no traces by their names, or too old


def ingest(source: str, out: str, engine: str = "local", *, job: str | None = None,
           job_from: str | None = None, workers: int | None = None, session: Any = None,
           options: Sequence[str] = (), since: datetime | None = None) -> Outcome:
    """Takes all traces below `source` into the lake `out`, and those only that are new or have
    changed since. What was taken in stays, whatever becomes of the traces. `job`: of all of them.
    `session`: a SparkSession or a client of Dask that is there already. `options`: of `report`,
    for the reports. `since`: traces that were not written since then are passed over."""
    lake, outcome = Place(out), Outcome()
    source, out = Place(source).url(""), lake.url("")  # as workers find them, from any folder
    lakes.check(lake)
    named = _Names(job, job_from, source)
    traces = _traces(source, lake, named, since, outcome)
    lakes.mark(lake)
    with engines.start(engine, workers, session) as run:
        program = _programs.run("flopreduce", "--version").strip()
        known = _Known(lake, out, source, layout.digest(program, list(options)))
        named.of_known(known.files)
        new = [file for file in traces if not known.has(file, named)]
        new = known.without_moved(new, named, run)
        parts = [work.Part(source, out, layout.digest(program, source, some), some)
                 for some in _cut(new)]
        inputs: dict[str, list[Input]] = defaultdict(list)
        parts_of: dict[str, dict[str, work.Part]] = defaultdict(dict)
        listed: list[tuple[work.Part, Input]] = []
        for part, said in _progress.shown("reading traces", sum(map(_bytes_of, parts)),
                                          run(work.condense, parts),
                                          lambda result: _bytes_of(result[0])):
            if isinstance(said, str):
                for name in {named.of(Input(file.name, 0, None)) for file in part.files}:
                    if name in outcome.failed:
                        continue
                    outcome.problems.append((name, "", said))
                    outcome.failed.append(name)
                continue
            listed += [(part, one) for one in said]
        named.of_inputs([one for _, one in listed])
        for part, one in sorted(listed, key=lambda pair: pair[1].file):
            name = named.of(one)
            rank = named.rank(one.file)
            inputs[name].append(one if rank in (None, one.rank) else replace(one, rank=rank))
            parts_of[name].setdefault(part.name, part)
        outcome.traces = len(traces)
        jobs_of = Counter(name for some in parts_of.values() for name in some)
        there = known.jobs_of(traces, named)
        names = {layout.shown(file.name) for file in traces}
        finals = []
        for name in sorted({*inputs, *there} - {*outcome.failed}):
            gone = known.gone(name, names)
            if name not in inputs and not gone and known.is_whole(name):
                outcome.as_before.append(name)
                continue
            its = list(parts_of[name].values())
            finals.append(work.Job(out, name, known.made_by, list(options), its,
                                   all(jobs_of[part.name] == 1 for part in its), inputs[name],
                                   gone, source))
        for name, fine, problems in _progress.shown("writing jobs", len(finals),
                                                    run(work.finish, finals)):
            outcome.problems += [(name, *problem) for problem in problems]
            (outcome.done if fine else outcome.failed).append(name)
        for part in parts:
            lake.remove(*(part.file(kind) for kind in ("0.sum.zst", "1.sum.zst", "json")))
    lake.remove_empty("parts")
    with suppress(duckdb.IOException):  # somebody else is at it too
        keep.compact(out, few=keep.FEW)
    outcome.done.sort()
    outcome.failed.sort()
    outcome.problems.sort()
    return outcome


def _bytes_of(part: work.Part) -> int:
    return sum(file.size for file in part.files) or 1


def _cut(files: list[File]) -> list[list[File]]:
    """Of a folder each; by how much there is to read."""
    cut: list[list[File]] = []
    size = 0
    for file in files:
        size += file.size
        if not cut or len(cut[-1]) == _FILES_IN_PART or size > _BYTES_IN_PART or dirname(
                cut[-1][0].name) != dirname(file.name):
            cut.append([])
            size = file.size
        cut[-1].append(file)
    return cut


def _traces(source: str, lake: Place, named: _Names, since: datetime | None,
            outcome: Outcome) -> list[File]:
    odd: list[tuple[str, str]] = []  # what is no file
    found = Place(source).files(without=lake, problem=lambda *of: odd.append(of))
    outcome.problems += [("", layout.shown(name), why) for name, why in odd
                         if named.is_trace(name) or why.startswith("cannot be listed")]
    traces = [file for file in found if named.is_trace(file.name) and not (
        since and file.modified and file.modified < since)]
    if not traces and not outcome.problems:
        how = named.hint(len(found)) if found else (
            "nothing is there" if "://" in source
            else "no file is in it; traces are *.pb and *.sum" if os.path.isdir(source)
            else "there is no such folder")
        if os.path.isfile(source):
            how = "it is a file; SOURCE is the folder that it is in"
        if since and any(named.is_trace(file.name) for file in found):
            how = f"none was written since {since}"
        raise _programs.Error(f"{source}: no traces: {how}", 2)
    outcome.passed_over = len(found) - len(traces)
    return traces


def dirname(name: str) -> str:
    return name.rpartition("/")[0]


class _Names:
    """Which job a trace is of: as it is given, by its name, else as its header says, else the name
    of its folder. A trace whose header is lost belongs to the job of its folder's others."""

    def __init__(self, job: str | None, job_from: str | None, source: str) -> None:
        if job and job_from:
            raise _programs.Error(
                "--job and --job-from: one of them says which job a trace is of", 2)
        self._job, self._text = job, job_from
        self._pattern = layout.JobPattern(job_from) if job_from else None
        self._root = source.rstrip("/").rpartition("/")[2]
        self._others: dict[str, set[str]] = defaultdict(set)

    def is_trace(self, name: str) -> bool:
        return bool(self._pattern.of(name) if self._pattern else layout.TRACES.fullmatch(name))

    def hint(self, files: int) -> str:
        if self._pattern:
            return f"none of the {files} files has a name like '{self._text}'"
        return "no name there ends in .pb or .sum, .gz or .zst behind it: --job-from takes others"

    def of_known(self, files: dict[str, list[_Before]]) -> None:
        self.of_inputs([one.given for some in files.values() for one in some])

    def of_inputs(self, inputs: list[Input]) -> None:
        for one in inputs:
            if one.session:
                self._others[dirname(one.file)].add(self._by_header(one))

    @staticmethod
    def _by_header(one: Input) -> str:
        return one.job_id and layout.default_name(
            one.job_id, one.cluster, one.requeues, one.restarts) or ""

    def of(self, one: Input) -> str:
        if self._job:
            return layout.job_name(self._job)
        if self._pattern and (found := self._pattern.of(one.file)):
            return layout.job_name(found[0])
        folder = dirname(one.file)
        job = self._by_header(one)
        if not one.session and len(self._others[folder]) == 1:
            (job,) = self._others[folder]
        return layout.job_name(job or folder or self._root or "job")

    def rank(self, file: str) -> int | None:
        found = self._pattern.of(file) if self._pattern else None
        return found[1] if found else None


@dataclass(frozen=True)
class _Before:
    """A trace that was given before."""

    job: str
    given: Input


class _Known:
    """What the lake has of this source's traces."""

    def __init__(self, lake: Place, out: str, source: str, made_by: str) -> None:
        self.made_by, self._source = made_by, source
        self._lake = Lake(out) if lake.files("jobs") else None
        self.files: dict[str, list[_Before]] = defaultdict(list)
        self._jobs: dict[str, tuple[str, str | None]] = {}  # INGEST, and what it was made by
        self._moved: set[tuple[str, str]] = set()  # session and job, elsewhere by now
        self._same: set[str] = set()  # traces that are in the lake from another place
        self._jobs_of_same: dict[str, str] = {}
        self._taken: dict[str, set[Taken]] = defaultdict(set)
        for taken in layout.summaries(file.name for file in lake.files("summaries")):
            self._taken[taken.job].add(taken)
        if self._lake:
            for row in self._lake.rows("SELECT job, ingest, made_by FROM jobs"):
                self._jobs[row["job"]] = row["ingest"], row["made_by"]
            for one in self._inputs("source = ?", source):
                self.files[one.given.file].append(one)

    def _inputs(self, where: str, value: object) -> list[_Before]:
        assert self._lake
        columns = ", ".join(name for name in Input.__dataclass_fields__ if name != "sessions")
        rows = self._lake.rows(f"SELECT job, {columns} FROM inputs WHERE {where}", value)
        return [_Before(row.pop("job"), Input(**{key: value for key, value in row.items()
                                                 if value is not None or key != "cluster"}))
                for row in rows]

    def _current(self, job: str) -> bool:
        return self._jobs.get(job, ("", None))[1] == self.made_by

    def has(self, file: File, named: _Names) -> bool:
        """As it was when it was taken in, and into the job that it is of."""
        return any(one.given.bytes == file.size and one.given.version == file.version and
                   one.job == named.of(one.given) and self._current(one.job)
                   for one in self.files.get(layout.shown(file.name), ()))

    def without_moved(self, files: list[File], named: _Names, run: Run) -> list[File]:
        """But for those whose recordings are in the lake to their end, from wherever."""
        if not self._lake or not self._jobs:
            return files
        source = self._source
        tasks = [(source, files[at:at + _FILES_TO_LOOK_AT])
                 for at in range(0, len(files), _FILES_TO_LOOK_AT)]
        mark_of = {name: mark for some in run(work.marks, tasks) for name, mark in some}
        there: dict[str, list[_Before]] = defaultdict(list)
        for one in self._inputs("whole AND mark IN (SELECT unnest(?))",
                                [mark for mark in mark_of.values() if mark]):
            there[one.given.mark or ""].append(one)
        new = []
        for file in files:
            found = [one for one in there.get(mark_of[file.name] or "", ())
                     if one.job == named.of(replace(one.given, file=file.name)) and
                     self._current(one.job)]
            if not found:
                new.append(file)
                continue
            self._same.add(file.name)
            self._jobs_of_same[file.name] = found[0].job
            self._moved |= {(one.given.session or "", one.job) for one in found}
        return new

    def jobs_of(self, traces: list[File], named: _Names) -> set[str]:
        """That have traces among these which are not new."""
        found = set(self._jobs_of_same.values())
        for file in traces:
            found |= {one.job for one in self.files.get(layout.shown(file.name), ())
                      if one.job == named.of(one.given)}
        return found

    def gone(self, job: str, names: set[str]) -> list[str]:
        return sorted(one.given.file for name, some in self.files.items() if name not in names
                      for one in some if one.job == job and not (
                          one.given.problem and "is there no more" in one.given.problem) and
                      (one.given.session or "", job) not in self._moved)

    def is_whole(self, job: str) -> bool:
        """Nobody was killed while he took it in."""
        counts = self._jobs.get(job, ("", None))[0]
        taken = {one for _, folder in layout.folders_of(job) for one in self._taken[folder]}
        return {one.ingest for one in taken} <= {counts} and self._current(job)
