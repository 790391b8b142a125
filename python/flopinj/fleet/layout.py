"""Where things are in a lake, and which job a trace belongs to.

    jobs/JOB.parquet             one row: the job's figures. Its `ingest` says which of the
                                 files below count, so that replacing it replaces all of them
    TABLE/JOB/INGEST.parquet     flopreduce's tables of single ranks, and the list of inputs
    summaries/JOB/INGEST.sum.gz  for flopreduce: every report of the job
    parts/JOB/PART.*             while a job is being taken in

PART is a hash of the names, sizes and versions of the traces that are in it, and so is INGEST;
where recordings were kept that these traces no longer have, a hash of the INGESTs that had them is
behind it. Work that was done is found by its name, and doing it again makes the same file.

What was taken in is lost only where its summary is removed. So a job's summary is removed only
after another one is there that has every recording of it, and whoever takes a job in begins with
all summaries that are there: those of the INGEST that counts, of one that was killed, and of one
at the same time.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from flopinj._programs import Error

#: Tables of flopreduce that a lake has, and the one that is made here.
REPORTED = ("rows", "step_list", "processes", "paths")
TABLES = (*REPORTED, "inputs")
TRACES = re.compile(r"(?s).*\.(pb|sum)(\.gz|\.zst)?")

#: Columns by name: of what kind they are, as Arrow calls it. What is in none of these is text.
_KINDS = {
    "decimal128": r"flop",
    "bool_": r"simulated|simulated_clock|ptx_counts|partial|skipped",
    "float64": r"coverage|hfu|mfu|hfu_kernel_time|ratio|step_time|.*_share",
    "int64": r"(.*_)?(ns|launches|version)|rank|pid|device|devices|thread|stream|number|every"
             r"|world_size|bytes|traces|problems|processes|ranks_missing",
}


def kind_of(column: str) -> str:
    return next((kind for kind, names in _KINDS.items() if re.fullmatch(names, column)), "string")


def folder_of(job: str) -> str:
    quoted = quote(job, safe="")
    quoted = quoted.replace(".", "%2E") if job.startswith(".") else quoted
    # No file system takes a name of more than 255 bytes; quote() leaves no comma.
    return quoted if len(quoted) <= 200 else f"{quoted[:150]},{digest(job)}"


def shown(text: str) -> str:
    """A name as tables and terminals can have it: names of files may hold any bytes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def job_file(job: str) -> str:
    return f"jobs/{folder_of(job)}.parquet"


def file_of(what: str, job: str, version: str, kind: str = "parquet") -> str:
    return f"{what}/{folder_of(job)}/{version}.{kind}"


def summaries(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Folder and INGEST of each summary among these files; others are not whole yet."""
    for name in names:
        if found := re.fullmatch(r"summaries/([^/]+)/([^/.]+)\.sum\.gz", name):
            yield found[1], found[2]


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
