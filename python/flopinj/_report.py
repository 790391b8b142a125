"""Reports of flopreduce as objects. The figures are the program's: nothing is worked out here."""

from __future__ import annotations

import glob
import html
import json
import os
import re
import tempfile
from pathlib import Path

from flopinj import _programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from typing import Any, Union

    import pandas
    import pyarrow
    from matplotlib.axes import Axes

    Trace = Union[str, "os.PathLike[str]"]

_FINE = (0, 3)  # 3: something is missing, and the report says what
_BESIDE = re.compile("(_at_least|_at_most)?(_exact)?$|_(why|estimated)$")  # a figure


def _traces(given: tuple[Any, ...]) -> Iterator[str]:
    """Names of traces: patterns are expanded; one that fits nothing is left for the program to
    name."""
    for one in given:
        if isinstance(one, (str, os.PathLike)):
            name = os.fspath(one)
            yield from sorted(glob.glob(name)) or [name]
        else:
            yield from _traces(tuple(one))


def _in_memory(file: Path) -> sqlite3.Connection:
    import sqlite3

    database = sqlite3.connect(":memory:", check_same_thread=False)
    stored = sqlite3.connect(file)
    stored.backup(database)
    stored.close()
    return database


class _Output:
    """What flopreduce says of some traces, by the keys of its JSON form."""

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self._json = json.loads(self._run("--format=json"))

    def _run(self, *options: str) -> str:
        return _programs.run("flopreduce", *self._arguments, *options, fine=_FINE)

    def __getitem__(self, key: str) -> Any:
        return self._json[key]

    def __contains__(self, key: object) -> bool:
        return key in self.keys()

    def keys(self) -> list[str]:
        return list(self._json)

    def __str__(self) -> str:
        return self._run("--color=never")


