"""Who does the work. An engine maps a function over tasks, in any order, and moves no data: that is
in files, which every worker can reach.

`start(name, workers, session)` is a context; in it `run(function, tasks)` gives the results.
"""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager

from flopinj._programs import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

#: Each with the package that it needs, which is the name of flopinj's extra too.
ENGINES = {"local": None, "spark": "pyspark", "ray": "ray", "dask": "distributed"}


def start(name: str, workers: Optional[int], session: Any) -> AbstractContextManager[Any]:
    if name not in ENGINES:
        raise Error(f"there is no engine '{name}': there are {', '.join(ENGINES)}", 2)
    try:
        engine = importlib.import_module(f"flopinj.fleet.engines.{name}")
    except ModuleNotFoundError as error:
        if error.name != ENGINES[name]:
            raise
        raise Error(f"the engine {name} needs {error.name}: pip install 'flopinj[fleet,{name}]'",
                    1) from None
    return engine.start(workers, session)
