"""flopinj fleet: many jobs at once. docs/fleet.md"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
from datetime import date, datetime, time, timezone
from typing import Any, NoReturn

from flopinj._programs import Error

# pyarrow imports numpy, whose threads, one for each core, look for work when they begin.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

#: Questions that come with flopinj, in queries/.
_QUESTIONS = {
    "jobs": "jobs by utilization", "wasted": "teams and users by GPU-hours that did no FLOP",
    "lost": "where GPU-hours went", "kernels": "kernels of all jobs by time",
    "stragglers": "ranks that are slower than their job's others",
    "hosts": "hosts that are slower than others", "days": "GPU-hours and FLOP by day",
    "models": "models and clusters by GPU-hours", "chips": "chips and number formats",
    "measured": "how much of each job is measured", "problems": "traces with problems"}
_LAKE = "FLOPINJ_LAKE"  # the variable that names the lake
_SHOWN = 10  # problems; the lake has all
_LONGEST = 300  # characters of a name


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Error(f"{message}{_remedy(message)} (see {self.prog} --help)", 2)


#: What people type who know other tools, and the command that they mean.
_HABITS = {"query": "sql", "select": "sql", "add": "ingest", "import": "ingest", "load": "ingest",
           "report": "jobs", "compare": "jobs", "diff": "jobs", "list": "jobs", "show": "jobs",
           "top": "kernels", "worst": "wasted",
           "delete": "forget", "remove": "forget", "slow": "stragglers"}


def _remedy(message: str) -> str:
    """What to do about a complaint of argparse's."""
    if wrong := re.search(r"argument COMMAND: invalid choice: '(.*?)' \(", message):
        import difflib

        known = [*_QUESTIONS, "ingest", "sql", "compact", "forget", "expire"]
        near = [_HABITS[wrong[1]]] if wrong[1] in _HABITS else difflib.get_close_matches(
            wrong[1], known, 1)
        if near:
            return f": did you mean {near[0]}?"
        return ": LAKE goes behind the command, as in flopinj fleet jobs --lake LAKE"
    if re.match("unrecognized arguments: (-o|--out)", message):
        return ": the answer goes to standard output: flopinj fleet jobs --format csv > jobs.csv"
    if message.startswith("unrecognized arguments: -"):
        return ("; any condition can be asked for: flopinj fleet sql 'SELECT * FROM jobs WHERE "
                "...' --lake LAKE")
    if message.startswith("unrecognized arguments:") and re.search(r"\b(from|FROM)\b", message):
        return ": put the statement in quotes: flopinj fleet sql 'SELECT * FROM jobs' --lake LAKE"
    if message.startswith("unrecognized arguments:"):
        return "; all else is an option, and ingest takes one folder with all traces below it"
    if message.endswith("required: --lake"):
        return f", as in flopinj fleet jobs --lake LAKE; or set {_LAKE}"
    if message.endswith("required: --before"):
        return ", as in flopinj fleet expire --before 2026-05-01 --lake LAKE"
    if message.endswith("required: --out"):
        return f", as in flopinj fleet ingest RUNS/ --out LAKE; or set {_LAKE}"
    return ""


def _parser() -> argparse.ArgumentParser:
    from flopinj.fleet.engines import ENGINES
    from flopinj.fleet.lake import query

    parser = _Parser(prog="flopinj fleet", allow_abbrev=False, description=(
        "Takes the traces of many jobs into a lake of Parquet tables, and asks it with SQL."))
    parser.add_argument("--spark-script", action="version", version=__file__,
                        help="Print the name of the script for spark-submit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    ingest = commands.add_parser("ingest", help="take traces in", allow_abbrev=False, description=(
        "Takes all traces and summaries below SOURCE into a lake. Jobs whose traces are as before "
        "are left as they are, so it may be repeated, and ended at any moment. Options of "
        "flopinj report, such as --rules FILE, go behind '--'."))
    ingest.add_argument("source", metavar="SOURCE", help="A folder, or a URL such as s3://runs/may")
    lake: dict[str, Any] = {"required": not os.environ.get(_LAKE), "metavar": "LAKE",
                            "default": os.environ.get(_LAKE)}
    ingest.add_argument("--out", help=f"The lake's folder or URL (${_LAKE} if not given)", **lake)
    ingest.add_argument("--engine", choices=tuple(ENGINES), default="local",
                        help="Who does the work (local if not given: this machine)")
    ingest.add_argument("--job", metavar="NAME", help="All traces of SOURCE are of this job")
    ingest.add_argument("--job-from", metavar="PATTERN", help=(
        "Job and rank from the names below SOURCE, such as '{job}/rank{rank}.pb'; without it the "
        "job id that the trace has, else the name of its folder"))
    ingest.add_argument("--workers", type=_count, metavar="N",
                        help="Processes of a local engine (one per core if not given)")
    ingest.add_argument("--since", type=_day, metavar="DATE",
                        help="Pass over files that were not written since then (UTC)")
    for name, text in {**_QUESTIONS, "sql": "one SELECT over the tables"}.items():
        command = commands.add_parser(name, help=text, allow_abbrev=False)
        command.add_argument("--lake", help=f"Its folder or URL (${_LAKE} if not given)", **lake)
        command.add_argument("--format", choices=("text", "csv", "json"), default="text",
                             help="Form of the answer (text if not given)")
        command.add_argument("--since", type=_day, metavar="DATE",
                             help="Only jobs that began then or later (UTC)")
        if name == "sql":
            command.add_argument("query", metavar="SELECT", help="What DuckDB understands")
            continue
        command.add_argument("--top", type=_count, default=10, metavar="N",
                             help="So many lines (10 if not given)")
        for price, of in (("price", "a GPU-hour"), ("electricity", "a kWh")):
            if f"{{{price}}}" in query(name, **{price: f"{{{price}}}"}):
                command.add_argument(f"--{price}", type=float, metavar="PRICE",
                                     help=f"Of {of}: costs are in its currency")
        if name == "stragglers":
            command.add_argument("--over", type=float, default=1.15, metavar="RATIO", help=(
                "Those that take longer than RATIO times the usual (1.15 if not given)"))
    for name, text in (("compact", "make few files of many"),
                       ("forget", "take jobs out of the lake"),
                       ("expire", "forget jobs that ended before a day")):
        command = commands.add_parser(name, help=text, allow_abbrev=False)
        command.add_argument("--lake", help=f"Its folder or URL (${_LAKE} if not given)", **lake)
        if name == "forget":
            command.add_argument("jobs", nargs="+", metavar="JOB", help="Names, as in table jobs")
        if name == "expire":
            command.add_argument("--before", type=_day, required=True, metavar="DATE",
                                 help="Such as 2026-05-01 (UTC)")
    return parser


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def _count(text: str) -> int:
    if not text.isdigit() or text == "0":
        raise argparse.ArgumentTypeError(f"'{text}' is not understood: it takes a count from 1 on")
    return int(text)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not understood: it takes a day such as 2026-05-01") from None


