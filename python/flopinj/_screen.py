"""What a notebook shows of a report: the first screen of flopreduce's page, as a piece of HTML with
no script and no style sheet, in the colours of what is around it."""

from __future__ import annotations

import json
import re
from html import escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)
_LOST, _NO_MODEL, _MODEL = "#8a94a6", "#2f6fde", "#2c9c7a"  # bars: no FLOP, others, the model's
_TONES = {"title": "font-weight:600", "warn": "color:#b87800;font-weight:600",
          "bad": "color:#d1242f;font-weight:600", "dim": "opacity:.7"}


def page_data(page: str) -> dict[str, Any]:
    """What the page draws from."""
    found = _DATA.search(page)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def section(data: dict[str, Any], key: str) -> dict[str, Any]:
    return next((one for one in data["sections"] if one["key"] == key), {})


def falls(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The bars of where the peak went, each with its share as people read it and its colour."""
    if "lost" not in data:
        return []
    rows = section(data, "lost")["table"]["rows"]
    shares = {data["texts"][words]: data["texts"][share] for words, share, *_ in rows}

    def color(bar: dict[str, Any]) -> str:
        if bar["key"] == "model":
            return _MODEL
        if data["lost"]["hfu"] is None:  # of time alone
            return _NO_MODEL if bar["key"] == "uncounted" else _LOST
        return _LOST if bar["begin"] > data["lost"]["hfu"] else _NO_MODEL

    return [{**bar, "text": shares.get(bar["words"], ""), "color": color(bar)}
            for bar in data["lost"]["lines"]]


def html(data: dict[str, Any]) -> str:
    screen = [*_lines(data["warnings"]), *_lines(data["program"]),
              '<div style="display:grid;gap:.6em 2em;margin:.8em 0;'
              'grid-template-columns:repeat(auto-fill,minmax(12em,1fr))">',
              *map(_figure, data["figures"]), "</div>"]
    if lost := section(data, "lost"):
        screen += [f"<b>{escape(lost['title'])}</b>", *_lines(lost["above"]),
                   *map(_fall, falls(data))]
    return f'<div style="max-width:60em;line-height:1.4">{"".join(screen)}</div>'


def _lines(lines: Iterable[Iterable[tuple[str, str]]]) -> list[str]:
    return ["<div>" + "".join(f'<span style="{_TONES.get(tone, "")}">{escape(text)}</span>'
                              for text, tone in line) + "</div>" for line in lines]


def _figure(figure: dict[str, Any]) -> str:
    tone = _TONES["warn"] if figure["warn"] else ""
    return (f'<div title="{escape(figure["meaning"])}">'
            f'<div style="opacity:.7">{escape(figure["name"])}</div>'
            f'<div style="font-size:1.5em;font-weight:600">{escape(figure["value"])}</div>'
            f'<div style="font-size:.85em;{tone}">{escape(figure["note"])}</div></div>')


def _fall(bar: dict[str, Any]) -> str:
    left, width = 1 - bar["begin"], bar["begin"] - bar["end"]
    return ('<div style="display:flex;gap:.8em;align-items:center">'
            f'<span style="flex:0 0 13em">{escape(bar["words"])}</span>'
            '<span style="flex:1;background:rgba(128,128,128,.12)"><span style="display:block;'
            f"height:1em;min-width:1px;margin-left:{left:.2%};width:{width:.2%};"
            f'background:{bar["color"]}"></span></span>'
            f'<span style="flex:0 0 5em;text-align:right">{escape(bar["text"])}</span></div>')
