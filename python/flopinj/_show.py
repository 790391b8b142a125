"""Reports for the eye: the page in notebooks, plots with matplotlib."""

from __future__ import annotations

import html
import sys
import textwrap

from flopinj import _screen
from flopinj._programs import needed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Callable

    from matplotlib.axes import Axes

    from flopinj._report import Comparison, Report, _Output

_WIDTH = 36  # of names
_TITLE = 56  # of a line of a title
_MOST_BARS, _MOST_NAMES = 12, 5
_NAME_POINTS = 7  # size of names in a plot


def _short(name: str) -> str:
    """Cut in the middle: what tells names apart is often at their end."""
    tail = _WIDTH // 2
    return name if len(name) <= _WIDTH else f"{name[:_WIDTH - tail - 1]}…{name[-tail:]}"


def _notebook() -> bool:
    shell = sys.modules.get("IPython")
    kernel = shell and shell.get_ipython()
    return bool(kernel) and hasattr(kernel, "kernel")


def show(report: _Output) -> None:
    if _notebook():
        from IPython.display import HTML, display

        # A frame of its own: the page's styles and scripts reach nothing else.
        page = html.escape(report.html(), quote=True)
        display(HTML(f'<iframe sandbox="allow-scripts" srcdoc="{page}" '
                     'style="width:100%;height:45em;border:0"></iframe>'))
    else:
        print(report.text(color="auto"))


def plot(report: Report, what: str, ax: Axes | None) -> Axes:
    _check(what, PLOTS)
    ax = _axes(ax)
    PLOTS[what](report, ax, what)
    return _titled(ax, ax.get_title() or what, report.simulated)


def plot_both(compared: Comparison, what: str, ax: Axes | None) -> Axes:
    """Bars of A and of B beside each other, the rows with the longest of them."""
    times = "step_{}_ns" if what == "lost" else "gpu_time_{}_ns"
    _check(what, BOTH)
    ax = _axes(ax)
    a, b = times.format("a"), times.format("b")
    only = "parent IS NULL AND " if what == "lost" else ""
    rows = _rows(compared, f"SELECT name, {a}, {b} FROM compared_{what} WHERE {only}"
                           f"max(coalesce({a}, 0), coalesce({b}, 0)) > 0"
                           f" ORDER BY max(coalesce({a}, 0), coalesce({b}, 0)) DESC"
                           f" LIMIT {_MOST_BARS}")[::-1]
    height = 0.4
    for number, side in enumerate("AB", 1):
        ax.barh([place + (1.5 - number) * height for place in range(len(rows))],
                [(row[number] or 0) / 1e6 for row in rows], height, label=side,
                color=_screen.SIDES[side])
    ax.set_yticks(range(len(rows)), [_short(row[0]) for row in rows])
    ax.set_xlabel("time of a step, ms" if what == "lost" else "GPU time, ms")
    ax.set_ylabel("where it went" if what == "lost" else what.removesuffix("s"))
    ax.legend()
    if not rows:
        ax.text(0.5, 0.5, "not known of both", ha="center", va="center", transform=ax.transAxes)
    return _titled(ax, f"{what}, A and B", compared["comparison"][0]["simulated"])


def _check(what: str, known: Iterable[str]) -> None:
    if what not in known:
        raise ValueError(f"no plot '{what}': there are {', '.join(known)}")


def _axes(ax: Axes | None) -> Axes:
    plt = needed("matplotlib.pyplot")
    return ax if ax is not None else plt.subplots(layout="constrained")[1]


def _titled(ax: Axes, title: str, simulated: Any) -> Axes:
    ax.set_title(textwrap.fill(title + (" (simulated)" if simulated else ""), _TITLE), fontsize=11)
    return ax


def _rows(report: _Output, query: str) -> list[tuple[Any, ...]]:
    return report._database.execute(query).fetchall()


def _words(column: str) -> str:
    """`forward_gpu_time_ns` as a legend has it."""
    return column.removesuffix("_ns").replace("_", " ").replace("gpu", "GPU")


def _bars(report: Report, ax: Axes, table: str, times: tuple[str, ...] = ("gpu_time_ns",)) -> None:
    """Bars of GPU time, the longest rows of a table; of several columns one behind another."""
    name = table.removesuffix("s")
    total = " + ".join(f"coalesce({column}, 0)" for column in times)
    rows = _rows(report, f'SELECT "{name}", {", ".join(times)} FROM "{table}" WHERE {total} > 0'
                         f" ORDER BY {total} DESC LIMIT {_MOST_BARS}")[::-1]
    left, places = [0.0] * len(rows), range(len(rows))
    for number, column in enumerate(times, 1):
        ms = [(row[number] or 0) / 1e6 for row in rows]
        phases = [row[0] if table == "phases" else column.split("_")[0] for row in rows]
        ax.barh(places, ms, left=left, label=_words(column), color=[*map(_screen.color, phases)])
        left = [before + more for before, more in zip(left, ms)]
    ax.set_yticks(places, [_short(row[0]) for row in rows])
    ax.set_xlabel("GPU time, ms")
    ax.set_ylabel(name)
    if len(times) > 1:
        ax.legend()


