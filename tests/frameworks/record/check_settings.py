#!/usr/bin/env python3
"""Places of operators' settings (common/operator_settings.def) against the schemas of the PyTorch
that is installed. Operators that it has not, as those of libraries, are named. tools/dev
record-frameworks runs it."""

import re
import sys
from pathlib import Path

import torch

TABLE = Path(__file__).resolve().parents[3] / "common" / "operator_settings.def"


def main():
    text = TABLE.read_text()
    settings = set(re.findall(r"^FLOPINJ_SETTING\((\w+),", text, re.M))
    schemas = {}
    for schema in torch._C._jit_get_all_schemas():
        schemas.setdefault(schema.name, []).append([a.name for a in schema.arguments])
    wrong, known = 0, set()
    for name, places in re.findall(r'^FLOPINJ_PLACES\("([\w:]+)",(.*?)\)$', text, re.M | re.S):
        told = {(int(place), of) for place, of in re.findall(r'\{(\d+), "(\w+)"\}', places)}
        known.add(name)
        if name not in schemas:
            print(f"{name}: not in this PyTorch")
            continue
        # Of an overload whose arguments are elsewhere, such as one with `out`, nothing is told.
        ours = [{(i, a) for i, a in enumerate(schema) if a in settings} for schema in schemas[name]]
        if told not in ours:
            wrong += 1
            print(f"{name}: {sorted(told)} in the table, {sorted(map(sorted, ours))} in PyTorch")
    print(f"{len(known)} operators, {wrong} differ from PyTorch {torch.__version__}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
