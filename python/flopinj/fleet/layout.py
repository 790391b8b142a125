"""Where things are in a lake, and which job a trace belongs to.

    flopinj-lake.json                        the format's version
    jobs/month=2026-05/STEM,COLUMNS.parquet  a row for each job: which INGEST and PACK count
    TABLE/month=2026-05/STEM,COLUMNS.parquet small tables; the STEM of a job's row has all its rows
    TABLE/job=NAME/INGEST,COLUMNS,0000.parquet    large tables, cut by rank where they are long
    summaries/job=NAME/INGEST.sum.zst        for flopinj: every report of the job
    summaries/job=NAME/INGEST.json.zst       what was taken in: recordings, traces
    parts/PART.*                             while traces are taken in

The month is the one in which the job began. Folders are named as Hive does, so that engines find
the columns job and month. COLUMNS is a hash of a table's columns: files that have the same are read
as one, without a look at each.

Of a job's rows in `jobs` the last one counts, by `taken_in`, then by `pack`. Its `ingest` and
`pack` are in each row of the tables that belongs to it: so writing that row makes a job count from
one moment on. A PACK is a STEM: GENERATION-HASH. Compaction puts rows of several stems into one of
the next generation, and removes these stems after it.

PART is a hash of the names, sizes and versions of its traces, INGEST one of all that a job was made
from. Work that was done is found by its name, and doing it again makes the same file.

What was taken in is lost only where its summary is removed. So a job's summary is removed only
after another one is there that has every recording of it, and whoever takes a job in begins with
all summaries that are there: those of the INGEST that counts, of one that was killed, and of one
at the same time.

Format 1 had TABLE/JOB/INGEST.parquet and jobs/JOB.parquet; it is read, and compaction moves it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from urllib.parse import quote

from flopinj._programs import Error

FORMAT = 2
MARKER = "flopinj-lake.json"

#: As long as the traces: a folder for each job. The others are small.
LARGE = ("rows", "step_list")
SMALL = ("processes", "paths", "inputs", "lost", "days", "kernels", "rank_slowdown", "labels")
TABLES = (*LARGE, *SMALL)
#: Tables of a lake of format 1.
OLD_TABLES = ("rows", "step_list", "processes", "paths", "inputs")
TRACES = re.compile(r"(?s).*\.(pb|sum)(\.gz|\.zst)?")

#: Columns by name: of what kind they are, as Arrow calls it. What is in none of these is text.
_KINDS = {
    "decimal128": r"flop",
    "bool_": r"simulated|simulated_clock|ptx_counts|partial|skipped|whole",
    "float64": r"coverage|hfu|mfu|hfu_kernel_time|ratio|step_time|.*_share|share|.*_hours"
               r"|peak_flop_per_s|slowdown|energy_j(oules)?|flop_per_j(oule)?|kwh",
    "int64": r"(.*_)?(ns|launches|version|gpus)|rank|pid|device|devices|thread|stream|number|every"
             r"|world_size|bytes|traces|problems|processes|ranks_missing|requeues|restarts"
             r"|measuring_ranks|run",
    "timestamp": r"begin|ended|taken_in",
    "date32": r"day",
}
#: Of tables that are made here, all columns: a question finds them in any lake.
JOBS = (
    "cluster", "job_id", "requeues", "restarts", "user_name", "team", "model", "begin", "ended",
    "simulated", "partial", "traces", "problems", "processes", "world_size", "ranks_missing",
    "gpus", "chip", "precision", "peak_flop_per_s", "wall_ns", "gpu_hours", "launches",
    "unmeasured_launches", "flop", "flop_mark", "gpu_time_ns", "gpu_time_ns_mark", "hfu",
    "hfu_mark", "mfu", "mfu_mark", "hfu_kernel_time", "hfu_kernel_time_mark", "ratio",
    "ratio_mark", "coverage", "step_time", "counted_gpu_time_share", "measuring_ranks",
    "energy_joules", "energy_joules_mark", "energy_gpus", "flop_per_joule", "kwh", "taken_in",
    "made_by")
MADE = {
    "jobs": JOBS,
    "inputs": ("file", "bytes", "rank", "session", "simulated", "begin_ns", "source", "problem",
               "version", "mark", "whole", "cluster", "job_id", "requeues", "restarts"),
    "lost": ("line", "parent", "ns", "ns_mark", "share", "gpu_hours"),
    "days": ("day", "wall_ns", "share", "gpu_hours", "flop"),
    "labels": ("name", "value", "processes"),
    "kernels": ("kernel", "chip", "phase", "launches", "unmeasured_launches", "flop",
                "gpu_time_ns", "processes"),
    "rank_slowdown": ("session", "rank", "hostname", "device", "timed_ns", "usual_ns", "slowdown"),
}
_SQL_TYPES = {"decimal128": "DECIMAL(38, 0)", "bool_": "BOOLEAN", "float64": "DOUBLE",
              "int64": "BIGINT", "timestamp": "TIMESTAMPTZ", "date32": "DATE"}
_UNSAFE = re.compile(r"[\x00-\x1f\"#%'*/:=?\\\x7f{\[\]^]")
_LONGEST = 200  # bytes of a folder's name: file systems take 255


def kind_of(column: str) -> str:
    return next((kind for kind, names in _KINDS.items() if re.fullmatch(names, column)), "string")


def sql_type(table: str, column: str) -> str:
    # A file has a version of any kind.
    kind = "string" if (table, column) == ("inputs", "version") else kind_of(column)
    return _SQL_TYPES.get(kind, "VARCHAR")


def escaped(text: str) -> str:
    """As Hive, Spark and DuckDB have a value in the name of a folder."""
    return _UNSAFE.sub(lambda found: f"%{ord(found[0]):02X}", text)


def shown(text: str) -> str:
    """A name as tables and terminals can have it: names of files may hold any bytes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


