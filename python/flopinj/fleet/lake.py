"""SQL over a lake: its tables as views of DuckDB, or of Spark SQL."""

from __future__ import annotations

import atexit
import json
import re
import tempfile
import weakref
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

from flopinj._programs import Error, install
from flopinj.fleet import layout
from flopinj.fleet.place import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    import duckdb
    import pyarrow

_Answer = TypeVar("_Answer")
_QUERIES = Path(__file__).parent / "queries"


def query(name: str, **limits: object) -> str:
    """The text of one of the queries that come with flopinj, as flopinj fleet --help lists them.
    `limits`: top, how many rows; over, from what slowdown on a rank is a straggler; price, of a
    GPU-hour; electricity, what a kWh costs."""
    text = (_QUERIES / f"{name}.sql").read_text()
    unknown = "CAST(NULL AS DOUBLE)"
    return text.format(
        **{"top": 10, "over": 1.15, "price": unknown, "electricity": unknown, **limits})


def questions() -> list[str]:
    return sorted(file.stem for file in _QUERIES.glob("*.sql"))


#: Connections that read by fsspec, in threads of DuckDB's that call Python.
_BY_PYTHON: weakref.WeakSet[Any] = weakref.WeakSet()


@atexit.register
def _end_threads() -> None:
    """Those of a query that was not read to its end run on. One that asks for Python while the
    interpreter ends is ended in the middle of C++, and that aborts the process."""
    for connection in list(_BY_PYTHON):
        connection.interrupt()
        try:
            connection.cursor().execute("SET threads = 1")  # waits for all others
        except Exception:  # after lock()
            connection.close()


def check(lake: Place) -> None:
    """Raises Error where a newer flopinj wrote the lake."""
    content = lake.read(layout.MARKER)
    try:
        found = int(json.loads(content)["format"]) if content else layout.FORMAT
    except (ValueError, KeyError, TypeError):
        raise Error(f"{lake.url(layout.MARKER)} does not say the lake's format: restore it, such "
                    f'as {{"format": {layout.FORMAT}}}', 2) from None
    if found > layout.FORMAT:
        raise Error(f"{lake.url('')} is a lake of format {found}: this flopinj knows it up to "
                    f"{layout.FORMAT}. Take a newer one", 2)


def mark(lake: Place) -> None:
    if lake.read(layout.MARKER) is None:
        with tempfile.TemporaryDirectory(prefix="flopinj-") as folder:
            file = f"{folder}/{layout.MARKER}"
            with open(file, "w", encoding="utf-8") as out:
                json.dump({"format": layout.FORMAT}, out)
            lake.put(file, layout.MARKER)


def _existing(url: str) -> Place:
    """Raises Error where there is no lake, or a newer flopinj wrote it."""
    place = Place(url)
    check(place)
    if not place.files("jobs"):
        raise Error(f"{place.url('')} is no lake: no job has been taken in there; "
                    "flopinj fleet ingest RUNS/ --out LAKE makes one", 2)
    return place


class Lake:
    """A lake, with a connection of DuckDB to it. `since`: only jobs that began then or later."""

    def __init__(self, url: str, since: date | None = None) -> None:
        try:
            import duckdb
        except ImportError:
            raise Error(f"needs duckdb: {install('fleet')}", 1) from None
        self._place, self._since = _existing(url), since
        self._views: set[str] = set()
        self._connection: duckdb.DuckDBPyConnection = duckdb.connect()
        self._connection.execute("SET TimeZone = 'UTC'; SET python_enable_replacements = false")
        if not self._place.is_local:
            self._connection.register_filesystem(self._place.fs)
            _BY_PYTHON.add(self._connection)

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """With all tables as views."""
        self._bind(layout.TABLES)
        return self._connection

    def with_jobs(self) -> duckdb.DuckDBPyConnection:
        """The connection, with the view jobs alone."""
        self._bind(())
        return self._connection

    def lock(self) -> None:
        """From now on the connection reads the lake only: no other file is read, none outside of
        it is written, no setting changes."""
        below = _quoted(self._place.url(""))
        self._connection.execute(f"SET allowed_directories = ['{below}/']")
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def _bind(self, names: Sequence[str]) -> None:
        """To make a view, files are looked at: so only for tables that a query names."""
        for name in ("jobs", *names):
            if name in self._views:
                continue
            self._connection.execute(
                f"CREATE OR REPLACE VIEW {name} AS {_view(name, self.union(name), self._since)}")
            self._views.add(name)

    def union(self, name: str, only: Collection[str] | None = None) -> str:
        """All rows of the table's files, those with the same columns by one reader."""
        readers = []
        if name in layout.MADE:  # all of its columns, whoever wrote the files
            empty = ", ".join(f"CAST(NULL AS {layout.sql_type(name, column)}) AS {column}"
                              for column in (*_OWN, *layout.MADE[name]))
            readers.append(f"SELECT {empty} WHERE false")
        large = name in layout.LARGE
        for kind, files in _files(self._place, name, only).items():
            listed = ", ".join(f"'{_quoted(self._place.url(file))}'" for file in files)
            if not kind:  # of format 1
                fit = "* REPLACE (CAST(begin AT TIME ZONE 'UTC' AS TIMESTAMPTZ) AS begin)" \
                    if name == "jobs" else "*"
                readers.append(f"SELECT {fit}, '' AS pack FROM read_parquet([{listed}], "
                               "union_by_name = true, hive_partitioning = false)")
            else:
                part = "job" if large else "month"
                columns = "*, '' AS pack" if large else "* EXCLUDE (month)"
                readers.append(f"SELECT {columns} FROM read_parquet([{listed}], "
                               f"hive_partitioning = true, hive_types = {{'{part}': VARCHAR}})")
        if not readers:
            return "SELECT NULL AS job, NULL AS ingest, NULL AS pack WHERE false"
        return " UNION ALL BY NAME ".join(readers)

    def rows(self, text: str, *values: object) -> list[dict[str, Any]]:
        """The answer of a SELECT with values in the places of its `?`."""
        def asked() -> list[dict[str, Any]]:
            self._bind(_named(text))
            done = self._connection.execute(text, list(values))
            names = [column[0] for column in done.description or ()]
            return [dict(zip(names, row)) for row in done.fetchall()]

        return self._again(asked)

    def sql(self, text: str) -> pyarrow.Table:
        """The answer of a SELECT, as a table of Arrow."""
        return self._again(lambda: self.relation(text).to_arrow_table())

    def _again(self, ask: Callable[[], _Answer]) -> _Answer:
        """Files go where a job is taken in anew, or compacted: then others have what they had."""
        import duckdb

        for _ in range(_TRIES - 1):
            try:
                return ask()
            except duckdb.IOException:
                self._views.clear()
            except Error as error:
                if not isinstance(error.__context__, duckdb.IOException):
                    raise
                self._views.clear()
        return ask()

    def relation(self, text: str) -> duckdb.DuckDBPyRelation:
        """The answer of a SELECT, as DuckDB has it: fetchall(), df(), pl() and more."""
        import duckdb

        try:
            kinds = [one.type for one in self._connection.extract_statements(text)]
            if kinds == [duckdb.StatementType.SELECT]:
                self._bind(_named(text))
                return self._connection.sql(text)
        except duckdb.Error as error:
            raise Error(str(error).strip().partition("\n")[0] + "; flopinj fleet sql 'SHOW TABLES' "
                        "lists the tables, 'DESCRIBE jobs' a table's columns", 2) from None
        raise Error("it takes one SELECT, and nothing else", 2)


