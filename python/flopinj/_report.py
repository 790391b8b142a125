"""Reports as objects. The figures are those of `flopinj report`: nothing is worked out here."""

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

#: Forms of save() by the ends of names.
_FORMS = {".html": "html", ".json": "json", ".db": "sqlite", ".sqlite": "sqlite",
          ".md": "markdown", ".txt": "text"}
#: Members that data frames and other profilers have, and where their like is here.
_LIKE = {
    **dict.fromkeys(("to_pandas", "to_df", "df", "dataframe"),
                    "kernels, phases and the other names of .tables are data frames"),
    **dict.fromkeys(("to_csv", "to_json", "to_html", "write", "export", "dump",
                     "export_chrome_trace"),
                    "save(FILE) writes the form that the name says, such as report.html"),
    **dict.fromkeys(("to_dict", "as_dict", "dict"),
                    "report[NAME] is a figure or the rows of a table; keys() lists the names"),
    **dict.fromkeys(("flops", "total_flops", "total_flop"), "flop is the whole of it"),
    "compare": "flopinj.compare(BEFORE, AFTER) takes two recordings",
    **dict.fromkeys(("key_averages", "summary", "print", "events"),
                    "text() is the report, and .kernels its table of kernels"),
    **dict.fromkeys(("query", "execute"), "sql(SELECT) asks the tables"),
    **dict.fromkeys(("fail_if", "check", "gate", "assert_"),
                    "a limit is an assertion, as in assert report.mfu > 0.3; conditions are for "
                    "flopinj report --fail-if"),
}
_FINE = (0, 3)  # 3: something is missing, and the report says what
_BESIDE = re.compile("(_at_least|_at_most)?(_exact)?$|_(why|estimated)$")  # a figure


def _traces(given: tuple[Any, ...]) -> Iterator[str]:
    """Names of traces: patterns are expanded; one that fits nothing is left for the program to
    name."""
    for one in given:
        if isinstance(one, (str, os.PathLike)):
            name = os.fspath(one)
            yield from sorted(glob.glob(name)) or [name]
            continue
        if not hasattr(one, "__iter__") or hasattr(one, "read"):
            name = getattr(one, "name", None)
            raise TypeError(f"a trace is a name, a path, or a list of them, and not {one!r}: "
                            f"flopinj.load(\"{name if isinstance(name, str) else 'trace.pb'}\")")
        if not (several := tuple(one)):  # else it would be the newest run of the folder
            raise ValueError("there is no trace in the list: does the pattern fit a file?")
        yield from _traces(several)


def _in_memory(file: Path) -> sqlite3.Connection:
    import sqlite3

    database = sqlite3.connect(":memory:", check_same_thread=False)
    stored = sqlite3.connect(file)
    stored.backup(database)
    stored.close()
    return database


