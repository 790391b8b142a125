"""Recordings of this process, begun and ended by the program itself.

They are asked for as `flopinj attach` does, at the socket that the injected library listens on:
common/control_address.h describes it.
"""

from __future__ import annotations

import json
import os
import re
import socket

from flopinj._programs import Error

_PATIENCE_S = 60
_VERSION = 1
_MARK = re.compile(r"/memfd:flopinj-control-(\d+)-(?:([0-9a-f]{16})-([0-9a-f]{32}) \(deleted\)$)?")


def _mark() -> tuple[str, str] | None:
    """The library's address and secret; None where it is not in this process."""
    for number in os.listdir("/proc/self/fd"):
        try:
            mark = _MARK.match(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:
            continue  # closed by now
        if mark and int(mark[1]) != _VERSION:
            raise Error("libflopinj.so in this process and the Python package are of different "
                        "versions of flopinj: install the package that belongs to the library", 1)
        if mark and mark[2]:
            return mark[2], mark[3]
    return None


def _ask(*request: str) -> dict[str, str] | None:
    """The answer's keys and values; None where the library is not in this process."""
    mark = _mark()
    if mark is None:
        return None
    address, secret = mark
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(f"\0flopinj-{address}")
        except ConnectionRefusedError:
            return None
        client.settimeout(_PATIENCE_S)
        client.sendall("".join(line + "\n" for line in (secret, *request, "")).encode())
        text = b"".join(iter(lambda: client.recv(4096), b"")).decode(errors="replace")
    first, *lines = text.splitlines() or ["error nothing was answered"]
    if first != "ok":
        raise Error(first.partition(" ")[2], 1)
    return dict(line.split(" ", 1) for line in lines)


def start(output: str | None = None, **settings: object) -> str | None:
    """Begins a recording of this process, which was started by `flopinj run --dormant`. Keywords
    are options of `flopinj attach`. Returns the trace's name, or None where nothing was injected.

    >>> start("now.pb", duration="30s", level="tally") is None  # nothing is injected here
    True
    """
    given = {"output": output, **settings}
    lines = [f"FLOPINJ_{name.upper()}={int(value) if isinstance(value, bool) else value}"
             for name, value in given.items() if value is not None]
    answer = _ask("start", *lines)
    return answer["output"] if answer else None


def stop() -> str | None:
    """Ends the recording, and returns the trace's name; None where nothing was injected."""
    answer = _ask("stop")
    return answer["output"] if answer else None


def status() -> dict[str, object] | None:
    """How far the recording is, as `flopinj status --json` says it; None where nothing was
    injected."""
    answer = _ask("status")
    return {key: _value(text) for key, text in answer.items()} if answer else None


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text
