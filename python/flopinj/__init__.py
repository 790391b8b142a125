"""flopinj counts the floating-point operations that a training program executes on CUDA GPUs.

Importing it loads nothing else: pandas, Arrow, matplotlib and torch are imported when they are
asked for.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # as typing's, which takes long to import
if TYPE_CHECKING:
    from flopinj._control import start as start, status as status, stop as stop
    from flopinj._marks import formula as formula, phase as phase, range as range, step as step
    from flopinj._programs import LIBRARY as LIBRARY, Error as Error, environment as environment
    from flopinj._record import Recording as Recording, record as record
    from flopinj._report import Comparison as Comparison, Explanation as Explanation
    from flopinj._report import Report as Report, compare as compare, load as load, merge as merge
    from flopinj._report import reduce as reduce

    __version__: str

_HOMES = {
    "_control": ("start", "status", "stop"),
    "_record": ("Recording", "load_ipython_extension", "record"),
    "_marks": ("formula", "phase", "range", "step"),
    "_programs": ("LIBRARY", "Error", "environment"),
    "_report": ("Comparison", "Explanation", "Report", "compare", "load", "merge", "reduce"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605

#: Names that other profilers have, and where their like is here.
_LIKE = {
    **dict.fromkeys(("report", "read", "open", "analyze", "from_file"),
                    "flopinj.load(TRACE) reads a recording"),
    **dict.fromkeys(("profile", "profiler", "Profiler", "Tracker", "trace", "capture"),
                    "with flopinj.record() as run: records what is inside"),
    **dict.fromkeys(("query", "sql"), "flopinj.load(TRACE).sql(SELECT) asks the tables"),
    **dict.fromkeys(("explain", "plot", "tables"), "it is a part of flopinj.load(TRACE)"),
    **dict.fromkeys(("annotate", "mark", "push_range", "range_push"),
                    "with flopinj.range(NAME): names a part of the program"),
    **dict.fromkeys(("lightning", "pytorch_lightning", "callbacks"),
                    "import flopinj.callbacks has callbacks; docs/frameworks.md has Lightning"),
    **dict.fromkeys(("run", "demo", "attach", "detach", "doctor", "top"),
                    "it is a command for a shell: flopinj NAME --help"),
}


def _is_imported() -> bool:
    """Whether the program's line that asks for a name is `from flopinj import NAME`."""
    import dis
    import sys

    frame = sys._getframe(2)
    return frame.f_code.co_code[frame.f_lasti] == dis.opmap["IMPORT_FROM"]


if not TYPE_CHECKING:  # which knows the names from above, and that there are no others

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version

            return version("flopinj")
        home = _HOME_OF.get(name)
        if home is None:
            from flopinj._programs import near

            said = (_LIKE[name].replace("NAME --", f"{name} --") if name in _LIKE
                    else near(name, __all__, f"it has {', '.join(__all__)}"))
            if _is_imported():  # Python would leave the words out
                raise ImportError(f"cannot import name '{name}' from 'flopinj': {said}")
            raise AttributeError(f"module 'flopinj' has no attribute '{name}': {said}")
        value = getattr(importlib.import_module(f"flopinj.{home}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