@lru_cache
def job_name(text: str) -> str:
    """The name of a job in a lake, which a folder can have."""
    name = shown(text)
    if len(escaped(name).encode()) <= _LONGEST:
        return name
    end = f",{digest(name)}"
    kept = name[:_LONGEST]
    while len(escaped(kept).encode()) > _LONGEST - len(end):
        kept = kept[:-1]
    return kept + end


def default_name(job_id: str, cluster: str, requeues: int, restarts: int) -> str:
    """Of the runs of a job that was started again each has a name."""
    again = f"+{requeues}.{restarts}" if requeues or restarts else ""
    return job_id + (f"@{cluster}" if cluster else "") + again


def month_of(begin: datetime | None) -> str:
    return f"{begin:%Y-%m}" if begin else "unknown"


def large_file(table: str, job: str, ingest: str, columns: str, number: int) -> str:
    return f"{table}/job={escaped(job)}/{ingest},{columns},{number:04}.parquet"


def small_file(table: str, month: str, stem: str, columns: str) -> str:
    return f"{table}/month={month}/{stem},{columns}.parquet"


def stem_of(job: str, ingest: str) -> str:
    return f"0000-{digest(job, ingest)}"


@dataclass(frozen=True, order=True)
class Taken:
    """One taking in of a job, by its summary."""

    job: str  # escaped, as in names
    ingest: str
    old: bool = False  # of format 1

    def _below(self, what: str) -> str:
        return f"{what}/{'' if self.old else 'job='}{self.job}/{self.ingest}"

    @property
    def summary(self) -> str:
        return self._below("summaries") + (".sum.gz" if self.old else ".sum.zst")

    @property
    def record(self) -> str:
        return self._below("summaries") + ".json.zst"

    def table(self, name: str) -> str:  # of format 1
        return self._below(name) + ".parquet"


def taken_of(job: str, ingest: str) -> Taken:
    return Taken(escaped(job), ingest)


def folders_of(job: str) -> list[tuple[str, str]]:
    """A job's folders below a table: the one of today, and the one of format 1."""
    quoted = quote(job, safe="")
    quoted = quoted.replace(".", "%2E") if job.startswith(".") else quoted
    # No file system takes a name of more than 255 bytes; quote() leaves no comma.
    old = quoted if len(quoted) <= 200 else f"{quoted[:150]},{digest(job)}"
    return [(f"job={escaped(job)}", escaped(job)), (old, old)]


def summaries(names: Iterable[str]) -> Iterator[Taken]:
    """Of each summary among these files; others are not whole yet."""
    for name in names:
        found = re.fullmatch(r"(?s)summaries/(job=)?([^/]+)/([^/.]+)\.sum\.(gz|zst)", name)
        if found and bool(found[1]) == (found[4] == "zst"):
            yield Taken(found[2], found[3], not found[1])


def digest(*of: object) -> str:
    return hashlib.sha256(repr(of).encode()).hexdigest()[:20]


class JobPattern:
    """Job and rank of a trace from its name, as in '{job}/rank{rank}.pb'. '*' is any text.

    >>> pattern = JobPattern("{job}/*/rank{rank}.pb")
    >>> pattern.of("gpt/node3/rank17.pb"), pattern.of("readme.pb")
    (('gpt', 17), None)
    """

    _PARTS = {"{job}": r"(?P<job>[^/]+?)", "{rank}": r"(?P<rank>\d+)", "*": r"[^/]*?"}

    def __init__(self, text: str) -> None:
        if text.count("{job}") != 1 or text.count("{rank}") > 1:
            raise Error(f"--job-from '{text}': it takes the names of traces below the folder, with "
                        "{job} in the place of the job, such as '{job}/rank{rank}.pb'", 2)
        parts = re.split(r"(\{job\}|\{rank\}|\*)", text)
        self._names = re.compile("".join(self._PARTS.get(part, re.escape(part)) for part in parts))

    def of(self, name: str) -> tuple[str, int | None] | None:
        found = self._names.fullmatch(name)
        if not found:
            return None
        groups = found.groupdict()
        return groups["job"], int(groups["rank"]) if groups.get("rank") else None