class _Output:
    """What flopinj says of some traces, in one reading: the rows of `output["kernels"]` by the
    keys of its JSON form, the data frame `output.kernels` of the same table, and a page."""

    _NAME = "this"  # what it is, for messages
    _FIGURES: tuple[str, ...] = ()  # of those that are attributes, the ones that dir() lists

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self._partial: list[str] = []
        with tempfile.TemporaryDirectory(prefix="flopinj-") as folder:
            database, page = Path(folder) / "output.db", Path(folder) / "output.html"
            self._json = json.loads(self._run(
                "--format=json", "--output=-", "--format=sqlite", f"--output={database}",
                "--format=html", f"--output={page}"))
            self._page = page.read_text(encoding="utf-8")
            self._database = _in_memory(database)

    def _run(self, *options: str) -> str:
        said: list[str] = []
        answer = _programs.run("flopreduce", *self._arguments, *options, fine=_FINE, partial=said)
        if said and not self._partial:
            self._partial = said
            _programs.warn("; ".join(said))
        return answer

    def __getitem__(self, key: str) -> Any:
        if key not in self._json:
            raise KeyError(self._no_such(key))
        return self._json[key]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self:
            raise AttributeError(self._no_such(name))
        value = self[name]
        return self.table(name) if isinstance(value, list) else value

    def _no_such(self, name: str) -> str:
        said = _LIKE.get(name) or _programs.near(name, {*dir(type(self)), *self.keys()},
                                                 "keys() lists figures and tables")
        return f"{self._NAME} has no '{name}': {said}"

    def __contains__(self, key: object) -> bool:
        return key in self.keys()

    def __dir__(self) -> list[str]:
        """What one may want to type: methods, figures, and tables that have rows."""
        return sorted({name for name in dir(type(self)) if not name.startswith("_")}
                      | {name for name, value in self._json.items()
                         if isinstance(value, list) and value} | set(self._FIGURES))

    def keys(self) -> list[str]:
        return list(self._json)

    def __str__(self) -> str:
        return self.text()

    # --- tables ---

    @property
    def tables(self) -> list[str]:
        """Names of the tables: kernels, phases, ranges, ..."""
        rows = self._database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return [name for (name,) in rows]

    def sql(self, query: str) -> pandas.DataFrame:
        """The answer of an SQL query (SQLite's) over the tables."""
        import sqlite3

        from flopinj import _frames

        try:
            answer = self._database.execute(query)
        except sqlite3.OperationalError as error:
            raise type(error)(f"{error}{self._columns_of(query)}") from None
        return _frames.pandas_frame(answer)

    def _columns_of(self, query: str) -> str:
        """What the first table that is named in it has; else which tables there are."""
        words = re.findall(r"\w+", query)
        named = next((name for name in self.tables if name in words), None)
        if named is None:
            return f": .tables are {', '.join(self.tables)}"
        rows = self._database.execute(f'PRAGMA table_info("{named}")')
        return f": {named} has {', '.join(row[1] for row in rows)}"

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
            raise KeyError(f"there is no table '{name}': " + _programs.near(
                name, self.tables, f"there are {', '.join(self.tables)}"))
        return f'SELECT * FROM "{name}"'

    # --- for people ---

    def text(self, *, color: str = "never") -> str:
        """As a terminal has it."""
        return self._run(f"--color={color}")

    def html(self, *file: Trace) -> str:
        """One page that zooms and sorts, for any browser."""
        if file:
            raise TypeError(f"html() is the page as a text: save({os.fspath(file[0])!r}) writes it")
        return self._page

    def show(self) -> None:
        """The whole of it where one looks: the page in a notebook, else text."""
        from flopinj import _show

        _show.show(self)

    def save(self, file: Trace | None = None, **others: object) -> Path:
        """Writes a file whose form its name says: .html, .json, .db (SQLite), .md (Markdown), .txt;
        a folder gets each table as CSV. A file that exists is overwritten. Returns its name."""
        if file is None or others:
            raise TypeError("save() takes the name of a file, which says the form: "
                            f"save(\"report.{others.get('format', 'html')}\")")
        to = Path(file)
        form = "csv" if to.is_dir() or os.fspath(file).endswith("/") else _FORMS.get(to.suffix)
        if form is None:
            raise ValueError(f"{to}: the form of '{to.suffix}' is not known: there are "
                             f"{', '.join(_FORMS)}, and FOLDER/ for tables as CSV")
        self._run(f"--format={form}", "--color=never", "--force",
                  f"--output={to}{'/' if form == 'csv' else ''}")
        return to

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


