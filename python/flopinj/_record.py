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
import shutil
import tempfile
from functools import cached_property
from pathlib import Path

from flopinj import _control, _marks
from flopinj._programs import LIBRARY, TREE, Error, environment, say, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from flopinj._programs import Option
    from flopinj._report import Report

_PLAN_WAIT_MS = 10_000
#: Options of `flopinj run` that are for programs that it starts.
_OF_PROGRAMS = ("dormant", "no_control", "preload", "report", "summary", "torch")

#: By process: what goes on in a process that has forked is nothing of its child's.
_open: dict[int, Recording] = {}
_folders: dict[int, str] = {}


class Recording:
    """What `record()` gives: recorded is what happens inside of its `with`."""

    def __init__(self, output: str | os.PathLike[str] | None, settings: dict[str, Option]) -> None:
        for name in _OF_PROGRAMS:
            if settings.get(name):
                raise Error(f"{name}: only `flopinj run` can do this, for the program that it "
                            "starts", 2)
        self._output = output
        self._settings = settings
        self._process: int | None = None  # in which it has begun
        self._before: dict[str, str | None] = {}
        self._traces: list[Path] | None = None
        self._failed: Error | None = None

    def __call__(self, function: object) -> NoReturn:
        _refuse_decorator(function)

    def __getattr__(self, name: str) -> NoReturn:
        said = ("the work to record goes inside of it: with flopinj.record() as run:"
                if name in ("start", "stop", "begin", "end", "enter")
                else "it has traces and report")
        raise AttributeError(f"a recording has no '{name}': {said}")

    def __del__(self) -> None:
        if self.__dict__.get("_process", 0) is None:
            warn("flopinj.record() alone records nothing: the work to record goes inside of it: "
                 "with flopinj.record() as run:")

    def __enter__(self) -> Recording:
        if self._process is not None:
            raise Error(f"{self} has begun before: flopinj.record() begins another", 2)
        self._process = os.getpid()
        try:
            # One step, so that of two threads one has it.
            other = _open.setdefault(self._process, self)
            if other is not self:
                raise Error(f"{other} has not ended: a process has one recording at a time", 1)
            self._begin()
        except BaseException as error:
            self._restore()
            if isinstance(error, Error) and error.exit_code == 2:  # the call itself is wrong
                raise
            if not isinstance(error, Exception):
                raise
            self._fail(error)
            say(f"{self._failed}; the program runs unprofiled")
        return self

    def _begin(self) -> None:
        if self._settings.get("simulate"):
            _simulate()
        begun = _control.driver() is not None
        if (not begun and os.environ.get("CUDA_INJECTION64_PATH")
                and os.environ.get("FLOPINJ_DORMANT") != "1"):
            raise Error("this process is profiled from its start (CUDA_INJECTION64_PATH): start it "
                        "by `flopinj run --dormant`, or without a profiler", 1)
        output = self._output or Path(tempfile.mkdtemp(dir=_folder()), "record-%p.pb")
        folder = Path(output).parent if isinstance(output, (str, os.PathLike)) else None
        if folder is None:
            raise Error(f"output={output!r}: it takes the name of a file, such as run.pb", 2)
        if "%" not in str(folder) and not folder.is_dir():
            raise Error(f"nothing was recorded: there is no folder {folder}; create it first", 1)
        wait = {"plan_wait_ms": os.environ.get("FLOPINJ_PLAN_WAIT_MS", _PLAN_WAIT_MS)}
        if self._settings.get("simulate"):
            wait = {}  # it is longer there
        variables = environment(**{**wait, **self._settings, "output": output, "quiet": True})
        variables["FLOPINJ_DORMANT"] = "0"
        self._name = variables["FLOPINJ_OUTPUT"]
        self._there = self._files()
        # Variables that have the library loaded come last, and go first.
        for name in sorted(variables, key=lambda name: name.endswith("_INJECTION64_PATH")):
            self._before[name] = os.environ.get(name)
            os.environ[name] = variables[name]
        _marks._nvtx.cache_clear()  # of ranges that were made before, where nothing was injected
        self._recordings = _recordings()
        if begun:
            _start()

    def __exit__(self, kind: object, *_: object) -> None:
        if os.getpid() != self._process:  # a forked child: the recording is its parent's
            self._restore()
            return
        if _open.get(self._process) is not self:
            return
        try:
            self._end()
        except Exception as error:
            self._fail(error)
            if kind is None:  # else the program has an error of its own to say
                say(str(self._failed))
        finally:
            self._restore()

    def _fail(self, error: Exception) -> None:
        """The program goes on, and who asks for the report is told why there is none."""
        self._failed = (error if isinstance(error, Error)
                        else Error(f"nothing was recorded: {error!r}", 1))

    def _end(self) -> None:
        own = {self._own()} if _control.driver() is not None else set()
        traces = own | (self._files() - self._there)
        if not traces:
            raise Error("nothing was recorded: " + self._without_traces(), 1)
        self._traces = sorted(traces)

    def _without_traces(self) -> str:
        """Why there is none, and what to do."""
        if not self._settings.get("simulate"):
            try:
                ctypes.CDLL("libcuda.so.1")
            except OSError:
                return ("no NVIDIA driver on this machine (libcuda.so.1 not found). Without a GPU: "
                        "flopinj.record(simulate=True)")
        return ("neither this process nor one that it started has used CUDA: what is to be "
                "recorded goes inside the `with`")

    def _own(self) -> Path:
        """The trace of this process, which has ended."""
        if _recordings() == self._recordings:
            _start()  # which says why it could not begin
            _control.end()
            raise Error("nothing was recorded: a line on stderr says why", 1)
        if driver := _control.driver():
            driver.cuCtxSynchronize()  # what was launched inside has its time
        trace = _control.end()
        assert trace is not None  # the library is here
        return Path(trace)

    def _files(self) -> set[Path]:
        """With names such as those of this recording's traces, which processes that are started
        inside of it write too."""
        stem, suffix = os.path.splitext(self._name)
        parts = map(glob.escape, re.split(r"(?:%q\{[^}]*\}|%.)+", stem + "%p"))
        return set(map(Path, glob.glob("*".join(parts) + glob.escape(suffix))))

    def _restore(self) -> None:
        for name, value in reversed(self._before.items()):
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self._before = {}
        if _open.get(os.getpid()) is self:  # the next one may change the environment
            del _open[os.getpid()]

    @property
    def traces(self) -> list[Path]:
        """Files for `report`: one of this process, and one of each that it started inside of the
        recording. Without a name of your own they go as this process ends. Raises Error where
        there is none, with the reason."""
        if self._failed is not None:
            raise Error(str(self._failed), self._failed.exit_code)
        if self._traces is None:
            raise Error("the recording has no trace before its `with` has ended", 1)
        return self._traces

    @cached_property
    def report(self) -> Report:
        """Of the traces. Raises Error where there is none, with the reason."""
        from flopinj._report import reduce

        return reduce(self.traces)

    def __repr__(self) -> str:
        traces = ", ".join(map(str, self._traces or ())) or str(self._failed or "no trace")
        going_on = _open.get(os.getpid()) is self
        return f"<flopinj.Recording: {'going on' if going_on else traces}>"


