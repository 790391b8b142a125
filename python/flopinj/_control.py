"""Recordings of this process, begun and ended by the program itself.

They are asked for as `flopinj attach` does, at the socket that the injected library listens on:
common/control_address.h describes it.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import socket
import time

from flopinj._programs import Error, say

_PATIENCE_S = 60
_LOOK_EVERY_S = 0.002
_VERSION = 1
_NOT_INITIALIZED = 3  # CUDA_ERROR_NOT_INITIALIZED
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


def loaded_driver() -> ctypes.CDLL | None:
    """CUDA's, where this process has loaded it."""
    try:
        return ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return None


def driver() -> ctypes.CDLL | None:
    """CUDA's, once it has begun in this process."""
    loaded = loaded_driver()
    return loaded if loaded is not None and _call(loaded) != _NOT_INITIALIZED else None


def _call(loaded: ctypes.CDLL) -> int:
    """A call that changes nothing, also while a graph is under capture."""
    result: int = loaded.cuDeviceGetCount(ctypes.byref(ctypes.c_int()))
    return result


def ask(*request: str) -> dict[str, str] | None:
    """The answer's keys and values; None where the library is not in this process. Raises Error
    where it refuses, or cannot be asked."""
    if any("\n" in line for line in request):
        raise Error("a setting has a line break in it", 2)
    try:
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
            text = _received(client, loaded_driver() if request[0] == "stop" else None)
    except OSError as error:
        raise Error(f"libflopinj.so in this process cannot be asked: {error}", 1) from None
    first, *lines = text.splitlines() or ["error nothing was answered"]
    if first != "ok":
        raise Error(first.partition(" ")[2], 1)
    return {key: value for key, _, value in (line.partition(" ") for line in lines)}


def _received(client: socket.socket, ending: ctypes.CDLL | None) -> str:
    """What is answered. A recording that ends gives CUPTI back at the end of a call of the
    program's, for which it waits a second; this thread, which waits as well, makes such calls."""
    give_up = time.monotonic() + _PATIENCE_S
    parts: list[bytes] = []
    client.settimeout(_PATIENCE_S if ending is None else _LOOK_EVERY_S)
    while True:
        try:
            part = client.recv(4096)
        except socket.timeout:
            if ending is None or time.monotonic() > give_up:
                raise
            _call(ending)
            continue
        if not part:
            return b"".join(parts).decode(errors="replace")
        parts.append(part)


def begin(output: str | None, settings: dict[str, object]) -> str | None:
    given = {"output": output, **settings}
    lines = [f"FLOPINJ_{name.upper()}={int(value) if isinstance(value, bool) else value}"
             for name, value in given.items() if value is not None]
    answer = ask("start", *lines)
    return answer["output"] if answer else None


def end() -> str | None:
    """The trace's name, also of a recording that has ended itself, as by launch_count=; None where
    there was none."""
    try:
        answer = ask("stop")
    except Error:
        answer = ask("status")
        if answer is None or answer.get("state") != "dormant":
            raise
    return answer.get("output") if answer else None


def start(output: str | None = None, **settings: object) -> str | None:
    """Begins a recording of this process, which was started by `flopinj run --dormant`. Keywords
    are options of `flopinj attach`. Returns the trace's name, or None where nothing was injected
    and where the recording cannot be: then a line on stderr says why.

    >>> start("now.pb", duration="30s", level="tally") is None  # nothing is injected here
    True
    """
    try:
        return begin(output, settings)
    except Error as error:
        say(str(error))
        return None


def stop() -> str | None:
    """Ends the recording, unless it has ended itself. Returns the trace's name; None where nothing
    was recorded."""
    try:
        return end()
    except Error as error:
        say(str(error))
        return None


def status() -> dict[str, object] | None:
    """How far the recording is, as `flopinj status --json` says it; None where nothing was
    injected."""
    try:
        answer = ask("status")
    except Error as error:
        say(str(error))
        return None
    return {key: _value(text) for key, text in answer.items()} if answer else None


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text
