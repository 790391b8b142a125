"""The Python package beside the programs of a build folder, as it is when it is installed."""

import os
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "python" / "flopinj"


def stage(folder, build):
    """Makes FOLDER/flopinj; FOLDER is what PYTHONPATH is to hold."""
    package = Path(folder) / "flopinj"
    package.mkdir(parents=True)
    for entry in SOURCES.iterdir():
        os.symlink(entry, package / entry.name)
    os.symlink(Path(build).resolve(), package / "_tree")
    return Path(folder)
