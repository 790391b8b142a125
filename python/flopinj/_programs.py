"""The programs of the installed tree: how they are found, run, and become this process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, Union

    Value = Union[bool, int, float, str, os.PathLike[str]]
    Option = Union[Value, None, Sequence[Value], Mapping[str, Value]]

#: bin, lib and share, as `cmake --install` makes them.
TREE = Path(__file__).parent / "_tree"
#: The library that the CUDA driver loads into a program: CUDA_INJECTION64_PATH names it.
LIBRARY = TREE / "lib" / "libflopinj.so"


class Error(RuntimeError):
    """What a program said when it could not do what it was asked for."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def say(text: str) -> None:
    """A line for people, where stderr takes one: no failure of ours is the program's."""
    try:
        print(f"flopinj: {text}", file=sys.stderr, flush=True)
    except Exception:
        pass


def warn(text: str) -> None:
    """A warning at the line of the program that called this package."""
    import warnings

    level, frame = 1, sys._getframe(0)
    while frame.f_back and str(frame.f_globals.get("__name__")).startswith("flopinj"):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, RuntimeWarning, stacklevel=level)


def install(*extras: str) -> str:
    """How this package is installed. Its name is nobody's at PyPI, where anybody may take it.

    >>> install("fleet", "ray")
    "in a clone of flopinj, pip install '.[fleet,ray]'"
    """
    parts = f"'.[{','.join(extras)}]'" if extras else "."
    return f"in a clone of flopinj, pip install {parts}"


def needed(module: str, instead: str = "") -> Any:
    """A module of a package that only a part of flopinj needs. `instead`: what there is without."""
    import importlib

    package = module.split(".")[0]
    try:
        importlib.import_module(package)
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise ModuleNotFoundError(f"{package} is not installed: pip install {package}{instead}",
                                  name=package) from None


def near(name: str, known: Iterable[str], otherwise: str) -> str:
    """Which of the known names may be meant by an unknown one.

    >>> near("kernls", ["kernels", "phases"], "keys() lists all")
    'near kernels'
    >>> near("x", ["kernels", "phases"], "keys() lists all")
    'keys() lists all'
    """
    import difflib

    known = [one for one in known if not one.startswith("_")]
    if name.lower() in known:
        return f"near {name.lower()}"
    found = difflib.get_close_matches(name.lower(), known, 3)
    return f"near {', '.join(found)}" if found else otherwise


def path(name: str) -> str:
    """Where the program `name` of bin is. Raises FileNotFoundError with a remedy."""
    program = TREE / "bin" / name
    if not program.is_file():
        raise FileNotFoundError(
            f"{program} is missing, as the sources of the package have no programs: {install()}"
        )
    return str(program)


def options(given: dict[str, Option]) -> list[str]:
    """Options of a command line from keywords.

    >>> options({"batch_size": 32, "phase": ["a=x", "b=y"], "force": True, "rules": None})
    ['--batch-size=32', '--phase=a=x', '--phase=b=y', '--force']
    >>> options({"peak": {"bf16": "989T"}})
    ['--peak=bf16=989T']
    """
    words = []
    for name, value in given.items():
        option = "--" + name.replace("_", "-")
        if isinstance(value, dict):  # peak={"bf16": "989T"}
            value = [f"{key}={one}" for key, one in value.items()]
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                words.append(option)
            elif one is not None and one is not False:
                words.append(f"{option}={os.fspath(one) if isinstance(one, Path) else one}")
    return words


def call(name: str, *arguments: str,
         patience: float | None = None) -> subprocess.CompletedProcess[bytes]:
    import subprocess

    # This process may be under the profiler; the program is no part of what is recorded.
    variables = {k: v for k, v in os.environ.items() if not k.endswith("_INJECTION64_PATH")}
    return subprocess.run(["flopinj", *arguments], executable=path(name), env=variables,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=patience)


def run(name: str, *arguments: str, fine: tuple[int, ...] = (0,),
        patience: float | None = None, partial: list[str] | None = None) -> str:
    """What the program prints. Raises Error with its own sentence where its exit code is not fine,
    or where it printed nothing, and subprocess.TimeoutExpired after so many seconds. What it says
    of a partial answer goes to `partial`."""
    done = call(name, *arguments, patience=patience)
    said = done.stderr.decode(errors="replace").strip()
    ours = "flopinj: "
    if done.returncode in fine and (done.returncode == 0 or done.stdout):
        if done.returncode != 0 and partial is not None:
            partial += [line.removeprefix(ours) for line in said.splitlines()]
        return done.stdout.decode(errors="replace")
    raise Error(_in_python(said.removeprefix(ours)) or f"{name} ended with {done.returncode}",
                done.returncode)


#: Keywords that users try, and the keywords of this package.
_KEYWORDS = {"peaks": "peak={\"tensor_bf16\": \"989T\"}", "skip": "skip_steps=5",
             "steps": "skip_steps=5", "params": "parameters=7e9", "tokens": "tokens_per_step=4e6",
             **dict.fromkeys(("out", "file", "path", "filename"), "output=\"run.pb\""),
             "name": "label=\"name=VALUE\""}


def _in_python(said: str) -> str:
    """A complaint of an option, in the words of a keyword.

    >>> _in_python("unknown option --skip; the usual ones are --format (see x --help)")
    'there is no keyword skip: did you mean skip_steps=5?'
    """
    import re

    unknown = re.match(r"unknown option --([\w-]+)(.*?)(?: \(see (flopinj \w+) --help\))?$", said)
    if not unknown:
        return said
    name = unknown[1].replace("-", "_")
    if name in _KEYWORDS:
        return f"there is no keyword {name}: did you mean {_KEYWORDS[name]}?"
    meant = re.match(r": did you mean --([\w-]+)\?", unknown[2])
    said = (f": did you mean {meant[1].replace('-', '_')}?" if meant
            else f"; keywords are options of {unknown[3] or 'the command'}, with _ for -")
    return f"there is no keyword {name}{said}"


def environment(**given: Option) -> dict[str, str]:
    """The variables by which a program is profiled, for `subprocess` or a job's launcher. Keywords
    are options of `flopinj run`.

    >>> settings = environment(output="/tmp/t-%p.pb", budget="none")
    >>> settings["FLOPINJ_OUTPUT"], settings["FLOPINJ_BUDGET"]
    ('/tmp/t-%p.pb', 'none')
    """
    import re
    import subprocess

    exports = run("flopinj", "run", "--print-env", *options(given))
    # A shell reads what is written for a shell.
    after = subprocess.run(["sh", "-c", exports + "\nenv -0"], stdout=subprocess.PIPE, check=True)
    names = set(re.findall(r"^export (\w+)=", exports, re.MULTILINE))
    pairs = (pair.partition("=") for pair in os.fsdecode(after.stdout).split("\0"))
    return {name: value for name, _, value in pairs if name in names}


def become(program: str, arguments: list[str]) -> None:
    os.execv(program, [program, *arguments])


def flopinj() -> None:
    if sys.argv[1:2] == ["fleet"]:  # the one command that is written in Python
        from flopinj.fleet.__main__ import main

        sys.exit(main(sys.argv[2:]))
    become(path("flopinj"), sys.argv[1:])


def flopreduce() -> None:
    become(path("flopreduce"), sys.argv[1:])