class Report(_Output):
    """What traces hold, as `flopinj report` has it in one reading.

    A figure that was not measured is None, never 0. One that is a bound is None, too: then
    report["hfu_at_least"], say, is known. `report[key]` is a figure of the whole by its name in
    `flopinj report --format json`, or the rows of a table there; `report.hfu` is a figure as well,
    and `report.kernels` a table as a data frame.
    """

    _NAME = "a report"
    _FIGURES = ("coverage", "hfu", "launches", "mfu", "ratio", "step_time")

    def __init__(self, options: Any = "trace.pb", traces: list[str] | None = None) -> None:
        if traces is None:  # Report("trace.pb"), as other libraries have it
            raise TypeError(f"flopinj.load({json.dumps(str(options))}) reads a recording, and "
                            "returns a Report")
        super().__init__("--quiet", *options, *traces)
        self._options, self._traces = options, traces

    def __getitem__(self, key: str) -> Any:
        figures = self._json["figures"]
        if _BESIDE.sub("", key, 1) in figures:
            return figures.get(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and (
            key in self._json or _BESIDE.sub("", key, 1) in self._json["figures"])

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
        return [*self._partial, *(row["notice"] for row in self["notices"])]

    # --- for people ---

    def text(self, *, all: bool = False, color: str = "never") -> str:  # noqa: A002
        """The report as the terminal has it; `all`: every section."""
        return self._run(f"--color={color}", *(["--all"] if all else []))

    def plot(self, what: str = "kernels", ax: Axes | None = None) -> Axes:
        """A figure with matplotlib: kernels, phases, ranges or layers by GPU time; times of steps;
        waterfall: where the peak went; roofline."""
        from flopinj import _show

        return _show.plot(self, what, ax)

    def explain(self, name: str, **options: _programs.Option) -> Explanation:
        """Where a figure comes from: a kernel, a layer, an operator, a range, a phase, a figure of
        the first screen such as "MFU", or a line of where the peak went such as "padding". Keywords
        are options of `flopinj explain`."""
        return Explanation(name, *self._options, *_programs.options(options), name, *self._traces)

    def __repr__(self) -> str:
        flop = "FLOP not known" if self.flop is None else f"{self.flop:,} FLOP"
        simulated = ", simulated" if self.simulated else ""
        return f"<flopinj.Report: {flop} in {self.launches:,} launches{simulated}>"

    def _repr_html_(self) -> str:
        from flopinj import _screen

        return _screen.html(self._json)


class Explanation(_Output):
    """Where one figure of a report comes from, as `flopinj explain` has it."""

    _NAME = "an explanation"

    def __init__(self, name: str = "MFU", *arguments: str) -> None:
        if not arguments:
            raise TypeError(f"flopinj.load(TRACE).explain({json.dumps(str(name))}) explains a "
                            "figure, and returns an Explanation")
        super().__init__("explain", "--quiet", *arguments)
        self._name = name

    def __repr__(self) -> str:
        return f"<flopinj.Explanation: {self._name}>"


class Comparison(_Output):
    """What changed from one recording to another, as `flopinj compare` reports it."""

    _NAME = "a comparison"

    def __init__(self, before: Trace = "before.pb", after: Trace = "after.pb",
                 options: list[str] | None = None) -> None:
        if options is None:  # Comparison("a.pb", "b.pb")
            raise TypeError(f"flopinj.compare({json.dumps(str(before))}, {json.dumps(str(after))}) "
                            "compares two recordings, and returns a Comparison")
        super().__init__("compare", *options, os.fspath(before), os.fspath(after))

    def plot(self, what: str = "kernels", ax: Axes | None = None) -> Axes:
        """Both recordings side by side with matplotlib: kernels, phases, ranges or stacks by GPU
        time; lost: where the time of a step went."""
        from flopinj import _show

        return _show.plot_both(self, what, ax)

    def __repr__(self) -> str:
        return f"<flopinj.Comparison: {' -> '.join(self._arguments[-2:])}>"


def load(*traces: Any, **options: _programs.Option) -> Report:
    """The report of traces and summaries: names, patterns, paths, folders, or lists of them.
    Keywords are options of `flopinj report`. `reduce` is the same function.

    >>> report = load(demo_trace, batch_size=32)
    >>> report.launches
    700
    >>> report.flop == sum(report.phases["flop"])
    True
    >>> report.sql("SELECT sum(launches) AS launches FROM kernels")["launches"].tolist()
    [700]
    >>> print(report.mfu)  # no operator ranges, and no FLOP by formula given
    None
    """
    return Report(_programs.options(options), list(_traces(traces)))


reduce = load


def compare(before: Trace, after: Trace, **options: _programs.Option) -> Comparison:
    """What changed between two recordings. Keywords are options of `flopinj compare`.

    >>> compared = compare(demo_trace, demo_trace)
    >>> {row["figure"]: row["ratio"] for row in compared["total"]}["flop"]
    1.0
    """
    return Comparison(before, after, _programs.options(options))


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