def _ingest(given: argparse.Namespace, options: list[str]) -> int:
    from flopinj.fleet import layout
    from flopinj.fleet.plan import ingest

    outcome = ingest(given.source, given.out, given.engine, job=given.job,
                     job_from=given.job_from, workers=given.workers, options=options,
                     since=given.since and datetime.combine(given.since, time(), timezone.utc))
    for of in outcome.problems[:_SHOWN]:
        print("flopinj fleet:", layout.shown(": ".join(filter(None, map(_cut, of)))),
              file=sys.stderr)
    if len(outcome.problems) > _SHOWN:
        print(f"flopinj fleet: {len(outcome.problems) - _SHOWN} more: flopinj fleet sql 'SELECT "
              f"job, file, problem FROM inputs WHERE problem IS NOT NULL'{_named(given.out)}",
              file=sys.stderr)
    if outcome.passed_over:
        print(f"flopinj fleet: {outcome.passed_over} files were passed over: no traces by their "
              "names", file=sys.stderr)
    jobs = outcome.done + outcome.as_before + outcome.failed
    print(f"{outcome.traces} traces of {len(jobs)} jobs: {len(outcome.done)} taken in, "
          f"{len(outcome.as_before)} as before" +
          (f", {len(outcome.failed)} failed" if outcome.failed else ""))
    print(f"Next: flopinj fleet jobs{_named(given.out)}")
    return 3 if outcome.problems else 0


def _named(lake: str) -> str:
    """How the next command names it."""
    return "" if lake == os.environ.get(_LAKE) else f" --lake {lake}"


def _ask(given: argparse.Namespace) -> int:
    from flopinj.fleet import answers, lake

    there = lake.Lake(given.lake, given.since)
    there.lock()
    if given.format == "text":
        (count,) = there.rows("SELECT count(*) FILTER (WHERE simulated) AS simulated, "
                              "count(*) AS jobs FROM jobs")
        simulated, jobs = count["simulated"], count["jobs"]
        if simulated:
            print(f"SIMULATED: {simulated} of {jobs} jobs were recorded on simgpu; no number of "
                  "theirs was read on hardware.")
    limits = {name: getattr(given, name) for name in ("top", "over", "price", "electricity")
              if getattr(given, name, None) is not None}
    text = given.query if given.command == "sql" else lake.query(given.command, **limits)
    answers.write(there.sql(text), given.format, units=given.command != "sql")
    return 0


def _keep(given: argparse.Namespace) -> int:
    from flopinj.fleet import keep

    if given.command == "compact":
        print(f"{keep.compact(given.lake)} files of jobs fewer")
    else:
        jobs = given.jobs if given.command == "forget" else keep.expire(given.lake, given.before)
        if given.command == "forget":
            keep.forget(given.lake, jobs)
        print(f"{len(jobs)} jobs forgotten")
    return 0


def main(words: list[str] | None = None) -> int:
    words = sys.argv[1:] if words is None else words
    at = words.index("--") if "--" in words else len(words)
    try:
        given = _parser().parse_args(words[:at])
        if words[at + 1:] and given.command != "ingest":
            raise Error("only ingest takes options of flopinj report", 2)
        if given.command in ("compact", "forget", "expire"):
            return _keep(given)
        return _ingest(given, words[at + 1:]) if given.command == "ingest" else _ask(given)
    except Error as error:
        print(f"flopinj fleet: {error}", file=sys.stderr)
        return error.exit_code if error.exit_code > 0 else 1
    except BrokenPipeError:  # who reads has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except Exception as error:
        # Of files, object stores, engines; a fault of our own has a trace of calls instead.
        if not isinstance(error, OSError) and type(error).__module__.startswith(
                ("builtins", "flopinj")):
            raise
        said = str(error).strip().partition("\n")[0]
        if isinstance(error, NotADirectoryError):
            said = f"{os.path.dirname(error.filename or '')} is a file, and a lake is a folder"
        print(f"flopinj fleet: {said or type(error).__name__}", file=sys.stderr)
        return 2 if isinstance(error, OSError) else 1


if __name__ == "__main__":
    sys.exit(main())
