"""scikit-build-core, with the wheels that hold CUDA's headers: their one list is
cmake/cuda-headers.txt."""

from pathlib import Path

from scikit_build_core import build as base
from scikit_build_core.build import *  # noqa: F403  the hooks of PEP 517

HEADERS = Path(__file__).resolve().parents[2] / "cmake" / "cuda-headers.txt"


def get_requires_for_build_wheel(config_settings=None):
    lines = (line.partition("#")[0].strip() for line in HEADERS.read_text().splitlines())
    return [*base.get_requires_for_build_wheel(config_settings), *filter(None, lines)]
