"""Reading the tables of a report's JSON."""


def by(report, table, key=None):
    """Rows of a table by the text in a column of theirs, or in the first one."""
    rows = {}
    for row in report[table]:
        name = row[key or next(iter(row))]
        assert name not in rows, f"two rows of {table} are named {name}"
        rows[name] = row
    return rows


def exact(row, key="flop"):
    """A figure to its last digit; None where it is not known, or only a bound."""
    text = row[f"{key}_exact"]
    return None if text is None else int(text)


def known(row, key="flop"):
    """The same, or the bound; 0 where nothing is known."""
    texts = (row.get(f"{key}{bound}_exact") for bound in ("", "_at_least", "_at_most"))
    return next((int(text) for text in texts if text is not None), 0)
