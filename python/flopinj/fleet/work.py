"""The three steps of taking traces in, each a function of one task, which engines map: look at the
beginnings of traces, condense some traces of a job into a part, finish the job from its parts.

Tasks and results are plain values. Whatever a task writes has its whole name from what it reads, so
a task may be done again, by two workers at once, or after one was killed in the middle. What is
wrong with a trace costs the trace, and what nobody thought of costs the job; the source and the
lake themselves (OSError) and the command line end all of it.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from flopinj import _programs
from flopinj.fleet import layout, tables
from flopinj.fleet.header import Header, read_header
from flopinj.fleet.place import File, Place
from flopinj.fleet.tables import Input, Worth, worth_of

Problem = tuple[str, str]  # a trace, "" for the whole job, and what is wrong with it

_AT_ONCE = 8  # files that are fetched at the same time
_TRIES = 3  # of a program that was killed
_FINE = (0, 3, 4)  # 3, 4: something is missing, and said
_USAGE = 2
_NOTHING = 5  # no input can be used: there is no output


def look(task: tuple[str, list[File]]) -> list[tuple[str, str | None]]:
    """The job in each trace's header: '' where it has none, None where it cannot be read."""
    place = Place(task[0])

    def job_of(file: File) -> str | None:
        try:
            header = read_header(
                lambda size: place.fs.cat_file(place.path(file.name), end=size))
        except Exception:  # it is named when it is to be condensed
            return None
        return header and header.job

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(zip((file.name for file in task[1]), pool.map(job_of, task[1])))


@dataclass(frozen=True)
class Part:
    source: str
    lake: str
    job: str
    name: str
    files: list[tuple[File, int | None]]  # with the rank that its name has


def condense(part: Part) -> str | None:
    """Writes a summary of the part's traces, and the list of them. Returns why it cannot be."""
    try:
        _condensed(part)
    except Exception as error:
        return _cost_of_job(error)
    return None


def _cost_of_job(error: Exception) -> str:
    """What to say of an error that costs a job. Others end all of it."""
    if isinstance(error, OSError) or getattr(error, "exit_code", 0) == _USAGE:
        raise error
    known = isinstance(error, _programs.Error)
    said = str(error).strip().partition("\n")[0]
    return said if known else f"{type(error).__name__}: {said}"


def _condensed(part: Part) -> None:
    lake, source = Place(part.lake), Place(part.source)
    listed = layout.file_of("parts", part.job, part.name, "json")
    if lake.exists(listed):
        return
    with tempfile.TemporaryDirectory(prefix="flopinj-") as folder:

        def fetch(numbered: tuple[int, tuple[File, int | None]]) -> tuple[str, Any]:
            number, (file, _) = numbered
            try:
                path = source.get(file.name, f"{folder}/{number}")
                return path, read_header(lambda size: _beginning(path, size))
            except OSError as error:
                return "", error

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            fetched = list(pool.map(fetch, enumerate(part.files)))
        out = f"{folder}/part.sum"
        usable = [path for path, header in fetched if isinstance(header, Header)]
        said = _merge(usable, out) if usable else {}
        inputs = []
        for (file, rank), (path, header) in zip(part.files, fetched):
            one = Input(layout.shown(file.name), file.size, rank, source=part.source)
            if isinstance(header, Header):
                known = header.begin_ns < 1 << 63
                one = replace(one, rank=header.rank if rank is None else rank,
                              session=f"{header.session:016x}", simulated=header.simulated,
                              begin_ns=header.begin_ns if known else None, problem=said.get(path)
                              ).but(None if known else "the time in its header is none")
            else:
                one = one.but(_cause(header) or _unusable(path, f"{folder}/unusable"))
            inputs.append(one)
        if os.path.exists(out):
            lake.put(_packed(out), layout.file_of("parts", part.job, part.name, "sum.gz"))
        Path(folder, "part.json").write_text(json.dumps([asdict(one) for one in inputs]))
        lake.put(f"{folder}/part.json", listed)


def _beginning(path: str, size: int) -> bytes:
    with open(path, "rb") as trace:
        return trace.read(size)


def _cause(error: OSError | None) -> str | None:
    if error is None:
        return None
    return ("is there no more" if isinstance(error, FileNotFoundError) else
            f"cannot be read: {error.strerror or error}")


def _unusable(path: str, out: str) -> str:
    """Of a trace without a header: nobody could say which recording it is when it comes again."""
    said = _merge([path], out)
    if os.path.exists(out):
        os.remove(out)
    return said.get(path) or "its header is lost: left out"


def _packed(path: str) -> str:
    """Compressed, with the same bytes each time."""
    with open(path, "rb") as plain, open(path + ".gz", "wb") as file:
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as packed:
            shutil.copyfileobj(plain, packed, 1 << 20)
    return path + ".gz"


class _Killed(_programs.Error):
    """The program was ended by a signal, each time."""


