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


def figure(row, key="flop"):
    """The figure, or its bound; None where nothing is known."""
    for bound in ("", "_at_least", "_at_most"):
        for name in (f"{key}{bound}_exact", f"{key}{bound}"):  # a mean has no exact integer
            if (value := row.get(name)) is not None:
                return int(value) if isinstance(value, str) else value
    return None


def known(row, key="flop"):
    """The same, and 0 where nothing is known, for sums."""
    return figure(row, key) or 0


def lost_adds_up(report):
    """Whether the lines of where the peak went add up to the capacity, by line and by phase, and
    none is negative. None where there are no lines, and the report says why."""
    whole, lines = report["lost_capacity"][0], by(report, "lost")
    ns = {name: figure(line, "ns") for name, line in lines.items()}
    if whole["capacity_ns"] is None:
        return False if any(value is not None for value in ns.values()) else None
    if whole["missing"]:  # lines of work: they are of time alone
        ns = {name: value or 0 for name, value in ns.items()}
    below = {}
    for name, line in lines.items():
        below.setdefault(line["parent"], []).append(name)
    sums = [(whole["capacity_ns"], [ns[name] for name in below.pop(None)])]
    sums += [(ns[parent], [ns[name] for name in names]) for parent, names in below.items()]
    sums += [(ns[name], [figure(row, "ns") for row in report["lost_phases"] if row["line"] == name])
             for name in lines if name not in below]
    # What is a bound on both sides has no number.
    return all(
        min(parts, default=0) >= 0 and sum(parts) == all_of_it for all_of_it, parts in sums
        if None not in (all_of_it, *parts))
