"""The steps of taking traces in, each a function of one task, which engines map: mark traces by
their beginnings, condense some traces into a part, finish a job from its parts.

Tasks and results are plain values. Whatever a task writes has its whole name from what it reads, so
a task may be done again, by two workers at once, or after one was killed in the middle. What is
wrong with a trace costs the trace, and what nobody thought of costs the job; the command line ends
all of it.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from flopinj import _programs
from flopinj.fleet import layout, tables
from flopinj.fleet.layout import Taken
from flopinj.fleet.place import File, Place
from flopinj.fleet.tables import Input, Record, Worth

Problem = tuple[str, str]  # a trace, "" for the whole job, and what is wrong with it

_AT_ONCE = 8  # files that are fetched at the same time
_FILES_OF_A_THREAD = 32  # one after another
_TRIES = 3  # of a program that was killed
_FINE = (0, 3, 4)  # 3, 4: something is missing, and said
_USAGE = 2
_NOTHING = 5  # no input can be used: there is no output
_BEGINNING = 1 << 16  # bytes; they have the session, which no other recording has


def marks(task: tuple[str, list[File]]) -> list[tuple[str, str | None]]:
    """What a trace is known by wherever it is: its size and a hash of its beginning."""
    place = Place(task[0])

    def mark(file: File) -> str | None:
        try:
            return _mark(file.size, place.fs.cat_file(place.path(file.name), end=_BEGINNING))
        except Exception:  # it is named when it is to be condensed
            return None

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(zip((file.name for file in task[1]), pool.map(mark, task[1])))


def _mark(size: int, beginning: bytes) -> str:
    return f"{size:x}-{hashlib.blake2b(beginning, digest_size=16).hexdigest()}"


@dataclass(frozen=True)
class Part:
    """Some traces of a folder; they may be of several jobs."""

    source: str
    lake: str
    name: str
    files: list[File]

    def file(self, kind: str) -> str:
        return f"parts/{self.name}.{kind}"


def condense(part: Part) -> tuple[Part, list[Input] | str]:
    """Writes summaries of the part's traces, and the list of them, which comes back; or why it
    cannot be."""
    try:
        lake = Place(part.lake)
        content = lake.read(part.file("json"))
        return part, ([Input(**one) for one in json.loads(content)] if content else
                      _condensed(part, lake))
    except Exception as error:
        return part, _cost_of_job(error)


def _cost_of_job(error: Exception) -> str:
    """What to say of an error that costs a job. Others end all of it."""
    if getattr(error, "exit_code", 0) == _USAGE:
        raise error
    said = str(error).strip().partition("\n")[0]
    known = isinstance(error, (_programs.Error, OSError))
    return said if known and said else f"{type(error).__name__}: {said}"


def _condensed(part: Part, lake: Place) -> list[Input]:
    source = Place(part.source)
    with tempfile.TemporaryDirectory(prefix="flopinj-") as folder:

        def fetch(number: int, file: File) -> tuple[str, str, str | None]:
            path = f"{folder}/{number}"
            try:
                path = source.get(file.name, path)
                with open(path, "rb") as trace:
                    return path, _mark(file.size, trace.read(_BEGINNING)), None
            except OSError as error:
                return path, "", ("is there no more" if isinstance(error, FileNotFoundError) else
                                  f"cannot be read: {error.strerror or error}")

        def fetch_some(first: int) -> list[tuple[str, str, str | None]]:
            return [fetch(first + at, file)
                    for at, file in enumerate(part.files[first:first + _FILES_OF_A_THREAD])]

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            fetched = [one for some in pool.map(fetch_some, range(
                0, len(part.files), _FILES_OF_A_THREAD)) for one in some]
        usable = [path for path, _, problem in fetched if not problem]
        merged = _merge(usable, f"{folder}/part.sum") if usable else Merged()
        of_file: dict[str, list[dict[str, str]]] = {path: [] for path, _, _ in fetched}
        for row in merged.recordings:
            of_file[row["file"]].append(row)
        inputs = []
        for file, (path, mark, problem) in zip(part.files, fetched):
            if not problem:
                problem = merged.problems.get(path)
                if not of_file[path]:
                    problem = problem or "its header is lost: left out"
            inputs.append(Input(
                layout.shown(file.name), file.size, source=part.source, version=file.version,
                mark=mark or None, **_header(of_file[path])).but(problem))
        # What is without a header is in no summary; real recordings have one of their own, since
        # simulated ones beside them would be left out.
        kinds = {kind: [path for path in usable if {row["simulated"] for row in of_file[path]} ==
                        {kind}] for kind in "01"}
        for kind, paths in kinds.items():
            made = f"{folder}/part.sum"
            if paths and len(paths) < len(usable):
                made = f"{folder}/{kind}.sum"
                said = _merge(paths, made).problems
                inputs = [one if path not in said else replace(one, problem=said[path])
                          for one, (path, _, _) in zip(inputs, fetched)]
            if paths and os.path.exists(made):
                lake.put(tables.packed(made), part.file(f"{kind}.sum.zst"))
        Path(folder, "part.json").write_text(json.dumps([vars(one) for one in inputs]))
        lake.put(f"{folder}/part.json", part.file("json"))
        return inputs


def _header(recordings: list[dict[str, str]]) -> dict[str, Any]:
    """What it says, of an Input's members."""
    if not recordings:
        return {}
    first = recordings[0]
    begin = int(first["begin_ns"])
    known = begin < 1 << 63
    return {
        "rank": int(first["rank"]) if first["rank"] else None, "session": first["session"],
        "sessions": [row["session"] for row in recordings], "simulated": first["simulated"] == "1",
        "begin_ns": begin if known else None, "cluster": _plain(first["cluster"]),
        "job_id": _plain(first["job_id"]), "requeues": int(first["requeues"]),
        "restarts": int(first["restarts"]),
        "problem": None if known else "the time in its header is none"}


