"""Recordings of this process from inside: `with flopinj.record() as run:`, and `%%flopinj` in
notebooks.

Where CUDA has not begun in the process, the variables of `flopinj run` are set, and the driver
loads the library. Where it has, the process loads the library itself and asks for a recording.
"""

from __future__ import annotations

import atexit
import ctypes
import glob
import os
import re
import shlex
import tempfile
from functools import cached_property, lru_cache
from pathlib import Path

from flopinj import _control, _marks
from flopinj._programs import LIBRARY, TREE, Error, environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from flopinj._programs import Option
    from flopinj._report import Report

_NOT_INITIALIZED = 3  # CUDA_ERROR_NOT_INITIALIZED
_PLAN_WAIT_MS = 10_000
#: Options of `flopinj run` that are for programs that it starts.
_OF_PROGRAMS = ("dormant", "no_control", "preload", "report", "summary", "torch")

_open: Recording | None = None


class Recording:
    """What `record()` gives: recorded is what happens inside of its `with`."""

    def __init__(self, output: str | os.PathLike[str] | None, settings: dict[str, Option]) -> None:
        for name in _OF_PROGRAMS:
            if settings.get(name):
                raise Error(f"{name}: only `flopinj run` can do this, for the program that it "
                            "starts", 2)
        self._output = output
        self._settings = settings
        self._traces: list[Path] | None = None

    def __enter__(self) -> Recording:
        global _open
        if _open is not None:
            raise Error(f"{_open} has not ended: a process has one recording at a time", 1)
        if self._traces is not None:
            raise Error(f"{self} has ended: flopinj.record() begins another", 1)
        if self._settings.get("simulate"):
            _simulate()
        begun = _driver() is not None
        if (not begun and os.environ.get("CUDA_INJECTION64_PATH")
                and os.environ.get("FLOPINJ_DORMANT") != "1"):
            raise Error("this process is profiled from its start (CUDA_INJECTION64_PATH): start it "
                        "by `flopinj run --dormant`, or without a profiler", 1)
        output = self._output or Path(tempfile.mkdtemp(dir=_folder()), "record-%p.pb")
        wait = os.environ.get("FLOPINJ_PLAN_WAIT_MS", _PLAN_WAIT_MS)
        variables = environment(**{"plan_wait_ms": wait, **self._settings, "output": output,
                                   "quiet": True})
        variables["FLOPINJ_DORMANT"] = "0"
        self._process = os.getpid()
        self._name = variables["FLOPINJ_OUTPUT"]
        self._there = self._files()
        self._before = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)
        _marks._nvtx.cache_clear()  # of ranges that were made before, where nothing was injected
        try:
            self._recordings = _recordings()
            if begun:
                _start()
        except BaseException:
            self._restore()
            raise
        _open = self
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        global _open
        _open = None
        if os.getpid() != self._process:  # a forked child: the recording is its parent's
            return
        try:
            self._end()
        except Error:
            if kind is None:  # else it would hide the program's own error
                raise
        finally:
            self._restore()

    def _end(self) -> None:
        own = {self._own()} if _driver() is not None else set()
        traces = own | (self._files() - self._there)
        if not traces:
            raise Error("nothing was recorded: neither this process nor one that it started has "
                        "used CUDA", 1)
        self._traces = sorted(traces)

    def _own(self) -> Path:
        """The trace of this process, which has ended."""
        if _recordings() == self._recordings:
            _start()  # which says why it could not begin
            _control.stop()
            raise Error("nothing was recorded: a line on stderr says why", 1)
        if driver := _driver():
            driver.cuCtxSynchronize()  # what was launched inside has its time
        try:
            return Path(str(_control.stop()))
        except Error:
            status = _control.status() or {}
            if status["state"] != "dormant":
                raise
            return Path(str(status["output"]))  # it has ended itself, as by launch_count=

    def _files(self) -> set[Path]:
        """With names such as those of this recording's traces, which processes that are started
        inside of it write too."""
        stem, suffix = os.path.splitext(self._name)
        parts = map(glob.escape, re.split(r"(?:%q\{[^}]*\}|%.)+", stem + "%p"))
        return set(map(Path, glob.glob("*".join(parts) + glob.escape(suffix))))

    def _restore(self) -> None:
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    @property
    def traces(self) -> list[Path]:
        """Files for flopreduce: one of this process, and one of each that it started inside of the
        recording. Without a name of your own they go as this process ends."""
        if self._traces is None:
            raise Error("the recording has no trace before its `with` has ended", 1)
        return self._traces

    @cached_property
    def report(self) -> Report:
        from flopinj._report import reduce

        return reduce(self.traces)

    def __repr__(self) -> str:
        traces = ", ".join(map(str, self._traces or ()))
        return f"<flopinj.Recording: {traces or ('going on' if _open is self else 'no trace')}>"


