"""What a notebook shows of a report: the first screen, from table `screen`, as a piece of HTML with
no script and no style sheet, in the colours of what is around it."""

from __future__ import annotations

from html import escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The colours of the page, light: of tools/flopreduce/writers/html/page.css.
_PHASES = {"forward": "#2f6fde", "backward": "#d9722b", "optimizer": "#2c9c7a", "loss": "#8a5fd1",
           "recompute": "#c2437e", "communication": "#1d95ab", "data": "#8b8f1f"}
_NEUTRAL = "#7b8797"
_LINES = {"communication": "#8a5fd1", "uncounted": "#aab3c0", "integer": "#c2437e",
          "other": "#d9722b", "matrix": "#d9722b", "recompute": "#2f6fde", "padding": "#2f6fde",
          "other_flop": "#2f6fde", "model": "#2c9c7a"}  # of table lost
FREE = ["#3b4a63", "#b0413e", "#4e7d2d", "#7a5a3a"]  # for what is no phase
SIDES = {"A": "#7b8797", "B": "#2f6fde"}
_TONES = {"title": "font-weight:600", "warn": "color:#b87800;font-weight:600",
          "bad": "color:#d1242f;font-weight:600", "dim": "opacity:.7"}


def color(phase: str) -> str:
    return _PHASES.get(phase, _NEUTRAL)


def falls(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The bars of where the peak went, from 1 down: each with its words, its share as people read
    it and its colour."""
    shares = {row["line"]: _share(row) for row in report["lost"] if row["parent"] is None}
    bars, begin = [], 1.0
    for row in report["screen"]:
        share = row["line"] and shares[row["line"]]
        if not share:
            continue
        end = max(0.0, begin - share)
        bars.append({"words": row["name"], "text": row["text"], "begin": begin, "end": end,
                     "color": _LINES.get(row["line"], _NEUTRAL)})
        begin = end
    return bars


def _share(row: dict[str, Any]) -> float | None:
    """Of a bound what is known of it."""
    for key in ("share", "share_at_least", "share_at_most"):
        if row.get(key) is not None:
            return float(row[key])
    return None


def title(report: dict[str, Any]) -> str:
    """Of where the peak went."""
    return next((row["text"] for row in _part(report, "lost")), "")


def words(report: dict[str, Any]) -> list[str]:
    """What there is to say of it, such as why it is not known."""
    return [row["text"] for row in _part(report, "lost")[1:] if row["line"] is None]


def html(report: dict[str, Any]) -> str:
    screen = [*map(_line, _part(report, "warning")), *map(_line, _part(report, "program")),
              '<div style="display:grid;gap:.6em 2em;margin:.8em 0;'
              'grid-template-columns:repeat(auto-fill,minmax(12em,1fr))">',
              *map(_figure, _part(report, "figure")), "</div>",
              *(_line(row) for row in _part(report, "lost") if row["line"] is None),
              *map(_fall, falls(report))]
    return f'<div style="max-width:60em;line-height:1.4">{"".join(screen)}</div>'


def _part(report: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [row for row in report["screen"] if row["part"] == name]


def _line(row: dict[str, Any]) -> str:
    return f'<div style="{_TONES.get(row["tone"], "")}">{escape(row["text"] or "")}</div>'


def _figure(figure: dict[str, Any]) -> str:
    tone = _TONES["warn"] if figure["tone"] == "warn" else ""
    return (f'<div title="{escape(figure["meaning"] or "")}">'
            f'<div style="opacity:.7">{escape(figure["name"])}</div>'
            f'<div style="font-size:1.5em;font-weight:600">{escape(figure["text"])}</div>'
            f'<div style="font-size:.85em;{tone}">{escape(figure["note"] or "")}</div></div>')


def _fall(bar: dict[str, Any]) -> str:
    left, width = 1 - bar["begin"], bar["begin"] - bar["end"]
    return ('<div style="display:flex;gap:.8em;align-items:center">'
            f'<span style="flex:0 0 13em">{escape(bar["words"])}</span>'
            '<span style="flex:1;background:rgba(128,128,128,.12)"><span style="display:block;'
            f"height:1em;min-width:1px;margin-left:{left:.2%};width:{width:.2%};"
            f'background:{bar["color"]}"></span></span>'
            f'<span style="flex:0 0 5em;text-align:right">{escape(bar["text"])}</span></div>')
