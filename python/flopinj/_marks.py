"""NVTX ranges around parts of a program, by NVTX's own header (python/nvtx). Where no tool is
injected they do nothing."""

from __future__ import annotations

import functools
import os

from flopinj._programs import TREE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])


@functools.lru_cache(maxsize=None)
def _nvtx() -> tuple[Callable[[bytes], int], Callable[[], int]]:
    """Push and pop."""
    if not os.environ.get("NVTX_INJECTION64_PATH"):
        return (lambda name: 0), (lambda: 0)
    import ctypes

    library = ctypes.PyDLL(str(TREE / "lib" / "flopinj" / "libflopinj_nvtx.so"))
    push, pop = library.flopinj_nvtx_push, library.flopinj_nvtx_pop
    push.argtypes = [ctypes.c_char_p]
    return push, pop


class range:  # noqa: A001  as NVTX names it
    """A range of the program, for `with` or as a decorator. Launches inside have its name.

    >>> with range("data"):
    ...     pass
    >>> @range("layer:attention")
    ... def attention(x):
    ...     return x
    >>> attention(1)
    1
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name.encode()

    def __enter__(self) -> None:
        _nvtx()[0](self._name)

    def __exit__(self, *_: object) -> None:
        _nvtx()[1]()

    def __call__(self, function: Function) -> Function:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]


def step() -> range:
    """One step of the training loop.

    >>> for batch in ([1], [2]):
    ...     with step():
    ...         pass
    """
    return range("step")


def phase(name: str) -> range:
    """A phase of the step. `flopreduce` knows forward, backward, recompute, loss, optimizer and
    communication; of another name it is told by `reduce(..., phase="evaluation=^evaluation$")`.

    >>> with phase("optimizer"):
    ...     pass
    """
    return range(name)
