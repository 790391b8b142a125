"""Recordings of this process, begun and ended by the program itself.

They are asked for by flopinj_request() of the library in it: injector/requests.h describes it.
"""

from __future__ import annotations

import ctypes
import json
import os

from flopinj._programs import Error, say, warn

_MOST_ANSWER_BYTES = 65536
_NOT_INITIALIZED = 3  # CUDA_ERROR_NOT_INITIALIZED


def loaded(library: str) -> ctypes.CDLL | None:
    """A library by its own name, where it is in this process."""
    try:
        return ctypes.CDLL(library, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return None


def injected() -> ctypes.CDLL | None:
    """The library that records, wherever its file is."""
    return loaded("libflopinj.so")


def driver() -> ctypes.CDLL | None:
    """CUDA's, once it has begun in this process."""
    cuda = loaded("libcuda.so.1")
    # A call that changes nothing, also while a graph is under capture.
    if cuda is None or cuda.cuDeviceGetCount(ctypes.byref(ctypes.c_int())) == _NOT_INITIALIZED:
        return None
    return cuda


def ask(*request: str) -> dict[str, str] | None:
    """The answer's keys and values; None where the library is not in this process. Raises Error
    where it refuses. Other threads of Python go on meanwhile."""
    if any("\n" in line or "\0" in line for line in request):
        raise Error("a setting has a line break in it", 2)
    library = injected()
    if library is None:
        return None
    if not hasattr(library, "flopinj_request"):
        raise Error("libflopinj.so in this process and the Python package are of different "
                    "versions of flopinj: install the package that belongs to the library", 1)
    ask_library = library.flopinj_request
    ask_library.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t)
    ask_library.restype = ctypes.c_size_t
    answer = ctypes.create_string_buffer(_MOST_ANSWER_BYTES)
    ask_library(os.fsencode("\n".join(request)), answer, _MOST_ANSWER_BYTES)
    first, *lines = os.fsdecode(answer.value).removesuffix("\n").split("\n")
    if first != "ok":
        raise Error(first.partition(" ")[2], 1)
    return {key: value for key, _, value in (line.partition(" ") for line in lines)}


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


def _hear(what: str, remedy: str) -> None:
    """Warns where nothing is here that could do it: once for a place, as warnings are. A program
    whose recording was switched off is left in peace."""
    if (injected() is not None or os.environ.get("FLOPINJ_MODE") == "off"
            or os.environ.get("FLOPINJ_QUIET") == "1"):
        return
    if os.environ.get("CUDA_INJECTION64_PATH"):
        remedy = "CUDA, which brings it, has not begun; call it behind the first use of the GPU"
    warn(f"flopinj.{what}() does nothing, as no profiler is in this process: {remedy}")


def start(output: str | None = None, **settings: object) -> str | None:
    """Begins a recording of this process, which was started by `flopinj run --dormant`. Keywords
    are options of `flopinj attach`. Returns the trace's name, or None where nothing was injected
    and where the recording cannot be: then a line on stderr says why.

    >>> start("now.pb", duration="30s", level="tally") is None  # nothing is injected here
    True
    """
    _hear("start", "begin the program by flopinj run --dormant, or use with flopinj.record():")
    try:
        return begin(output, settings)
    except Error as error:
        say(str(error))
        return None


def stop() -> str | None:
    """Ends the recording, unless it has ended itself. Returns the trace's name; None where nothing
    was recorded."""
    _hear("stop", "flopinj.start() begins a recording, in a program begun by flopinj run --dormant")
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