def _layers(report: Report, ax: Axes, table: str) -> None:
    _bars(report, ax, table, ("forward_gpu_time_ns", "backward_gpu_time_ns"))


def _steps(report: Report, ax: Axes, _: str) -> None:
    for column, phase in (("wall_ns", ""), ("gpu_time_ns", "forward")):
        rows = _rows(report, f"SELECT number, {column} / 1e6 FROM step_list"
                             f" WHERE {column} IS NOT NULL")
        ax.plot(*(list(zip(*rows)) or ((), ())), ".", label=_words(column),
                color=_screen.color(phase))
    ax.set_ylim(bottom=0)
    ax.set_xlabel("step")
    ax.set_ylabel("time of a step, ms")
    ax.legend()


def _waterfall(report: Report, ax: Axes, _: str) -> None:
    bars = _screen.falls(report._json)
    drawn = ax.barh([bar["words"] for bar in bars],
                    [100 * (bar["begin"] - bar["end"]) for bar in bars],
                    left=[100 * (1 - bar["begin"]) for bar in bars],
                    color=[bar["color"] for bar in bars])
    ax.bar_label(drawn, [bar["text"] for bar in bars], padding=3)
    ax.invert_yaxis()
    ax.set_xlim(0, 112)  # room for the last bar's label
    ax.set_xlabel("share of device time, %")
    ax.set_title(_screen.title(report._json))
    for line in _screen.words(report._json):  # why there are no bars
        ax.text(50, 0, line, ha="center", va="center")


def _roofline(report: Report, ax: Axes, _: str) -> None:
    points = _rows(report, "SELECT flop_per_byte, flop_per_s, kernel FROM roofline"
                           " WHERE flop_per_byte > 0 AND flop_per_s > 0 ORDER BY gpu_time_ns DESC")
    ax.loglog([x for x, _, _ in points], [y for _, y, _ in points], "o", alpha=0.75,
              color=_screen.color("forward"))
    roofs = _rows(report, "SELECT roof, flop_per_s, byte_per_s FROM roofs")
    peaks = {roof: rate for roof, rate, _ in roofs if rate}
    bandwidths = {rate for _, _, rate in roofs if rate}
    low, high = ax.get_xlim()
    high = max([high, *(10 * peak / rate for peak in peaks.values() for rate in bandwidths)])
    for bandwidth in bandwidths:
        for (name, peak), color in zip(peaks.items(), _screen.FREE * len(peaks)):
            ax.loglog([low, peak / bandwidth, high], [low * bandwidth, peak, peak], label=name,
                      color=color)
    ax.set_xlabel("arithmetic intensity, FLOP/B")
    ax.set_ylabel("FLOP/s")
    if peaks:
        ax.legend(loc="lower right")
    _names(ax, points[:_MOST_NAMES])


def _names(ax: Axes, points: list[tuple[Any, ...]]) -> None:
    """Beside their points, where no other name is."""
    ax.figure.canvas.figure.draw_without_rendering()  # sizes are known behind the layout
    inside, pixel = ax.get_window_extent(), ax.figure.dpi / 72
    taken: list[tuple[float, float, float, float]] = []
    for x, y, kernel in points:
        name = _short(kernel)
        width, height = 0.6 * _NAME_POINTS * len(name) * pixel, 1.4 * _NAME_POINTS * pixel
        at, up = ax.transData.transform((x, y))
        for side, dy in ((1, -12), (-1, -12), (1, 5), (-1, 5), (1, -22), (-1, 15), (1, 15)):
            left = at + 5 * pixel if side > 0 else at - 5 * pixel - width
            box = left, up + dy * pixel, left + width, up + dy * pixel + height
            if (box[0] < inside.x0 or box[2] > inside.x1 or box[1] < inside.y0
                    or any(box[0] < other[2] and other[0] < box[2] and box[1] < other[3]
                           and other[1] < box[3] for other in taken)):
                continue
            taken.append(box)
            ax.annotate(name, (x, y), xytext=(5 * side, dy), textcoords="offset points",
                        fontsize=_NAME_POINTS, ha="left" if side > 0 else "right")
            break


#: What plot() draws of two recordings.
BOTH = ("kernels", "phases", "ranges", "stacks", "lost")
#: What plot() draws.
PLOTS: dict[str, Callable[[Report, Axes, str], None]] = {
    "waterfall": _waterfall, "steps": _steps, "layers": _layers, "phases": _bars,
    "kernels": _bars, "ranges": _bars, "roofline": _roofline}
