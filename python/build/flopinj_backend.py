"""scikit-build-core, with the wheels that hold CUDA's headers (their one list is
cmake/cuda-headers.txt), and with what lets ccache find again what it compiled for another clone:
names below the sources, whatever folders pip makes up.

FLOPINJ_ARCHIVE names an archive that `tools/dev package` has made: the wheel has its programs then,
and nothing is compiled."""

import hashlib
import os
import platform
import re
import shutil
import tarfile
from pathlib import Path

from scikit_build_core import build as base
from scikit_build_core.build import *  # noqa: F403  the hooks of PEP 517

SOURCES = Path(__file__).resolve().parents[2]
HEADERS = SOURCES / "cmake" / "cuda-headers.txt"
UNPACKED = SOURCES / "build" / "archive"


def get_requires_for_build_wheel(config_settings=None):
    if _archive():
        return []
    lines = (line.partition("#")[0].strip() for line in HEADERS.read_text().splitlines())
    return [*base.get_requires_for_build_wheel(config_settings), *filter(None, lines)]


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    _archive()
    return base.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    if _archive():
        _unpack()
    else:
        os.environ.setdefault("CCACHE_BASEDIR", str(SOURCES))
        os.environ.setdefault("CCACHE_NOHASHDIR", "1")
        os.environ.setdefault("CUPTI_ROOT", str(_cuda_headers()))
    return base.build_wheel(wheel_directory, config_settings, metadata_directory)


def _archive():
    """The archive, or None. It has to be of these sources' version and for this machine."""
    given = os.environ.get("FLOPINJ_ARCHIVE")
    if not given:
        return None
    version = re.search(r"project\(flopinj VERSION ([0-9.]+)",
                        (SOURCES / "CMakeLists.txt").read_text()).group(1)
    name = f"flopinj-{version}-linux-{platform.machine()}.tar.gz"
    archive = Path(given).absolute()
    if archive.name != name or not archive.is_file():
        raise SystemExit(f"FLOPINJ_ARCHIVE={given}: these sources on this machine take a file "
                         f"{name}, which tools/dev package makes")
    return archive


def _unpack():
    """To where pyproject.toml expects it."""
    shutil.rmtree(UNPACKED, ignore_errors=True)
    with tarfile.open(_archive()) as packed:
        if hasattr(tarfile, "data_filter"):
            packed.extraction_filter = tarfile.data_filter
        packed.extractall(UNPACKED)
    (tree,) = UNPACKED.iterdir()
    tree.rename(UNPACKED / "_tree")


def _cuda_headers():
    """A copy of the headers below build/: where pip installs them is another folder each time, and
    everything that includes them would be compiled again."""
    import nvidia

    version = hashlib.sha256(HEADERS.read_bytes()).hexdigest()[:12]
    copy = SOURCES / "build" / "cuda-headers" / version
    if not copy.is_dir():
        fresh = copy.with_name(f"{version}.{os.getpid()}")
        for place in nvidia.__path__:
            for include in Path(place).glob("cu1[3-9]/include"):
                shutil.copytree(include, fresh / "include", dirs_exist_ok=True)
        if not fresh.is_dir():
            raise FileNotFoundError(f"no headers of CUDA in {', '.join(nvidia.__path__)}: install "
                                    f"the wheels of {HEADERS} beside the build's other packages")
        try:
            fresh.rename(copy)
        except OSError:  # another build was first
            shutil.rmtree(fresh)
    return copy