_OWN = ("job", "ingest", "pack")
_TRIES = 5


def _named(text: str) -> list[str]:
    """Tables whose names are words of the text: more than it reads, at most."""
    words = set(re.findall(r"\w+", text.lower()))
    return [name for name in layout.TABLES if name in words or "query_table" in words]


def _view(name: str, rows: str, since: date | None = None) -> str:
    """What counts of these rows. DuckDB and Spark understand it."""
    if name == "jobs":
        began = f" AND begin >= TIMESTAMP '{since} 00:00:00'" if since else ""
        columns = ", ".join((*_OWN, *layout.JOBS))
        return (f"SELECT {columns} FROM (SELECT *, row_number() OVER (PARTITION BY job ORDER BY "
                "taken_in DESC NULLS LAST, pack DESC NULLS LAST, ingest DESC) AS place "
                f"FROM ({rows})) WHERE place = 1{began}")
    keys = "job, ingest" if name in layout.LARGE else "job, ingest, pack"
    return f"SELECT * FROM ({rows}) WHERE ({keys}) IN (SELECT {keys} FROM jobs)"


def _files(place: Place, table: str,
           only: Collection[str] | None = None) -> dict[str, list[str]]:
    """A table's files by the hash of their columns; '': of format 1."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in (file.name for file in place.files(table)) if only is None else only:
        if name.endswith(".parquet"):
            new = re.search(r",([0-9a-f]{6})(,\d{4})?\.parquet$", name)
            found[new[1] if new and "=" in name else ""].append(name)
    return found


def register(session: Any, url: str) -> None:
    """Makes the tables of a lake views of a SparkSession: jobs, rows, step_list and the others."""
    place = _existing(url)

    def read(name: str) -> str:
        # Spark has names of its own: for Amazon's object store, and for this machine's files.
        url = place.url(name)
        return url.replace("s3://", "s3a://") if "://" in url else f"file://{url}"

    from pyspark.sql import functions

    # A job's name may be a number, and stays a text.
    inferred = "spark.sql.sources.partitionColumnTypeInference.enabled"
    before = session.conf.get(inferred, "true")
    session.conf.set(inferred, "false")
    for name in ("jobs", *layout.TABLES):
        whole = None
        for kind, files in _files(place, name).items():
            frame = session.read.option("basePath", read(name)).option("mergeSchema", not kind)
            frame = frame.parquet(*(read(file) for file in files))
            if not kind or name in layout.LARGE:
                frame = frame.withColumn("pack", functions.lit(""))
            whole = frame if whole is None else whole.unionByName(frame, allowMissingColumns=True)
        if whole is not None:
            for column in (*_OWN, *layout.MADE.get(name, ())):
                if column not in whole.columns:
                    kind = {"VARCHAR": "STRING", "TIMESTAMPTZ": "TIMESTAMP"}.get(
                        of := layout.sql_type(name, column), of)
                    whole = whole.withColumn(column, functions.lit(None).cast(kind))
            whole.createOrReplaceTempView(f"{name}_files")
            session.sql(_view(name, f"SELECT * FROM {name}_files")).createOrReplaceTempView(name)
    session.conf.set(inferred, before)


def _quoted(text: str) -> str:
    return text.replace("'", "''")
