"""Reports for the eye: flopreduce's page in notebooks, plots with matplotlib."""

from __future__ import annotations

import html
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from flopinj._report import Report

_WIDTH = 80  # of names
#: What one plot shows: the table, and the column that names its rows.
_BARS = {"kernels": "kernel", "phases": "phase", "ranges": "range", "layers": "layer"}


def _short(name: str) -> str:
    return name if len(name) <= _WIDTH else name[: _WIDTH - 1] + "…"


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
