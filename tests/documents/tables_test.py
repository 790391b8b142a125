"""docs/tables.md is made from `flopreduce schema`: every table of a report, and its columns with
their units and meanings. Use: tables_test.py FLOPREDUCE [--write]"""

import json
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tables.md"
WIDTH = 100
SHARED = 3  # a column that more tables have is said once

HEAD = """# Tables of a report

CSV, SQLite, JSON, `flopreduce query`, the [Python package](python.md) and [gates](formats.md#gates)
have these tables, with these columns; [forms of output](formats.md) says how each writes what is
not known, bounds and estimates. Figures are defined in [figures of a report](figures.md).

This page is what `flopreduce schema` says: `python3 tests/documents/tables_test.py
build/dev/bin/flopreduce --write` makes it.
"""


def columns_of(table):
    """(key, unit, meaning) of each column, without what JSON has beside it."""
    row = table.get("items", table)
    return [(key, one.get("unit", ""), one.get("description", ""))
            for key, one in row["properties"].items()
            if key in row["required"] and not key.endswith("_exact")]


def line(key, unit, meaning):
    text = f"`{key}`" + (f" ({unit})" if unit else "") + (f": {meaning}" if meaning else "")
    return textwrap.fill(text, WIDTH, initial_indent="- ", subsequent_indent="  ",
                         break_long_words=False, break_on_hyphens=False)


def page(schema):
    tables = {key: table for key, table in schema["properties"].items() if key != "schema_version"}
    counts = Counter(column for table in tables.values() for column in columns_of(table))
    shared = [column for column, count in counts.items() if count > SHARED and column[2]]
    yield HEAD
    yield "## Columns that many tables have\n"
    for column in shared:
        yield line(*column)
    for key, table in tables.items():
        columns = columns_of(table)
        yield f"\n## {key}\n\n{table['description'][0].upper()}{table['description'][1:]}.\n"
        for column in columns:
            if column not in shared:
                yield line(*column)
        also = ", ".join(f"`{column[0]}`" for column in columns if column in shared)
        if also:
            own = "" if len(columns) == len([c for c in columns if c in shared]) else "\n"
            yield own + textwrap.fill(f"Of those above: {also}.", WIDTH, break_long_words=False)


def main(flopreduce, *options):
    schema = json.loads(subprocess.run([flopreduce, "schema"], check=True, timeout=60,
                                       stdout=subprocess.PIPE).stdout)
    made = "\n".join(page(schema)) + "\n"
    if "--write" in options:
        PAGE.write_text(made)
    if PAGE.read_text() != made:
        print(f"{PAGE.name} is not what flopreduce schema says: {' '.join(sys.argv)} --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