def _flopreduce(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    """It is run again where something has killed it."""
    for _ in range(_TRIES):
        done = _programs.call("flopreduce", *arguments)
        if done.returncode >= 0:
            return done
    raise _Killed(f"flopreduce was ended by signal {-done.returncode}, {_TRIES} times", 1)


def _merge(names: list[str], out: str, *more: str) -> dict[str, str]:
    """What is wrong with which input. Where none can be used there is no output."""
    try:
        done = _flopreduce("merge", f"--output={out}", *more, *names)
    except _Killed as killed:
        if len(names) == 1:
            return {names[0]: str(killed)}
        # By halves the one is found that it cannot live with.
        middle, halves = len(names) // 2, (f"{out}.1", f"{out}.2")
        problems = _merge(names[:middle], halves[0]) | _merge(names[middle:], halves[1])
        there = [half for half in halves if os.path.exists(half)]
        return problems | (_merge(there, out) if there else {})
    problems: dict[str, str] = {}
    known, said = set(names), done.stderr.decode(errors="replace")
    for line in said.splitlines():
        name, _, problem = line.partition(": ")[2].partition(": ")
        if name in known:
            problems[name] = f"{problems[name]}; {problem}" if name in problems else problem
    if done.returncode not in (*_FINE, _NOTHING):
        raise _programs.Error(said.strip().partition("\n")[0], done.returncode)
    return problems


@dataclass(frozen=True)
class Job:
    lake: str
    name: str
    version: str
    parts: list[Part]
    options: list[str]  # of flopreduce


def finish(job: Job) -> tuple[str, bool, list[Problem]]:
    """Joins the parts with what was taken in before, writes the job's tables, and makes them count.
    Returns the job, whether it is in the lake as it is now, and what is wrong."""
    try:
        return job.name, *_finished(job)
    except Exception as error:
        return job.name, False, [("", _cost_of_job(error))]


@dataclass(frozen=True)
class Summary:
    """A summary on this machine, with what flopreduce says of it."""

    file: str
    folder: str
    worth: dict[str, Worth]  # by session
    run: dict[str, int]

    @staticmethod
    def of(file: str, options: list[str]) -> Summary:
        folder = f"{file}.tables"
        done = _flopreduce("--format=csv", f"--output={folder}/", "--quiet", *options, file)
        if done.returncode not in _FINE:
            raise _programs.Error(done.stderr.decode(errors="replace").strip(), done.returncode)
        with open(f"{folder}/processes.csv", newline="", encoding="utf-8") as lines:
            rows = list(csv.DictReader(lines))
        return Summary(file, folder, {row["session"]: worth_of(row) for row in rows},
                       {row["session"]: int(row["run"]) for row in rows})


def _less(now: dict[str, Worth], before: dict[str, Worth]) -> set[str]:
    """Sessions that were worth more before."""
    return {session for session, worth in before.items()
            if session not in now or now[session] < worth}


def versions(lake: Place, job: str) -> list[str]:
    """Which takings in have left a summary of the job."""
    return [version for _, version in layout.summaries(
        file.name for file in lake.files(f"summaries/{layout.folder_of(job)}"))]


def _finished(job: Job) -> tuple[bool, list[Problem]]:
    """Until the last file is written nobody has seen anything; from then on everybody sees all of
    it. Who finds that somebody else was at it too does it again, with what the other one wrote."""
    lake = Place(job.lake)
    for _ in range(_ROUNDS):
        before = versions(lake, job.name)
        try:
            with tempfile.TemporaryDirectory(prefix="flopinj-") as folder:
                version, worth, problems = _made(job, lake, before, folder)
        except _Gone:
            continue
        if version is None:
            break
        there = set(versions(lake, job.name))
        others = there - {*before, version}
        whole = version in there or not worth  # without a recording there is no summary
        if whole and not _more_in(lake, job.name, others, worth):
            if version_that_counts(lake, job.name) == version:
                _remove(lake, job.name, [one for one in before if one != version])
            break
    else:
        raise _programs.Error("is taken in by others at the same time, again and again: do it "
                              "again", 1)
    lake.remove_folder(f"parts/{layout.folder_of(job.name)}")
    return version is not None, problems


def _more_in(lake: Place, job: str, others: set[str], worth: dict[str, Worth]) -> bool:
    """Whether somebody else, at the same time, took in what is not here."""
    try:
        return any(_less(worth, tables.of_before(lake, job, other)[0]) for other in others)
    except FileNotFoundError:  # it has been joined, and removed, meanwhile
        return True


class _Gone(Exception):
    """Somebody else removed what was to be joined."""


def _made(job: Job, lake: Place, before: list[str],
          folder: str) -> tuple[str | None, dict[str, Worth], list[Problem]]:
    """INGEST, or None where the job stays as it was; what is in it of each session; and what is
    wrong."""
    inputs = tables.judged([one for part in job.parts for one in _inputs(lake, part)])
    there = [_fetched(lake, name, f"{folder}/{number}.gz") for number, part in enumerate(job.parts)
             if lake.exists(name := layout.file_of("parts", job.name, part.name, "sum.gz"))]

    def earlier_one(version: str) -> str:
        return _fetched(lake, layout.file_of("summaries", job.name, version, "sum.gz"),
                        f"{folder}/{version}.gz")

    earlier: dict[str, Worth] = {}
    kept: list[Input] = []  # of what was taken in before
    for version in before:
        try:
            known, given = tables.of_before(lake, job.name, version)
        except FileNotFoundError:  # who removed it was killed before the summary was
            known, given = Summary.of(earlier_one(version), job.options).worth, []
        earlier |= {session: max(worth, earlier.get(session, worth))
                    for session, worth in known.items()}
        kept += given
    now = whole = _joined(there, f"{folder}/now.sum", job.options)
    shrunk = _less(now.worth if now else {}, earlier)
    if shrunk:
        there += map(earlier_one, before)
        whole = _joined(there, f"{folder}/whole.sum", job.options)
    if whole and len(set(whole.run.values())) > 1:
        first = {whole.run[one] for one in earlier if one in whole.run} or {1}
        chosen = f"{folder}/sessions.txt"
        Path(chosen).write_text("\n".join(one for one, run in whole.run.items() if run in first))
        whole = _joined([whole.file], f"{folder}/run.sum", job.options,
                        f"--sessions-from={chosen}")
    worth = whole.worth if whole else {}
    if _less(worth, earlier):
        raise _programs.Error("these traces cannot be joined with what was taken in before: it "
                              f"stays as it was. {_OTHER_NAME}", 1)
    others = set(now.worth if now else {}) - set(worth)
    inputs = [_placed(one, worth, others, shrunk) for one in inputs]
    problems = [(one.file, one.problem) for one in inputs if one.problem]
    if len(others) > sum(one.session in others for one in inputs):  # of summaries
        problems.append(("", f"recordings {_OF_ANOTHER_RUN}"))
    if before and others and now and others == set(now.worth):
        return None, {}, problems
    known_now = {one.session for one in inputs}
    for one in kept:
        if one.session in worth and one.session not in known_now:
            known_now.add(one.session)
            gone = job.parts[0].source == one.source
            inputs.append(replace(one, problem=_GONE) if gone else one)
            if gone and one.problem != _GONE:  # it is said once
                problems.append((one.file, _GONE))
    version = job.version
    if before and (shrunk or others):
        version += "-" + layout.digest(*sorted(before))
    _write(lake, job.name, version, whole, inputs, problems, folder)
    return version, worth, problems


_ROUNDS = 10
_OTHER_NAME = "Take them in under another name: --job NAME, or --job-from"
_OF_ANOTHER_RUN = f"of another run than the job's others: left out. {_OTHER_NAME}"
_GONE = "is there no more, or not as it was: what was taken in of it is kept"


def _placed(one: Input, worth: dict[str, Worth], others: set[str], shrunk: set[str]) -> Input:
    if one.session in others:
        return one.but(f"is {_OF_ANOTHER_RUN}")
    if one.session in shrunk and one.session in worth:
        return one.but("has less than when it was taken in: what was taken in is kept")
    return one


def _joined(files: list[str], out: str, options: list[str], *more: str) -> Summary | None:
    if files:
        _merge(files, out, *more)
    return Summary.of(out, options) if os.path.exists(out) else None


def _fetched(lake: Place, name: str, to: str) -> str:
    try:
        lake.fs.get_file(lake.path(name), to)  # a copy: others may remove it
    except FileNotFoundError:
        raise _Gone from None
    return to


def _write(lake: Place, job: str, version: str, whole: Summary | None, inputs: list[Input],
           problems: list[Problem], folder: str) -> None:
    made = {"inputs": tables.of_inputs(inputs)}
    if whole:
        for name in layout.REPORTED:
            if os.path.exists(file := f"{whole.folder}/{name}.csv"):  # not all have steps
                made[name], left_out = tables.read(file)
                if left_out:
                    problems.append(("", f"{left_out} numbers of table {name} are too large for "
                                         "it: they are null"))
    for name, table in made.items():
        file = tables.write(table, f"{folder}/{name}.parquet", job, version)
        lake.put(file, layout.file_of(name, job, version))
    if whole:  # behind the tables: these say what is in it
        lake.put(_packed(whole.file), layout.file_of("summaries", job, version, "sum.gz"))
    row = tables.of_job(tables.figures(whole.folder) if whole else {}, inputs)
    lake.put(tables.write(row, f"{folder}/job.parquet", job, version), layout.job_file(job))


def _remove(lake: Place, job: str, of: list[str]) -> None:
    """The summary goes last: as long as it is there, the next taking in begins with it."""
    for version in of:
        lake.remove(*(layout.file_of(name, job, version) for name in layout.TABLES),
                    layout.file_of("summaries", job, version, "sum.gz"))


def version_that_counts(lake: Place, job: str) -> str | None:
    content = lake.read(layout.job_file(job))
    return tables.column(content, "ingest")[0] if content else None


def _inputs(lake: Place, part: Part) -> list[Input]:
    for _ in range(_ROUNDS):
        _condensed(part)  # somebody who takes the same job in may have finished it, and tidied up
        content = lake.read(layout.file_of("parts", part.job, part.name, "json"))
        if content is not None:
            return [Input(**one) for one in json.loads(content)]
    raise _programs.Error("is taken in by others at the same time: do it again", 1)
