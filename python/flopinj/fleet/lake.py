"""SQL over a lake: its tables as views of DuckDB, or of Spark SQL."""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flopinj._programs import Error
from flopinj.fleet import layout
from flopinj.fleet.place import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    import duckdb
    import pyarrow

_QUERIES = Path(__file__).parent / "queries"
#: Rows of what has been replaced, or is not finished, are of no job.
_COUNTING = "(job, ingest) IN (SELECT job, ingest FROM jobs)"


def query(name: str, **limits: float) -> str:
    """The text of one of the queries that come with flopinj: jobs, stragglers, kernels. `limits`:
    top, how many rows; over, from what slowdown on a rank is a straggler."""
    text = (_QUERIES / f"{name}.sql").read_text()
    return text.format(**{"top": 10, "over": 1.15, **limits})


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


class Lake:
    """A lake, with a connection of DuckDB to it."""

    def __init__(self, url: str) -> None:
        try:
            import duckdb
        except ImportError:
            raise Error("needs duckdb: pip install 'flopinj[fleet]'", 1) from None
        place = Place(url)
        self.connection: duckdb.DuckDBPyConnection = duckdb.connect()
        if not place.is_local:
            self.connection.register_filesystem(place.fs)
            _BY_PYTHON.add(self.connection)
        _make_views(place, self._view)
        self._below = place.url("")

    def lock(self) -> None:
        """From now on the connection reads the lake only: no other file is read, none outside of
        it is written, no setting changes."""
        self.connection.execute(f"SET allowed_directories = ['{_quoted(self._below)}/']")
        self.connection.execute("SET enable_external_access = false")
        self.connection.execute("SET lock_configuration = true")

    def _view(self, name: str, files: str, rows: str) -> None:
        source = f"read_parquet('{_quoted(files)}', union_by_name = true)"
        self.connection.execute(f"CREATE VIEW {name} AS SELECT * FROM {source} WHERE {rows}")

    def sql(self, text: str) -> pyarrow.Table:
        """The answer of a SELECT, as a table of Arrow."""
        return self.relation(text).to_arrow_table()

    def relation(self, text: str) -> duckdb.DuckDBPyRelation:
        """The answer of a SELECT, as DuckDB has it: fetchall(), df(), pl() and more."""
        import duckdb

        try:
            kinds = [one.type for one in self.connection.extract_statements(text)]
            if kinds == [duckdb.StatementType.SELECT]:
                return self.connection.sql(text)
        except duckdb.Error as error:
            raise Error(str(error).strip().partition("\n")[0], 2) from None
        raise Error("it takes one SELECT, and nothing else", 2)


def register(session: Any, url: str) -> None:
    """Makes the tables of a lake views of a SparkSession: jobs, rows, step_list and the others."""

    def view(name: str, files: str, rows: str) -> None:
        # Spark has names of its own: for Amazon's object store, and for this machine's files.
        files = files.replace("s3://", "s3a://") if "://" in files else f"file://{files}"
        frame = session.read.option("mergeSchema", "true").parquet(files)
        frame.where(rows).createOrReplaceTempView(name)

    _make_views(Place(url), view)


def _make_views(place: Place, view: Callable[[str, str, str], None]) -> None:
    if not place.files("jobs"):
        raise Error(f"{place.url('')} is no lake: no job has been taken in there", 2)
    view("jobs", place.url("jobs/*.parquet"), "true")
    for name in layout.TABLES:
        if place.files(name):  # of a lake whose traces are all damaged there is the list of them
            view(name, place.url(f"{name}/*/*.parquet"), _COUNTING)


def _quoted(text: str) -> str:
    return text.replace("'", "''")
