"""`flopinj run --torch` puts this folder first in PYTHONPATH: as Python starts, it arranges that
flopinj.torch.annotate_first() is called once the program has imported torch. It imports nothing
itself, and gives way to the sitecustomize module that is Python's own."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


class _TorchFinder:
    """Finds torch as others do, until it has been imported: many programs only look for it."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "torch":
            return None
        others = [finder for finder in sys.meta_path if finder is not _TorchFinder]
        for spec in (finder.find_spec(name, path, target) for finder in others):
            if spec is not None:
                spec.loader = spec.loader and _Loader(spec.loader)
                return spec
        return None


class _Loader:
    def __init__(self, loader):
        self._loader = loader

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        if _TorchFinder in sys.meta_path:
            sys.meta_path.remove(_TorchFinder)
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        try:
            _package().annotate_first()
        except Exception as error:  # the program goes on without names
            print(f"flopinj: --torch: no names for modules and operators: {error}",
                  file=sys.stderr)


def _package():
    """flopinj.torch: of the wheel that this file is in, else as it is installed."""
    from importlib import import_module, util
    from pathlib import Path

    package = Path(HERE).parents[3]  # flopinj/_tree/lib/flopinj/torch
    if "flopinj" not in sys.modules and (package / "_programs.py").is_file():
        spec = util.spec_from_file_location("flopinj", package / "__init__.py",
                                            submodule_search_locations=[str(package)])
        sys.modules["flopinj"] = module = util.module_from_spec(spec)
        spec.loader.exec_module(module)
    try:
        return import_module("flopinj.torch")
    except ModuleNotFoundError as error:
        raise RuntimeError("this Python has no package flopinj: in a clone of flopinj, pip "
                           "install .") from error


def _give_way():
    """Runs the sitecustomize that Python would have found without this folder."""
    from importlib import machinery, util

    rest = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != HERE]
    sys.path[:] = rest
    spec = machinery.PathFinder.find_spec("sitecustomize", rest)
    if spec is None or spec.loader is None:
        return
    sys.modules["sitecustomize"] = module = util.module_from_spec(spec)
    spec.loader.exec_module(module)


if os.environ.get("NVTX_INJECTION64_PATH"):
    sys.meta_path.insert(0, _TorchFinder)
_give_way()
