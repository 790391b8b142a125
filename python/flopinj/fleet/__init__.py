"""Many jobs at once: traces in, a lake of Parquet tables out, SQL over all of it.

    flopinj.fleet.ingest("s3://runs/2026-11/", "s3://lake/flopinj", engine="spark")
    flopinj.fleet.Lake("s3://lake/flopinj").sql("SELECT job, hfu FROM jobs")

Importing it loads nothing else: pyarrow, duckdb, pyspark and the rest are imported when they are
asked for. docs/fleet.md is the guide.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flopinj.fleet.plan import Outcome, ingest
    from flopinj.fleet.lake import Lake, register

_HOME_OF = {"Outcome": "plan", "ingest": "plan", "Lake": "lake", "register": "lake"}

__all__ = ["Lake", "Outcome", "ingest", "register"]


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'flopinj.fleet' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"flopinj.fleet.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
