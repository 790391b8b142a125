"""PyTorch's operators, told to libflopinj.so by observer.cpp, which is built with the headers of
the PyTorch that is imported: at its first use, and kept for later ones."""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from flopinj import _programs
from flopinj._programs import TREE

_SOURCE = Path(__file__).with_name("observer.cpp")
_HEADERS = TREE / "lib" / "flopinj"
_MOST_SECONDS = 600
_FLAGS = ("-std=c++20", "-O2", "-DNDEBUG", "-shared", "-fPIC", "-fvisibility=hidden")


class Unavailable(Exception):
    """Why there is no observer."""


def say(text: str) -> None:
    """A line for people, of one process of a job."""
    if os.environ.get("LOCAL_RANK", "0") == "0":
        _programs.say(text)


class Observer:
    """Ranges of operators, between __enter__ and __exit__, which the same thread calls; again and
    again, if need be."""

    def __init__(self, operators: int) -> None:
        self._library = ctypes.PyDLL(str(build()))
        self._library.flopinj_observer_begin.argtypes = [ctypes.c_void_p]
        self._library.flopinj_observer_begin.restype = ctypes.c_uint64
        self._library.flopinj_observer_end.argtypes = [ctypes.c_uint64]
        self._library.flopinj_observer_end.restype = None
        self._library.flopinj_observer_spent.restype = ctypes.c_uint64
        self._operators, self._handle = operators, 0

    def __enter__(self) -> Observer:
        self._handle = self._library.flopinj_observer_begin(self._operators)
        return self

    def __exit__(self, *_: object) -> None:
        self._library.flopinj_observer_end(self._handle)

    def spent_ns(self) -> int:
        """What names have cost the program since its begin, by the observer's own clock."""
        return int(self._library.flopinj_observer_spent())


def observer() -> Observer | None:
    """None where the tool that is injected is another than flopinj, or records nothing."""
    try:
        operators = ctypes.CDLL(os.environ["NVTX_INJECTION64_PATH"]).flopinj_operators
    except (KeyError, OSError, AttributeError):
        return None
    operators.restype = ctypes.c_void_p
    table = operators()
    return Observer(table) if table else None


def build(source: Path = _SOURCE) -> Path:
    """The library, built if it is not there. Of several processes one builds, the others wait."""
    import torch

    compiler = _compiler()
    about = [torch.__version__, str(torch.version.git_version), *_FLAGS]
    sources = (source, _HEADERS / "operators.h", _HEADERS / "operator_settings.def")
    digest = hashlib.sha256(b"\0".join(
        [*(word.encode() for word in about), *(path.read_bytes() for path in sources)]))
    name = f"{source.stem}-{torch.__version__}-{digest.hexdigest()[:12]}.so"
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "flopinj"
    library = folder / name
    if library.exists():
        return library
    if compiler is None:
        raise Unavailable("no C++ compiler was found; install g++, or name one in CXX")
    home = Path(torch.__file__).parent
    abi = int(torch._C._GLIBCXX_USE_CXX11_ABI)
    command = [*compiler, *_FLAGS, f"-D_GLIBCXX_USE_CXX11_ABI={abi}", f"-I{_HEADERS}",
               f"-I{home}/include", f"-I{home}/include/torch/csrc/api/include", str(source),
               f"-L{home}/lib", "-ltorch_cpu", "-lc10"]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not library.exists():
                say(f"building {source.name} for PyTorch {torch.__version__}, once")
                _compile(command, library)
    except OSError as error:
        raise Unavailable(str(error)) from error
    return library


def _compiler() -> list[str] | None:
    if os.environ.get("CXX"):
        return os.environ["CXX"].split()
    found = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    return [found] if found else None


def _compile(command: list[str], library: Path) -> None:
    """Under another name first: who finds the library finds it whole."""
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        made = Path(folder) / library.name
        try:
            done = subprocess.run([*command, "-o", str(made)], text=True, timeout=_MOST_SECONDS,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, check=False)
        except subprocess.TimeoutExpired:
            raise Unavailable(f"{command[0]} took longer than {_MOST_SECONDS} s") from None
        if done.returncode != 0:
            lines = done.stdout.splitlines() or [f"it ended with {done.returncode}"]
            first = next((line for line in lines if "error" in line), lines[0])
            raise Unavailable(f"{command[0]} could not build it: {first.strip()}")
        made.rename(library)
