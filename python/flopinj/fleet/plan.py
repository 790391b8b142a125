"""Takes the traces of a folder into a lake: what is to be done, and an engine that does it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from posixpath import dirname
from typing import Any

from flopinj import _programs
from flopinj.fleet import engines, layout, work
from flopinj.fleet.place import File, Place

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


def ingest(source: str, out: str, engine: str = "local", *, job: str | None = None,
           job_from: str | None = None, workers: int | None = None, session: Any = None,
           options: Sequence[str] = ()) -> Outcome:
    """Takes all traces below `source` into the lake `out`, and those jobs only whose traces have
    changed since. What was taken in stays, whatever becomes of the traces. `job`: of all of them.
    `session`: a SparkSession or a client of Dask that is there already. `options`: of flopreduce,
    for the reports."""
    lake, outcome = Place(out), Outcome()
    source, out = Place(source).url(""), lake.url("")  # as workers find them, from any folder
    with engines.start(engine, workers, session) as run:
        jobs = _jobs(source, lake, job, job_from, run, outcome)
        known = _as_they_are(lake, jobs)
        program = _programs.run("flopreduce", "--version").strip()
        finals = []
        for name, files in sorted(jobs.items()):
            version = layout.digest(program, source, files, list(options))
            outcome.traces += len(files)
            if known[name].partition("-")[0] == version:
                outcome.as_before.append(name)
                continue
            parts = [work.Part(source, out, name, layout.digest(program, source, some), some)
                     for some in _cut(files, _FILES_IN_PART)]
            finals.append(work.Job(out, name, version, parts, list(options)))
        for _ in run(work.condense, [part for final in finals for part in final.parts]):
            pass  # finish() meets it again, and it costs its job
        for name, fine, problems in run(work.finish, finals):
            outcome.problems += [(name, *problem) for problem in problems]
            (outcome.done if fine else outcome.failed).append(name)
    outcome.done.sort()
    outcome.failed.sort()
    outcome.problems.sort()
    return outcome


def _cut(files: list[Any], most: int) -> list[list[Any]]:
    return [files[at:at + most] for at in range(0, len(files), most)]


def _as_they_are(lake: Place, jobs: Iterable[str]) -> dict[str, str]:
    """Which taking in of each job counts; "" where there is none, or another one is to be joined
    with it."""
    there = {file.name for file in lake.files("jobs")}
    summaries: dict[str, set[str]] = defaultdict(set)
    for folder, version in layout.summaries(file.name for file in lake.files("summaries")):
        summaries[folder].add(version)
    found = dict.fromkeys(jobs, "")
    for job in found:
        if layout.job_file(job) in there:
            counts = work.version_that_counts(lake, job) or ""
            found[job] = counts if summaries[layout.folder_of(job)] <= {counts} else ""
    return found


def _jobs(source: str, lake: Place, job: str | None, job_from: str | None, run: Run,
          outcome: Outcome) -> dict[str, list[tuple[File, int | None]]]:
    """The traces of each job, with the ranks that their names have."""
    if job and job_from:
        raise _programs.Error("--job and --job-from: one of them says which job a trace is of", 2)
    pattern = layout.JobPattern(job_from) if job_from else None
    odd: list[tuple[str, str]] = []  # what is no file
    found = Place(source).files(without=lake, problem=lambda *of: odd.append(of))

    def is_trace(name: str) -> bool:
        return bool(pattern.of(name) if pattern else layout.TRACES.fullmatch(name))

    outcome.problems += [("", layout.shown(name), why) for name, why in odd
                         if is_trace(name) or why.startswith("cannot be listed")]
    jobs: dict[str, list[tuple[File, int | None]]] = defaultdict(list)
    traces = [file for file in found if is_trace(file.name)]
    if pattern:
        how = f"none of the {len(found)} files has a name like '{job_from}'"
        named = [pattern.of(file.name) for file in traces]
    else:
        how = "no name there ends in .pb or .sum, .gz or .zst behind it: --job-from takes others"
        names = [job] * len(traces) if job else _jobs_of(source, traces, run)
        named = [(name, None) for name in names]
    for file, (name, rank) in zip(traces, named):
        jobs[layout.shown(name)].append((file, rank))
    if not jobs and not outcome.problems:
        raise _programs.Error(f"{source}: no traces: " + (how if found else "nothing is there"), 2)
    outcome.passed_over = len(found) - len(traces)
    return jobs


def _jobs_of(source: str, traces: list[File], run: Run) -> list[str]:
    """The job id of the trace's header, else the name of its folder. A trace whose header is lost
    belongs to the job of its folder's others."""
    tasks = [(source, some) for some in _cut(traces, _FILES_TO_LOOK_AT)]
    said = {name: job for names in run(work.look, tasks) for name, job in names}
    others: dict[str, set[str]] = defaultdict(set)
    for name, job in said.items():
        if job is not None:
            others[dirname(name)].add(job)

    def job_of(name: str) -> str:
        folder, job = dirname(name), said[name]
        if job is None and len(others[folder]) == 1:
            (job,) = others[folder]
        return job or folder or Place(source).root.rpartition("/")[2] or "job"

    return [job_of(file.name) for file in traces]