def _plain(text: str) -> str:
    """A text that looks like a formula has a ' in front in the CSV form of reports."""
    return text[1:] if text.startswith("'") else text


class _Killed(_programs.Error):
    """The program was ended by a signal, each time."""


def _of_traces(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    """It is run again where something has killed it: over the files that it has left then."""
    for _ in range(_TRIES):
        done = _programs.call("flopreduce", *arguments, "--force")
        if done.returncode >= 0:
            return done
    raise _Killed(f"flopinj was ended by signal {-done.returncode}, {_TRIES} times", 1)


@dataclass(frozen=True)
class Merged:
    """What is wrong with which input, and the recordings that each has."""

    problems: dict[str, str]
    recordings: list[dict[str, str]]

    def __init__(self, problems: dict[str, str] | None = None,
                 recordings: list[dict[str, str]] | None = None) -> None:
        object.__setattr__(self, "problems", problems or {})
        object.__setattr__(self, "recordings", recordings or [])


def _merge(names: list[str], out: str, *more: str) -> Merged:
    """Where no input can be used there is no output."""
    listed, of = f"{out}.csv", f"{out}.names"
    Path(of).write_text("".join(f"{name}\n" for name in names))
    try:
        done = _of_traces("merge", f"--output={out}", f"--list={listed}", f"--files-from={of}",
                           *more)
    except _Killed as killed:
        Path(out).unlink(missing_ok=True)  # it may have been written before the signal came
        if len(names) == 1:
            return Merged({names[0]: str(killed)})
        # By halves the one is found that it cannot live with.
        middle, halves = len(names) // 2, (f"{out}.1", f"{out}.2")
        one, two = _merge(names[:middle], halves[0]), _merge(names[middle:], halves[1])
        there = [half for half in halves if os.path.exists(half)]
        both = _merge(there, out).problems if there else {}
        return Merged(one.problems | two.problems | both, one.recordings + two.recordings)
    problems: dict[str, str] = {}
    known, said = set(names), done.stderr.decode(errors="replace")
    for line in said.splitlines():
        name, _, problem = line.partition(": ")[2].partition(": ")
        if name in known:
            problems[name] = f"{problems[name]}; {problem}" if name in problems else problem
    if done.returncode not in (*_FINE, _NOTHING):
        raise _programs.Error(said.strip().partition("\n")[0], done.returncode)
    rows: list[dict[str, str]] = []
    if os.path.exists(listed):
        with open(listed, newline="", encoding="utf-8") as lines:
            rows = list(csv.DictReader(lines))
        os.remove(listed)
    return Merged(problems, rows)


@dataclass(frozen=True)
class Job:
    lake: str
    name: str
    made_by: str  # a hash of the program and its options
    options: list[str]  # of flopinj report
    parts: list[Part]
    alone: bool  # `parts` have recordings of this job only
    inputs: list[Input]  # new or changed traces, which are in the parts
    gone: list[str]  # traces of this source that were taken in, and are there no more
    source: str


def finish(job: Job) -> tuple[str, bool, list[Problem]]:
    """Joins the parts with what was taken in before, writes the job's tables, and makes them count.
    Returns the job, whether it is in the lake as it is now, and what is wrong."""
    try:
        return job.name, *_finished(job)
    except Exception as error:
        return job.name, False, [("", _cost_of_job(error))]


@dataclass(frozen=True)
class Summary:
    """A summary on this machine, with its report."""

    file: str
    report: tables.Report

    @staticmethod
    def of(file: str, options: list[str], *only: str) -> Summary:
        folder = f"{file}.tables"
        keys = only or tables.KEYS
        done = _of_traces("--format=csv", f"--output={folder}/", "--quiet",
                           f"--table={','.join((*keys, 'runs'))}", *options, file)
        if done.returncode not in _FINE:
            raise _programs.Error(done.stderr.decode(errors="replace").strip(), done.returncode)
        return Summary(file, tables.Report(folder))


def _less(now: dict[str, Worth], before: dict[str, Worth]) -> set[str]:
    """Sessions that were worth more before."""
    return {session for session, worth in before.items()
            if session not in now or now[session] < worth}


def versions(lake: Place, job: str) -> list[Taken]:
    """Which takings in have left a summary of the job."""
    return [one for folder, _ in layout.folders_of(job) for one in layout.summaries(
        file.name for file in lake.files(f"summaries/{folder}"))]


def _finished(job: Job) -> tuple[bool, list[Problem]]:
    """Until the last file is written nobody has seen anything; from then on everybody sees all of
    it. Who finds that somebody else was at it too does it again, with what the other one wrote."""
    lake = Place(job.lake)
    for _ in range(_ROUNDS):
        before = versions(lake, job.name)
        try:
            with tempfile.TemporaryDirectory(prefix="flopinj-") as folder:
                made, problems = _made(job, lake, before, folder)
        except _Gone:
            continue
        if made is None:
            break
        mine, record = made
        there = set(versions(lake, job.name))
        others = there - {*before, mine}
        whole = mine in there or not record.sessions  # without a recording there is no summary
        if whole and not _more_in(lake, others, record):
            for one in before:
                if one != mine:
                    remove(lake, one)
            break
    else:
        raise _programs.Error("is taken in by others at the same time, again and again: do it "
                              "again", 1)
    return made is not None, problems


def _more_in(lake: Place, others: set[Taken], mine: Record) -> bool:
    """Whether somebody else, at the same time, took in what is not here."""
    try:
        return any(_less(mine.sessions, tables.record_of(lake, other).sessions)
                   for other in others)
    except FileNotFoundError:  # it has been joined, and removed, meanwhile
        return True


class _Gone(Exception):
    """Somebody else removed what was to be joined."""


def _made(job: Job, lake: Place, before: list[Taken],
          folder: str) -> tuple[tuple[Taken, Record] | None, list[Problem]]:
    """What it is now, or None where the job stays as it was; and what is wrong."""
    earlier: dict[str, Worth] = {}
    records: list[Record] = []
    for taken in before:
        try:
            record = tables.record_of(lake, taken)
        except FileNotFoundError:  # who removed it was killed before the summary was
            summary = Summary.of(_fetched(lake, taken.summary, folder), job.options, "processes")
            record = Record(summary.report.worth, [])
        earlier |= {session: max(worth, earlier.get(session, worth))
                    for session, worth in record.sessions.items()}
        records.append(record)
    # The newest first: of a trace that several have it says what is wrong with it.
    never = datetime.min.replace(tzinfo=timezone.utc)
    records.sort(key=lambda record: record.taken_in or never, reverse=True)
    last = records[0].taken_in or never if records else never
    kept = _without_doubles([one for record in records for one in record.inputs], job)
    inputs = tables.judged(job.inputs, kept)
    fresh = {session for one in inputs for session in one.sessions}
    there = [_fetched(lake, name, folder) for part in job.parts for name in _sums(lake, part)]
    real = any(one.simulated is False for one in inputs)
    if real:  # simulated recordings beside them are left out
        fresh -= {session for one in inputs if one.simulated for session in one.sessions}
    now: dict[str, Worth] = {}
    if before and fresh:
        joined = _joined(there, f"{folder}/now.sum", fresh, folder)
        now = Summary.of(joined, job.options, "processes").report.worth if joined else {}
    shrunk = _less(now, {session: worth for session, worth in earlier.items() if session in now})
    there += [_fetched(lake, taken.summary, folder) for taken in before]
    whole = (Summary.of(there[0], job.options) if job.alone and not before and len(there) == 1
             else _reported(there, f"{folder}/whole.sum", fresh | set(earlier), job, folder))
    if whole and len(set(whole.report.runs.values())) > 1:
        runs = whole.report.runs
        first = {runs[one] for one in earlier if one in runs} or {1}
        whole = _reported([whole.file], f"{folder}/run.sum",
                          {one for one, run in runs.items() if run in first}, job, folder)
    worth = whole.report.worth if whole else {}
    if _less(worth, earlier):
        raise _programs.Error("these traces cannot be joined with what was taken in before: it "
                              f"stays as it was. {_OTHER_NAME}", 1)
    others = fresh - set(worth)
    inputs = [_placed(one, worth, others, shrunk) for one in inputs]
    problems = [(one.file, one.problem) for one in inputs if one.problem]
    if len(others) > sum(bool(others & set(one.sessions)) for one in inputs):  # of summaries
        problems.append(("", f"recordings {_OF_ANOTHER_RUN}"))
    stays = any(one.source == job.source and one.file not in job.gone for one in kept)
    if before and others and others == fresh and not stays:
        return None, problems
    for one in kept:
        gone = one.file in job.gone and one.source == job.source
        if not one.session:
            inputs += [] if gone else [one]
        elif one.session in worth and not (gone and one.session in fresh):
            inputs.append(replace(one, problem=_GONE) if gone else one)
            if gone and one.problem != _GONE:  # it is said once
                problems.append((one.file, _GONE))
        elif one.problem and not gone:  # left out, as before
            inputs.append(one)
    unknown = Worth(0, False, False)
    inputs = sorted((replace(one, whole=whole_now) if one.whole != whole_now else one
                     for one in inputs for whole_now in (
                         bool(one.sessions) and not one.problem and all(
                             worth.get(session, unknown)[1:] == (True, True)
                             for session in one.sessions),)), key=lambda one: one.file)
    taken_in = max(datetime.now(timezone.utc), last + timedelta(microseconds=1))
    ingest = layout.digest(job.made_by, sorted(before), [part.name for part in job.parts],
                           [(one.file, one.session, one.problem) for one in inputs])
    mine, record = layout.taken_of(job.name, ingest), Record(worth, inputs, taken_in)
    problems += _write(lake, job, mine, record, whole, folder)
    return (mine, record), problems


_ROUNDS = 10
_OTHER_NAME = "Take them in under another name: --job NAME, or --job-from"
_OF_ANOTHER_RUN = f"of another run than the job's others: left out. {_OTHER_NAME}"
_GONE = "is there no more, or not as it was: what was taken in of it is kept"


def _without_doubles(kept: list[Input], job: Job) -> list[Input]:
    """Traces that were given before, each once, and none of those that come again."""
    again = {(one.source, one.file) for one in job.inputs}
    first: dict[tuple[str | None, str], Input] = {}
    sessions = {one.session for one in job.inputs}
    for one in kept:
        unknown = one.source is None and one.session in sessions  # of format 1: from anywhere
        if (one.source, one.file) not in again and not unknown:
            first.setdefault((one.source, one.file), one)
    return list(first.values())


def _placed(one: Input, worth: dict[str, Worth], others: set[str], shrunk: set[str]) -> Input:
    if not others.isdisjoint(one.sessions):
        return one.but(f"is {_OF_ANOTHER_RUN}")
    if any(session in shrunk and session in worth for session in one.sessions):
        return one.but("has less than when it was taken in: what was taken in is kept")
    return one


def _joined(files: list[str], out: str, sessions: set[str], folder: str) -> str | None:
    """The file with these sessions. One alone that has no others is it already."""
    if not files or not sessions:
        return None
    chosen = f"{folder}/sessions.txt"
    Path(chosen).write_text("".join(f"{one}\n" for one in sorted(sessions)))
    _merge(files, out, f"--sessions-from={chosen}")
    return out if os.path.exists(out) else None


def _reported(files: list[str], out: str, sessions: set[str], job: Job,
              folder: str) -> Summary | None:
    file = _joined(files, out, sessions, folder)
    return Summary.of(file, job.options) if file else None


def _sums(lake: Place, part: Part) -> list[str]:
    """Of the part, which is made again where somebody who was at it too has tidied up."""
    if not lake.exists(part.file("json")):
        _condensed(part, lake)
    return [name for kind in "01" if lake.exists(name := part.file(f"{kind}.sum.zst"))]


def _fetched(lake: Place, name: str, folder: str) -> str:
    to = f"{folder}/{layout.digest(name)}.{name.rpartition('.')[2]}"
    try:
        lake.fs.get_file(lake.path(name), to)  # a copy: others may remove it
    except FileNotFoundError:
        raise _Gone from None
    return to


def _write(lake: Place, job: Job, mine: Taken, record: Record, whole: Summary | None,
           folder: str) -> list[Problem]:
    stem, problems = layout.stem_of(job.name, mine.ingest), []
    made = tables.Made(job.name, mine.ingest, stem, f"{folder}/out")
    os.mkdir(made.folder)
    if whole:
        for name, lost in made.report(whole.report).items():
            problems.append(("", f"{lost} numbers of table {name} are too large for it: they are "
                                 "null"))
    row = made.job(whole.report if whole else None, record, job.made_by)
    for table, columns, number, file in made.large:
        lake.put(file, layout.large_file(table, job.name, mine.ingest, columns, number))
    month = layout.month_of(row["begin"])
    for table, columns, file in made.small:
        if table != "jobs":
            lake.put(file, layout.small_file(table, month, stem, columns))
    Path(f"{folder}/record.json").write_text(record.text(month, stem))
    lake.put(tables.packed(f"{folder}/record.json"), mine.record)
    if whole:  # behind the tables: these say what is in it
        lake.put(whole.file if whole.file.endswith(".zst") else tables.packed(whole.file),
                 mine.summary)
    ((columns, file),) = [(columns, file) for table, columns, file in made.small if table == "jobs"]
    lake.put(file, layout.small_file("jobs", month, stem, columns))
    return problems


def remove(lake: Place, one: Taken) -> None:
    """The row first: without it tables count no more. The summary goes last: as long as it is
    there, the next taking in begins with it."""
    if one.old:
        names = [f"jobs/{one.job}.parquet", *map(one.table, layout.OLD_TABLES)]
    else:
        content = lake.read(one.record)
        place = tables.unpacked(content) if content else {}
        names = [name for table in ("jobs", *layout.SMALL)
                 for name in lake.starting(f"{table}/month={place.get('month')}",
                                           f"{place.get('stem')},")]
        names += [name for table in layout.LARGE
                  for name in lake.starting(f"{table}/job={one.job}", f"{one.ingest},")]
    lake.remove(*names, one.record, one.summary)
    if one.old:
        for name in (*names, one.summary):
            lake.remove_empty(name.rpartition("/")[0])
