"""A lake over the years: many small files become few, and jobs go."""

from __future__ import annotations

import tempfile
import uuid
from collections import defaultdict
from collections.abc import Collection
from contextlib import suppress
from datetime import date

import duckdb
import pyarrow.parquet

from flopinj._programs import Error
from flopinj.fleet import layout, tables, work
from flopinj.fleet import lake as lakes
from flopinj.fleet.place import Place

#: So many files of jobs in a month are no burden yet.
FEW = 64
_TRIES = 10


def compact(url: str, *, few: int = 1) -> int:
    """Makes few files of each month's, where there are more than `few`. How many went. It may run
    at any time, beside others and queries, and be killed."""
    lake = Place(url)
    lakes.check(lake)
    if few == 1:  # asked for: what format 1 has becomes as it is today
        for job in lakes.Lake(url).rows("SELECT job FROM jobs WHERE pack = ''"):
            work.finish(work.Job(url, job["job"], "", [], [], False, [], [], ""))
    return sum(_packed(lake, month, files, ()) for month, files in _months(lake).items()
               if len(files) > few)


def forget(url: str, jobs: Collection[str]) -> None:
    """Takes all of these jobs out of the lake. Their traces stay, and would be taken in again."""
    lake = Place(url)
    there = lakes.Lake(url).rows("SELECT job FROM jobs WHERE job IN (SELECT unnest(?))", list(jobs))
    if missing := sorted(set(jobs) - {row["job"] for row in there}):
        raise Error(f"the lake has no job '{missing[0]}': flopinj fleet jobs lists its jobs", 2)
    for _ in range(_TRIES):  # somebody may be compacting
        for job in jobs:
            for one in work.versions(lake, job):
                work.remove(lake, one)
            for table in (*layout.LARGE, "summaries"):
                for folder, _ in layout.folders_of(job):
                    lake.remove_folder(f"{table}/{folder}")
        for month, files in _months(lake).items():
            _packed(lake, month, files, jobs)
        if not lake.files("jobs") or not lakes.Lake(url).rows(
                "SELECT job FROM jobs WHERE job IN (SELECT unnest(?))", list(jobs)):
            return
    raise Error("others change the lake at the same time, again and again: do it again", 1)


def expire(url: str, before: date) -> list[str]:
    """Forgets the jobs that ended before a day (UTC); where that is not known, were taken in."""
    rows = lakes.Lake(url).rows("SELECT job FROM jobs WHERE coalesce(ended, begin, taken_in) < ? "
                                "ORDER BY job", before)
    jobs = [row["job"] for row in rows]
    if jobs:
        forget(url, jobs)
    return jobs


def _months(lake: Place) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for file in lake.files("jobs"):
        folder = file.name.split("/")[1]
        if folder.startswith("month=") and file.name.endswith(".parquet"):
            found[folder].append(file.name)
    return found


def _stem(name: str) -> str:
    return name.rpartition("/")[2].partition(",")[0]


def _packed(lake: Place, month: str, jobs: list[str], without: Collection[str]) -> int:
    """Puts what counts in these files of jobs, and in the tables that go with them, into a file of
    each table. Rows of jobs come last, and their old files go first: whoever reads tables while
    that happens sees whole jobs, and whoever packs the same ones finds that they went."""
    view = lakes.Lake(lake.url(""))
    if without and not view.rows(f"SELECT job FROM ({view.union('jobs', jobs)}) "
                                 "WHERE job IN (SELECT unnest(?))", list(without)):
        return 0
    stems = {_stem(name) for name in jobs}
    # No other has this name: who finds that he came too late removes what he wrote.
    pack = f"{1 + max(int(stem[:4]) for stem in stems):04}-{uuid.uuid4().hex[:20]}"
    sources: dict[str, list[str]] = {}
    made: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="flopinj-") as folder, suppress(duckdb.IOException):
        connection = view.with_jobs()
        for table in (*layout.SMALL, "jobs"):
            names = jobs if table == "jobs" else [
                name for name in lake.starting(f"{table}/{month}", "") if _stem(name) in stems]
            sources[table] = names
            if not names:
                continue
            file = f"{folder}/{table}.parquet"
            rows = connection.execute(
                f"COPY (SELECT * REPLACE ('{pack}' AS pack) FROM ({view.union(table, names)}) "
                "WHERE (job, ingest, pack) IN (SELECT job, ingest, pack FROM jobs) "
                f"AND job NOT IN (SELECT unnest(?)) ORDER BY job) TO '{file}' "
                "(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 65536)",
                [list(without)]).fetchall()[0][0]
            columns = tables.columns_hash(pyarrow.parquet.read_schema(file))
            if rows:
                made[table] = layout.small_file(table, month.partition("=")[2], pack, columns)
                if table != "jobs":
                    lake.put(file, made[table])
        there = set(lake.starting(f"jobs/{month}", ""))
        if set(jobs) <= there:
            if "jobs" in made:
                lake.put(f"{folder}/jobs.parquet", made["jobs"])
            for table in ("jobs", *layout.SMALL):
                lake.remove(*(name for name in sources[table] if name != made.get(table)))
                if not made:
                    lake.remove_empty(f"{table}/{month}")
            return len(jobs) - 1
    lake.remove(*(name for table, name in made.items() if table != "jobs"))
    return 0
