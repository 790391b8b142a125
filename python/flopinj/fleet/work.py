"""The three steps of taking traces in, each a function of one task, which engines map: look at the
beginnings of traces, condense some traces of a job into a part, finish the job from its parts.

Tasks and results are plain values. Whatever a task writes has its whole name from what it reads, so
a task may be done again, by two workers at once, or after one was killed in the middle.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from flopinj import _programs
from flopinj.fleet import layout
from flopinj.fleet.header import ENOUGH, Header, read_header
from flopinj.fleet.place import File, Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

_AT_ONCE = 8  # files that are fetched at the same time
_TRIES = 3  # of a program that was killed
_FINE = (0, 3)  # 3: something is missing, and said
_NOTHING = 5  # no input can be used: there is no output


@dataclass(frozen=True)
class Input:
    """A trace, and what is wrong with it."""

    file: str
    bytes: int
    rank: Optional[int]
    session: Optional[str] = None
    simulated: Optional[bool] = None
    begin_ns: Optional[int] = None
    problem: Optional[str] = None


def look(task: tuple[str, list[File]]) -> list[tuple[str, Optional[str]]]:
    """The job in each trace's header: '' where it has none, None where it cannot be read."""
    place = Place(task[0])

    def job_of(file: File) -> Optional[str]:
        try:
            header = read_header(place.fs.cat_file(place.path(file.name), end=ENOUGH))
        except OSError:
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
    files: list[tuple[File, Optional[int]]]  # with the rank that its name has


def condense(part: Part) -> int:
    """Writes a summary of the part's traces, and the list of them. Returns how many were given."""
    lake, source = Place(part.lake), Place(part.source)
    listed = layout.file_of("parts", part.job, part.name, "json")
    if lake.exists(listed):
        return len(part.files)
    with tempfile.TemporaryDirectory(prefix="flopinj-") as folder:

        def fetch(numbered: tuple[int, tuple[File, Optional[int]]]) -> tuple[str, Any]:
            number, (file, _) = numbered
            try:
                path = source.get(file.name, f"{folder}/{number}{Path(file.name).suffix}")
                with open(path, "rb") as trace:
                    return path, read_header(trace.read(ENOUGH))
            except OSError as error:
                return "", error

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            fetched = list(pool.map(fetch, enumerate(part.files)))
        out = f"{folder}/part.sum"
        usable = [path for path, _ in fetched if path]
        said = _merge(usable, out) if usable else {}
        inputs = []
        for (file, rank), (path, header) in zip(part.files, fetched):
            one = Input(file.name, file.size, rank, problem=said.get(path) or _cause(header))
            if isinstance(header, Header):
                one = replace(one, rank=header.rank if rank is None else rank,
                              session=f"{header.session:016x}", simulated=header.simulated,
                              begin_ns=header.begin_ns)
            inputs.append(one)
        if os.path.exists(out):
            lake.put(_packed(out), layout.file_of("parts", part.job, part.name, "sum.gz"))
        Path(folder, "part.json").write_text(json.dumps([asdict(one) for one in inputs]))
        lake.put(f"{folder}/part.json", listed)
    return len(part.files)


def _cause(header: object) -> Optional[str]:
    if isinstance(header, FileNotFoundError):
        return "is there no more"
    if isinstance(header, OSError):
        return f"cannot be read: {header.strerror or header}"
    return None


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
    variables = {k: v for k, v in os.environ.items() if not k.endswith("_INJECTION64_PATH")}
    for _ in range(_TRIES):
        done = subprocess.run([_programs.path("flopreduce"), *arguments], env=variables,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        if done.returncode >= 0:
            return done
    raise _Killed(f"flopreduce was ended by signal {-done.returncode}, {_TRIES} times", 1)


def _merge(names: list[str], out: str) -> dict[str, str]:
    """What is wrong with which input. Where none can be used there is no output."""
    try:
        done = _flopreduce("merge", f"--output={out}", *names)
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
    before: Optional[str]  # the version that it takes the place of
    parts: list[str]
    options: list[str]  # of flopreduce


def finish(job: Job) -> tuple[str, list[tuple[str, str]]]:
    """Joins the parts, writes the job's tables, and makes them count. Returns the job, and what is
    wrong with which trace; with "" in its place where the job cannot be had."""
    try:
        return job.name, _finished(job)
    except _Killed as killed:
        return job.name, [("", str(killed))]


def _finished(job: Job) -> list[tuple[str, str]]:
    from flopinj.fleet import tables

    lake = Place(job.lake)
    listed = [layout.file_of("parts", job.name, part, "json") for part in job.parts]
    packed = [layout.file_of("parts", job.name, part, "sum.gz") for part in job.parts]
    with tempfile.TemporaryDirectory(prefix="flopinj-") as folder:
        inputs = tables.judged([one for name in listed for one in _inputs(lake, name)])
        here = [lake.get(name, f"{folder}/{number}.sum.gz")
                for number, name in enumerate(packed) if lake.exists(name)]
        out = f"{folder}/job.sum"
        if here:
            _merge(here, out)
        made = {"inputs": tables.of_inputs(inputs)}
        figures = {}
        if os.path.exists(out):
            report = ("--quiet", *job.options, out)
            _checked("--format=json", "--no-signatures", f"--output={folder}/report.json", *report)
            _checked("--format=csv", f"--output={folder}/tables/", *report)
            lake.put(_packed(out), layout.file_of("summaries", job.name, job.version, "sum.gz"))
            figures = tables.figures(folder)
            for name in layout.REPORTED:
                if os.path.exists(file := f"{folder}/tables/{name}.csv"):  # not all have steps
                    made[name] = tables.read(file)
        for name, table in made.items():
            file = tables.write(table, f"{folder}/{name}.parquet", job.name, job.version)
            lake.put(file, layout.file_of(name, job.name, job.version))
        row = tables.of_job(figures, inputs)
        # Until here nobody has seen anything; from here on everybody sees all of it.
        lake.put(tables.write(row, f"{folder}/job.parquet", job.name, job.version),
                 layout.job_file(job.name))
    if job.before and job.before != job.version:
        lake.remove(*(layout.file_of(name, job.name, job.before) for name in layout.TABLES),
                    layout.file_of("summaries", job.name, job.before, "sum.gz"))
    lake.remove_folder(f"parts/{layout.folder_of(job.name)}")
    return [(one.file, one.problem) for one in inputs if one.problem]


def _inputs(lake: Place, listed: str) -> list[Input]:
    content = lake.read(listed)
    if content is None:
        raise _programs.Error(f"{lake.url(listed)} is there no more: is the job taken in twice at "
                              "the same time? Do it again", 1)
    return [Input(**one) for one in json.loads(content)]


def _checked(*arguments: str) -> None:
    done = _flopreduce(*arguments)
    if done.returncode not in _FINE:
        raise _programs.Error(done.stderr.decode(errors="replace").strip(), done.returncode)
