"""Takes the traces of a folder into a lake: what is to be done, and an engine that does it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from flopinj import _programs
from flopinj.fleet import engines, layout, work
from flopinj.fleet.place import File, Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, Optional

    Run = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]

_FILES_IN_PART = 64
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
    passed_over: int = 0  # files that are no traces by their names


def ingest(source: str, out: str, engine: str = "local", *, job_from: Optional[str] = None,
           workers: Optional[int] = None, session: Any = None,
           options: Sequence[str] = ()) -> Outcome:
    """Takes all traces below `source` into the lake `out`, and those jobs only whose traces have
    changed since. `session`: a SparkSession or a client of Dask that is there already. `options`:
    of flopreduce, for the reports."""
    lake, outcome = Place(out), Outcome()
    source, out = Place(source).url(""), lake.url("")  # as workers find them, from any folder
    with engines.start(engine, workers, session) as run:
        jobs = _jobs(source, lake, job_from, run, outcome)
        known = _versions(lake, jobs)
        program = _programs.run("flopreduce", "--version").strip()
        parts, finals = [], []
        for job, files in sorted(jobs.items()):
            version = layout.digest(program, source, files, list(options))
            outcome.traces += len(files)
            if known.get(job) == version:
                outcome.as_before.append(job)
                continue
            of_job = [_part(source, out, job, files[at:at + _FILES_IN_PART], program)
                      for at in range(0, len(files), _FILES_IN_PART)]
            parts += of_job
            finals.append(work.Job(out, job, version, known.get(job),
                                   [part.name for part in of_job], list(options)))
        for _ in run(work.condense, parts):
            pass
        for job, problems in run(work.finish, finals):
            outcome.problems += [(job, *problem) for problem in problems]
            (outcome.failed if problems[:1] and not problems[0][0] else outcome.done).append(job)
    outcome.done.sort()
    outcome.problems.sort()
    return outcome


def _part(source: str, out: str, job: str, files: list[Any], program: str) -> work.Part:
    return work.Part(source, out, job, layout.digest(program, source, files), files)


def _versions(lake: Place, jobs: Iterable[str]) -> dict[str, str]:
    """Which taking in of each job counts."""
    import io

    from flopinj.fleet import tables

    there = {file.name for file in lake.files("jobs")}
    found = {}
    for job in jobs:
        name = layout.job_file(job)
        if name in there and (content := lake.read(name)):
            table = tables.pa.parquet.read_table(io.BytesIO(content), columns=["ingest"])
            found[job] = table["ingest"][0].as_py()
    return found


def _jobs(source: str, lake: Place, job_from: Optional[str], run: Run,
          outcome: Outcome) -> dict[str, list[tuple[File, Optional[int]]]]:
    """The traces of each job, with the ranks that their names have."""
    found = Place(source).files(without=lake)
    jobs: dict[str, list[tuple[File, Optional[int]]]] = defaultdict(list)
    if job_from:
        pattern = layout.JobPattern(job_from)
        for file in found:
            if of := pattern.of(file.name):
                jobs[of[0]].append((file, of[1]))
        how = f"none of the {len(found)} files has a name like '{job_from}'"
    else:
        traces = [file for file in found if layout.TRACES.fullmatch(file.name)]
        for file, job in zip(traces, _jobs_of(source, traces, run)):
            jobs[job].append((file, None))
        how = "no name there ends in .pb or .sum, .gz or .zst behind it: --job-from takes others"
    if not jobs:
        raise _programs.Error(f"{source}: no traces: " + (how if found else "nothing is there"), 2)
    outcome.passed_over = len(found) - sum(map(len, jobs.values()))
    return jobs


def _jobs_of(source: str, traces: list[File], run: Run) -> list[str]:
    """The job id of the trace's header, else the name of its folder. A trace whose header is lost
    belongs to the job of its folder's others."""
    tasks = [(source, traces[at:at + _FILES_TO_LOOK_AT])
             for at in range(0, len(traces), _FILES_TO_LOOK_AT)]
    said = {name: job for names in run(work.look, tasks) for name, job in names}
    others: dict[str, set[str]] = defaultdict(set)
    for name, job in said.items():
        if job is not None:
            others[_folder(name)].add(job)

    def job_of(name: str) -> str:
        folder, job = _folder(name), said[name]
        if job is None and len(others[folder]) == 1:
            (job,) = others[folder]
        return job or folder or Place(source).root.rpartition("/")[2] or "job"

    return [job_of(file.name) for file in traces]


def _folder(name: str) -> str:
    return name.rpartition("/")[0]