def record(output: str | os.PathLike[str] | None = None, **settings: Option) -> Recording:
    """Records this process, and those that it starts, from the beginning of `with` to its end,
    whether CUDA begins inside or has begun before. Keywords are options of `flopinj run`. The first
    launch waits until counters can be read, 10 s at most, unless `plan_wait_ms` says otherwise. No
    CUDA graph may be under capture at the beginning or the end.

    An option that is wrong raises Error at the beginning. Where nothing can be recorded, a line on
    stderr says so, the program goes on, and `report` raises Error with the reason.

    >>> with record() as run:
    ...     pass
    >>> run.report  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    flopinj._programs.Error: nothing was recorded: ...
    """
    if callable(output):
        _refuse_decorator(output)
    return Recording(output, settings)


def _refuse_decorator(function: object) -> NoReturn:
    name = getattr(function, "__name__", "train")
    raise TypeError("flopinj.record is no decorator; the call goes inside of it: "
                    f"with flopinj.record() as run: {name}()")


def _start() -> None:
    """Of a process in which CUDA has begun."""
    if _control.injected() is None:
        ctypes.CDLL(str(LIBRARY))
    _control.ask("start_from_inside")


def _recordings() -> str:
    """How many this process has begun."""
    return (_control.ask("status") or {}).get("recordings", "0")


def _simulate() -> None:
    """The simulated GPU in the place of CUDA's driver, for all who load that later."""
    simulated = TREE / "lib" / "flopinj" / "simgpu" / "libcuda.so.1"
    driver = _control.loaded("libcuda.so.1") or ctypes.CDLL(str(simulated))
    if not hasattr(driver, "simgpu_version"):
        raise Error("simulate: this process has loaded NVIDIA's driver already", 1)


def _folder() -> str:
    """Of this process's traces without a name of their own."""
    process = os.getpid()
    if process not in _folders:
        _folders[process] = tempfile.mkdtemp(prefix="flopinj-")
        atexit.register(_remove_folder, process)
    return _folders[process]


def _remove_folder(process: int) -> None:
    if os.getpid() != process:  # a forked child
        return
    if process in _open:  # its `with` is never left
        _open[process].__exit__(SystemExit)
    shutil.rmtree(_folders.pop(process), ignore_errors=True)


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
        except Error as error:
            raise UsageError(str(error)) from None
        shell.push(dict.fromkeys(names, run))
        if not done.success or run._failed is not None:  # which a line has said
            return None
        try:
            return run.report
        except Exception as error:
            say(str(error))
            return None

    shell.register_magic_function(magic, "cell", "flopinj")
