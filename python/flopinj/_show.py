"""Reports for the eye: a summary for notebooks, flopreduce's page, plots with matplotlib."""

from __future__ import annotations

import html
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes

    from flopinj._report import Report

_ROWS = 5  # of long tables
_WIDTH = 80  # of names
_PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
#: What one plot shows: the table, and the column that names its rows.
_BARS = {"kernels": "kernel", "phases": "phase", "ranges": "range", "layers": "layer"}


def si(value: float | None, unit: str) -> str:
    """
    >>> si(118767120, "FLOP"), si(0.25, "s"), si(None, "FLOP")
    ('118.8 MFLOP', '0.25 s', '-')
    """
    if value is None:
        return "-"
    for size, prefix in _PREFIXES:
        if abs(value) >= size:
            return f"{value / size:.4g} {prefix}{unit}"
    return f"{value:.4g} {unit}"


def share(value: float | None) -> str:
    """Two digits, and never all of what is not.

    >>> share(1.0), share(0.9996), share(0.412), share(0.0009), share(None)
    ('100 %', '>99.9 %', '41 %', '0.09 %', '-')
    """
    if value is None:
        return "-"
    if 0.9995 <= value < 1:
        return ">99.9 %"
    percent = 100 * value
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.2g} %"


def marked(value: object, mark: str | None, text: Callable[[float], str]) -> str:
    """A figure with its mark in front; text where it is wider than 64 bits.

    >>> marked(str(2**70), "~", "{:.0e}".format), marked(None, None, str)
    ('~ 1e+21', '-')
    """
    return "-" if value is None else f"{mark or ''} {text(float(str(value)))}".strip()


def _table(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    def row(cells: tuple[str, ...], tag: str) -> str:
        inner = "".join(
            f'<{tag} style="text-align:{"right" if i else "left"}">{html.escape(cell)}</{tag}>'
            for i, cell in enumerate(cells)
        )
        return f"<tr>{inner}</tr>"

    return f"<table>{row(headings, 'th')}{''.join(row(cells, 'td') for cells in rows)}</table>"


def _short(name: str) -> str:
    return name if len(name) <= _WIDTH else name[: _WIDTH - 1] + "…"


def _work_rows(report: Report, table: str, key: str) -> list[tuple[str, ...]]:
    query = (f'SELECT "{key}", flop, flop_mark, launches, gpu_time_ns, gpu_time_ns_mark'
             f" FROM {table} ORDER BY gpu_time_ns DESC LIMIT {_ROWS}")
    return [(_short(name), marked(flop, mark, _flop), f"{launches:,}",
             marked(ns, time_mark, lambda ns: f"{ns / 1e6:,.3f} ms"))
            for name, flop, mark, launches, ns, time_mark in report._database.execute(query)]


def _flop(value: float) -> str:
    return si(value, "FLOP")


def _figure(report: Report, key: str, text: Callable[[float], str]) -> str:
    return marked(*report._database.execute(f"SELECT {key}, {key}_mark FROM figures").fetchone(),
                  text)


def summary(report: Report) -> str:
    """HTML of a few kilobytes: head figures, phases, the kernels that take longest."""
    notices = list(report.notices)
    if report.simulated:
        notices.insert(0, "Simulated: no number here was read on hardware.")
    figures = [
        ("executed", _figure(report, "flop", _flop), f"in {report.launches:,} launches"),
        ("HFU", _figure(report, "hfu", share), "executed FLOP over the peak's"),
        ("MFU", _figure(report, "mfu", share), "FLOP by formula over the peak's"),
        ("backward / forward", _figure(report, "ratio", "{:.4g}".format), ""),
        ("coverage", share(report.coverage), "of launches have FLOP counts"),
    ]
    parts = [f"<p>{html.escape(_short(notice))}</p>" for notice in notices[:_ROWS]]
    parts.append(_table(("figure", "value", ""), figures))
    for table, key in (("phases", "phase"), ("kernels", "kernel")):
        rows = _work_rows(report, table, key)
        if rows:
            parts.append(_table((key, "FLOP", "launches", "GPU time"), rows))
    return "<div>" + "".join(parts) + "</div>"


def _notebook() -> bool:
    shell = sys.modules.get("IPython")
    kernel = shell and shell.get_ipython()
    return bool(kernel) and hasattr(kernel, "kernel")


def show(report: Report) -> None:
    if _notebook():
        from IPython.display import HTML, display

        # A frame of its own: the page's styles and scripts reach nothing else.
        page = html.escape(report.html(), quote=True)
        display(HTML(f'<iframe sandbox="allow-scripts" srcdoc="{page}" '
                     'style="width:100%;height:45em;border:0"></iframe>'))
    else:
        print(report.text(color="auto"))


def plot(report: Report, what: str, ax: Axes | None) -> Axes:
    if what not in (*_BARS, "roofline"):
        raise ValueError(f"no plot '{what}': there are {', '.join(_BARS)} and roofline")
    import matplotlib.pyplot as plt

    if ax is None:
        ax = plt.subplots(layout="constrained")[1]
    (_roofline if what == "roofline" else _bars)(report, what, ax)
    ax.set_title(f"{what} (simulated)" if report.simulated else what)
    return ax


def _bars(report: Report, what: str, ax: Axes) -> None:
    times = {"layers": "coalesce(forward_gpu_time_ns, 0) + coalesce(backward_gpu_time_ns, 0)"}
    query = (f'SELECT "{_BARS[what]}", {times.get(what, "gpu_time_ns")} AS ns FROM "{what}"'
             " WHERE ns > 0 ORDER BY ns DESC LIMIT 12")
    rows = report._database.execute(query).fetchall()[::-1]
    ax.barh([_short(name) for name, _ in rows], [ns / 1e6 for _, ns in rows])
    ax.set_xlabel("GPU time, ms")


def _roofline(report: Report, what: str, ax: Axes) -> None:
    points = report._database.execute(
        "SELECT flop_per_byte, flop_per_s FROM roofline WHERE flop_per_byte > 0 AND flop_per_s > 0")
    ax.loglog(*(list(zip(*points)) or ((), ())), "o")
    roofs = report._database.execute("SELECT roof, flop_per_s, byte_per_s FROM roofs").fetchall()
    peaks = {roof: rate for roof, rate, _ in roofs if rate}
    low, high = ax.get_xlim()
    for bandwidth in {rate for _, _, rate in roofs if rate}:
        for name, peak in peaks.items():
            ridge = peak / bandwidth
            ax.loglog([low, ridge, max(high, 10 * ridge)], [low * bandwidth, peak, peak],
                      label=name)
    ax.set_xlabel("arithmetic intensity, FLOP/B")
    ax.set_ylabel("FLOP/s")
    ax.legend()
