"""NVTX ranges around parts of a program, by NVTX's own header (python/nvtx). Where no tool is
injected they do nothing."""

from __future__ import annotations

import functools
import operator
import os

from flopinj._programs import TREE, say, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, TypeVar, overload

    Function = TypeVar("Function", bound=Callable[..., Any])
else:

    def overload(function):  # typing takes long to import
        return function


@functools.lru_cache(maxsize=None)
def _nvtx() -> tuple[Callable[[bytes], int], Callable[[], int], Callable[[bytes, int], None],
                     Callable[[bytes], int], Callable[[int], None]]:
    """Push, pop, a number of the range that is open; start and end of a range of the process."""
    nothing = ((lambda name: 0), (lambda: 0), (lambda name, number: None), (lambda name: 0),
               (lambda range: None))
    if not os.environ.get("NVTX_INJECTION64_PATH"):
        return nothing
    import ctypes

    try:
        library = ctypes.PyDLL(str(TREE / "lib" / "flopinj" / "libflopinj_nvtx.so"))
    except OSError as error:
        say(f"the program's ranges are not seen: {error}")
        return nothing
    push, pop = library.flopinj_nvtx_push, library.flopinj_nvtx_pop
    push.argtypes = [ctypes.c_char_p]
    number = library.flopinj_nvtx_number
    number.argtypes, number.restype = [ctypes.c_char_p, ctypes.c_uint64], None
    start, end = library.flopinj_nvtx_start, library.flopinj_nvtx_end
    start.argtypes, start.restype = [ctypes.c_char_p], ctypes.c_uint64
    end.argtypes, end.restype = [ctypes.c_uint64], None
    return push, pop, number, start, end


def _whole(name: str, number: Any) -> tuple[bytes, int]:
    value = operator.index(number)
    if not 0 <= value < 2**64:
        raise ValueError(f"{name}={number}: a range's numbers are from 0 to 2**64 - 1")
    return name.encode(), value


class Range:
    """What range() makes of a name."""

    __slots__ = ("_name", "_numbers")

    def __init__(self, name: str, **numbers: int) -> None:
        if not isinstance(name, str):
            raise TypeError("a range needs a name, as in @flopinj.range(\"layer:attention\")")
        self._name = name.encode(errors="replace")
        self._numbers = [_whole(key, value) for key, value in numbers.items()]

    def __enter__(self) -> None:
        push, _, number, *_ = _nvtx()
        push(self._name)
        for key, value in self._numbers:
            number(key, value)

    def __exit__(self, *_: object) -> None:
        _nvtx()[1]()

    def __repr__(self) -> str:
        numbers = "".join(f" {key.decode()}={value}" for key, value in self._numbers)
        return f"<flopinj.range '{self._name.decode()}'{numbers}>"

    def __call__(self, function: Function) -> Function:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]


@overload
def range(name: str, **numbers: int) -> Range: ...
@overload
def range(name: Function) -> Function: ...
def range(name: Any, **numbers: int) -> Any:  # noqa: A001  as NVTX names it
    """A range of the program, for `with` or as a decorator. Launches inside have its name. Of
    numbers that it is given, the report has the sum, and the FLOP for each of them.

    >>> with range("data", tokens=4096):
    ...     pass
    >>> @range("layer:attention")
    ... def attention(x):
    ...     return x
    >>> attention(1)
    1
    >>> @range  # by the function's own name
    ... def sampling(x):
    ...     return x
    >>> sampling(2)
    2
    """
    if callable(name):
        return Range(getattr(name, "__qualname__", type(name).__name__), **numbers)(name)
    return Range(name, **numbers)


def number(**numbers: int) -> None:
    """Gives numbers to the range that is open."""
    for key, value in numbers.items():
        _nvtx()[2](*_whole(key, value))


def formula(flop: int, name: str = "own") -> Range:
    """A range whose work is so many FLOP by a formula of your own, a multiply-add as two: MFU
    counts these for all that runs inside, whatever operators that calls.

    >>> rows, inner, columns = 64, 128, 256
    >>> with formula(2 * rows * inner * columns, "my_product"):
    ...     pass
    """
    if isinstance(flop, str):
        raise TypeError("a formula needs its FLOP, as in flopinj.formula(2 * rows * inner * "
                        "columns, \"my_product\")")
    return Range("formula::" + name, flop=flop)


@overload
def step(**numbers: int) -> Range: ...
@overload
def step(function: Function) -> Function: ...
def step(function: Any = None, **numbers: int) -> Any:
    """One step of the training loop, for `with`, or as a decorator of the function that makes one.

    >>> for batch in ([1, 2], [3]):
    ...     with step(tokens=len(batch)):
    ...         pass
    >>> @step
    ... def train_one():
    ...     return 3
    >>> train_one()
    3
    """
    one = Range("step", **numbers)
    if function is not None and not callable(function):
        raise TypeError("a step has no name; its numbers have: flopinj.step(tokens=4096)")
    return one if function is None else one(function)


#: Of the rules that come with flopinj.
_PHASES = ("forward", "backward", "recompute", "loss", "optimizer", "communication")


@functools.lru_cache(maxsize=256)
def _check_phase(name: str) -> None:
    """Warns, once for a name, of one that is nearly a phase's.

    >>> _check_phase("evaluation")
    """
    import difflib

    word = name.lower()  # rules know them in any case, and as one word of several
    near = difflib.get_close_matches(word, _PHASES, 1, 0.8) if word.isalpha() else []
    if near and word not in _PHASES:
        warn(f"flopinj.phase('{name}'): flopinj report knows no such phase; "
             f"did you mean '{near[0]}'?")


def phase(name: str, **numbers: int) -> Range:
    """A phase of the step. `flopinj report` knows forward, backward, recompute, loss, optimizer and
    communication; of another name it is told by `reduce(..., phase="evaluation=^evaluation$")`.

    >>> with phase("optimizer"):
    ...     pass
    """
    if name not in _PHASES:
        _check_phase(name)
    return Range(name, **numbers)