class Report(_Output):
    """What traces hold, as flopreduce reports it in one reading.

    A figure that was not measured is None, never 0. One that is a bound is None, too: then
    report["hfu_at_least"], say, is known. `report[key]` is a figure of the whole by its name in
    `flopreduce --format json`, or the rows of a table there; `report.hfu` is a figure as well, and
    `report.kernels` a table as a data frame.
    """

    def __init__(self, *arguments: str) -> None:
        with tempfile.TemporaryDirectory(prefix="flopinj-") as folder:
            database, page = Path(folder) / "report.db", Path(folder) / "report.html"
            super().__init__(*arguments, "--format=sqlite", f"--output={database}",
                             "--format=html", f"--output={page}")
            self._arguments = arguments
            self._page = page.read_text(encoding="utf-8")
            self._database = _in_memory(database)

    def __getitem__(self, key: str) -> Any:
        figures = self._json["figures"]
        if _BESIDE.sub("", key, 1) in figures:
            return figures.get(key)
        return self._json[key]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self:
            raise AttributeError(f"a report has no '{name}'")
        value = self[name]
        return self.table(name) if isinstance(value, list) else value

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and (
            key in self._json or _BESIDE.sub("", key, 1) in self._json["figures"])

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.keys()]

    def keys(self) -> list[str]:
        return list({**self._json["figures"], **self._json})

    @property
    def flop(self) -> int | None:
        """Operations that were executed, exactly; None where a launch was not measured."""
        exact = self["flop_exact"]
        return None if exact is None else int(exact)

    @property
    def gpu_time(self) -> float | None:
        """Seconds, the sum of all kernels."""
        ns = self["gpu_time_ns"]
        return None if ns is None else int(ns) / 1e9

    @property
    def operator_share(self) -> float | None:
        """Share of launches that belong to the range of a framework's operator."""
        launches: int = self.launches
        if not launches:
            return None
        # Attention that is known by its kernels only is in no operator's range.
        (named,) = self._database.execute(
            "SELECT sum(launches) FROM operator_places WHERE operator <> 'fused attention'"
        ).fetchone()
        return (named or 0) / launches

    @property
    def operators(self) -> pandas.DataFrame:
        return self.table("operator_places")

    @property
    def notices(self) -> list[str]:
        """What to know before any figure, and what to do about it."""
        return [row["notice"] for row in self["notices"]]

    # --- tables ---

    @property
    def tables(self) -> list[str]:
        """Names of the tables: kernels, phases, ranges, ..."""
        rows = self._database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return [name for (name,) in rows]

    def sql(self, query: str) -> pandas.DataFrame:
        """The answer of an SQL query (SQLite's) over the tables."""
        from flopinj import _frames

        return _frames.pandas_frame(self._database.execute(query))

    def table(self, name: str) -> pandas.DataFrame:
        """A table with its columns of marks: `flop_mark` says how `flop` is to be read, such as
        "~" for an estimate and ">=" for a sum that some launches are missing from."""
        return self.sql(self._all_of(name))

    def arrow(self, name: str) -> pyarrow.Table:
        """A table, with FLOP as decimals of 38 digits."""
        from flopinj import _frames

        return _frames.arrow_table(self._database.execute(self._all_of(name)))

    def _all_of(self, name: str) -> str:
        if name not in self.tables:
            raise KeyError(f"there is no table '{name}': there are {', '.join(self.tables)}")
        return f'SELECT * FROM "{name}"'

    # --- for people ---

    def text(self, *, all: bool = False, color: str = "never") -> str:  # noqa: A002
        """The report as the terminal has it; `all`: every section."""
        return self._run(f"--color={color}", *(["--all"] if all else []))

    def html(self) -> str:
        """One page that zooms and sorts, for any browser."""
        return self._page

    def show(self) -> None:
        """The report where one looks: the page in a notebook, else text."""
        from flopinj import _show

        _show.show(self)

    def plot(self, what: str = "kernels", ax: Axes | None = None) -> Axes:
        """A figure with matplotlib: kernels, phases, ranges or layers by GPU time; times of steps;
        waterfall: where the peak went; roofline."""
        from flopinj import _show

        return _show.plot(self, what, ax)

    def __repr__(self) -> str:
        flop = "FLOP not known" if self.flop is None else f"{self.flop:,} FLOP"
        simulated = ", simulated" if self.simulated else ""
        return f"<flopinj.Report: {flop} in {self.launches:,} launches{simulated}>"

    def _repr_html_(self) -> str:
        from flopinj import _screen

        return _screen.html(self._json)


class Comparison(_Output):
    """What changed from one recording to another, as `flopreduce compare` reports it."""

    def __repr__(self) -> str:
        return f"<flopinj.Comparison: {' -> '.join(self._arguments[-2:])}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def reduce(*traces: Any, **options: _programs.Option) -> Report:
    """The report of traces and summaries: names, patterns, paths, folders, or lists of them.
    Keywords are options of flopreduce.

    >>> report = reduce(demo_trace, batch_size=32)
    >>> report.launches
    700
    >>> report.flop == sum(report.phases["flop"])
    True
    >>> report.sql("SELECT sum(launches) AS launches FROM kernels")["launches"].tolist()
    [700]
    >>> print(report.mfu)  # no operator ranges, and no FLOP by formula given
    None
    """
    return Report("--quiet", *_programs.options(options), *_traces(traces))


def compare(before: Trace, after: Trace, **options: _programs.Option) -> Comparison:
    """What changed between two recordings. Keywords are options of `flopreduce compare`.

    >>> compared = compare(demo_trace, demo_trace)
    >>> {row["figure"]: row["ratio"] for row in compared["total"]}["flop"]
    1.0
    """
    return Comparison("compare", *_programs.options(options), os.fspath(before), os.fspath(after))


def merge(*traces: Any, out: Trace, **options: _programs.Option) -> Path:
    """One small summary of many traces and summaries; its name.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     job = merge(demo_trace, out=pathlib.Path(folder) / "job.sum")
    ...     reduce(job).flop == reduce(demo_trace).flop
    True
    """
    arguments = [*_programs.options(options), f"--output={os.fspath(out)}", *_traces(traces)]
    _programs.run("flopreduce", "merge", *arguments)
    return Path(out)