def record(output: str | os.PathLike[str] | None = None, **settings: Option) -> Recording:
    """Records this process, and those that it starts, from the beginning of `with` to its end,
    whether CUDA begins inside or has begun before. Keywords are options of `flopinj run`. The first
    launch waits until counters can be read, 10 s at most, unless `plan_wait_ms` says otherwise. No
    CUDA graph may be under capture at the beginning or the end.

    >>> with record():  # doctest: +ELLIPSIS
    ...     pass
    Traceback (most recent call last):
    flopinj._programs.Error: nothing was recorded: ...
    """
    return Recording(output, settings)


def _start() -> None:
    """Of a process in which CUDA has begun."""
    if _control.status() is None:
        ctypes.CDLL(str(LIBRARY)).flopinj_listen()
    if _control._ask("start_from_inside") is None:
        raise Error("this process cannot be recorded: it was started with FLOPINJ_MODE=off or "
                    "--no-control, or its parent is recorded", 1)


def _recordings() -> object:
    status = _control.status()
    return status["recordings"] if status else 0


def _loaded_driver() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return None


def _driver() -> ctypes.CDLL | None:
    """CUDA's, once it has begun in this process."""
    driver = _loaded_driver()
    if driver is None:
        return None
    begun = driver.cuDeviceGetCount(ctypes.byref(ctypes.c_int())) != _NOT_INITIALIZED
    return driver if begun else None


def _simulate() -> None:
    """The simulated GPU in the place of CUDA's driver, for all who load that later."""
    simulated = TREE / "lib" / "flopinj" / "simgpu" / "libcuda.so.1"
    driver = _loaded_driver() or ctypes.CDLL(str(simulated))
    if not hasattr(driver, "simgpu_version"):
        raise Error("simulate: this process has loaded NVIDIA's driver already", 1)


@lru_cache(maxsize=None)
def _folder() -> str:
    """Of traces without a name of their own."""
    folder = tempfile.TemporaryDirectory(prefix="flopinj-")
    atexit.register(folder.cleanup)
    return folder.name


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext flopinj` makes `%%flopinj`."""

    def magic(line: str, cell: str) -> Report | None:
        """%%flopinj [VARIABLE] [--OPTION=VALUE ...]: records what the cell does, and shows its
        report. VARIABLE becomes the recording. Options are those of `flopinj run`."""
        from IPython.core.error import UsageError

        words = shlex.split(line)
        given = [word[2:].partition("=") for word in words if word.startswith("--")]
        options: dict[str, Any] = {key.replace("-", "_"): value if equals else True
                                   for key, equals, value in given}
        names = [word for word in words if not word.startswith("--")]
        if len(names) > 1 or not all(name.isidentifier() for name in names):
            raise UsageError("%%flopinj [VARIABLE] [--OPTION=VALUE ...]")
        try:
            with record(**options) as run:
                done = shell.run_cell(cell)
            shell.push(dict.fromkeys(names, run))
            return run.report if done.success else None
        except Error as error:
            raise UsageError(str(error)) from None

    shell.register_magic_function(magic, "cell", "flopinj")
