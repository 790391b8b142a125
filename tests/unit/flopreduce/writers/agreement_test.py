"""No form of output prints a figure that another one prints differently: every cell of every table
in JSON, CSV and SQLite, and of those that people see in HTML, Markdown and text. Traces are made
ones and recorded ones. Use: agreement_test.py FLOPREDUCE MAKE_TRACES"""

import csv
import html
import json
import re
import sqlite3
import unittest
from decimal import Decimal
from pathlib import Path

from made_traces import FOLDER, run, trace

RECORDED = Path(__file__).resolve().parents[3] / "data" / "old"
MADE = ("training", "simulated", "vectors", "damaged", "killed", "rounded", "timeline")
TRACES = {name: lambda name=name: trace(name) for name in MADE} | {
    path.stem: lambda path=path: path for path in sorted(RECORDED.glob("*.pb"))}

PREFIX = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
          "Z": 21, "Y": 24}
UNIT = {"flop": "FLOP", "op": "OP", "bytes": "B", "rate": "FLOP/s", "bandwidth": "B/s"}
SECONDS = {"ns": 0, "us": 3, "ms": 6, "s": 9}

FACTS = {  # not in the JSON: they are as long as a trace, or made of tables that are
    "rows", "threads", "step_list", "lost_parts", "lost_steps"
}


class Forms:
    """One report in all of its forms."""

    def __init__(self, path):
        whole = ("--all", "--top", 1000000)
        self.json = json.loads(self.output(path, "--format", "json"))
        self.markdown = self.output(path, "--format", "markdown", *whole)
        self.text = self.output(path, "--color", "never", *whole)
        page = self.output(path, "--format", "html")
        self.page = json.loads(
            re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])
        tables = FOLDER / f"agreement-{path.stem}"
        self.output(path, "--format", "csv", "--force", "-o", f"{tables}/")
        self.csv = {}
        for file in tables.glob("*.csv"):
            with open(file, newline="") as lines:
                self.csv[file.stem] = list(csv.reader(lines))
        database = FOLDER / f"agreement-{path.stem}.db"
        self.output(path, "--format", "sqlite", "--force", "-o", database)
        self.sql = sqlite3.connect(database)

    def output(self, path, *options):
        done = run(*options, path)
        assert done.returncode in (0, 3), done.stderr
        return done.stdout.decode()

    def page_tables(self):
        """By key, with the texts that the page has in one place."""
        texts = [text if isinstance(text, str) else text[0] for text in self.page["texts"]]

        def cell(column, value):
            if isinstance(value, dict) and "t" in value:
                return texts[value["t"]]
            is_text = column["kind"] == "text" and isinstance(value, int)
            return texts[value] if is_text else value

        tables = {}
        for section in self.page["sections"]:
            # People see shares of `lost` that add up as printed: the next but one test.
            if (table := section["table"]) is not None and table["key"] != "lost_shares":
                rows = [[cell(*pair) for pair in zip(table["columns"], row, strict=True)]
                        for row in table["rows"]]
                tables[table["key"]] = {**table, "rows": rows}
        return tables


def unguarded(text):
    return text[1:] if text[:1] == "'" else text


def shown(cell, kind):
    """(marks, least, most) of a figure as people read it: what it may have been rounded from."""
    marks, figure = re.fullmatch(r"((?:(?:>=|<=|>|<|~) )*)(.*)", cell).groups()
    if kind == "share":
        if figure.startswith(("<", ">")):
            limit = Decimal(figure[1:].removesuffix(" %")) / 100
            return marks, *((0, limit) if figure[0] == "<" else (limit, 1))
        digits, scale = figure.removesuffix(" %"), Decimal("0.01")
    elif kind == "ns":
        digits, unit = figure.split(" ")
        scale = Decimal(10) ** SECONDS[unit]
    elif kind in UNIT:
        digits, unit = figure.split(" ")
        scale = Decimal(10) ** PREFIX[unit.removesuffix(UNIT[kind])]
    else:
        digits, scale = figure.replace(",", ""), Decimal(1)
    value = Decimal(digits)
    half = Decimal(1).scaleb(value.as_tuple().exponent) / 2 * Decimal("1.000001")
    return marks, (value - half) * scale, (value + half) * scale


def same(text, value):
    """Whether a cell of the CSV form is that value of another form."""
    if value is None or text == "":
        return (text, value) in (("", None), ("", ""))
    if isinstance(value, float):
        return float(text) == value
    if isinstance(value, str):  # a text, or an integer that is too large for a number
        return unguarded(text) == value
    return text == str(int(value))


class Agreement(unittest.TestCase):
    maxDiff = 2000

    @classmethod
    def setUpClass(cls):
        cls.forms = {name: Forms(path()) for name, path in TRACES.items()}

    def each(self, check, least):
        """All traces; together they must have at least so many figures to compare."""
        figures = 0
        for name, forms in self.forms.items():
            with self.subTest(name):
                figures += check(forms)
        self.assertGreater(figures, least)

    def test_sqlite_is_csv(self):
        self.each(self.sqlite_is_csv, 5000)

    def sqlite_is_csv(self, forms):
        cells = 0
        names = {row[0] for row in forms.sql.execute("SELECT name FROM sqlite_schema")}
        self.assertEqual(names, {*forms.csv, "about"})
        for key, (head, *rows) in forms.csv.items():
            found = forms.sql.execute(f'SELECT * FROM "{key}" ORDER BY rowid')
            self.assertEqual([column[0] for column in found.description], head)
            for row, other in zip(rows, found, strict=True):
                for column, text, value in zip(head, row, other, strict=True):
                    cells += 1
                    self.assertTrue(same(text, value), (key, column, text, value))
        return cells

    def test_html_is_csv(self):
        self.each(self.html_is_csv, 2000)

    def html_is_csv(self, forms):
        cells = 0
        for key, table in forms.page_tables().items():
            head, *rows = forms.csv[key]
            if key == "ratio":  # the page has the rows with a value, as sections have
                rows = [row for row in rows if row[head.index("value")]]
            for row, other in zip(rows, table["rows"], strict=True):
                for column, cell in zip(table["columns"], other, strict=True):
                    cells += 1
                    where = (key, column["key"], cell)
                    text = row[head.index(column["key"])]
                    holds = cell if isinstance(cell, dict) else {"n": cell}
                    self.assertTrue(same(text, holds.get("n")), (*where, text))
                    if f"{column['key']}_mark" in head:
                        mark = row[head.index(f"{column['key']}_mark")]
                        self.assertEqual(mark, holds.get("m", ""), where)
        return cells

    def test_markdown_is_csv_rounded_and_text_has_the_same(self):
        self.each(self.markdown_is_csv, 1000)

    def markdown_is_csv(self, forms):
        figures = 0
        tables = {}
        for block in re.findall(r"(?:^\|.*\n)+", forms.markdown, re.M):
            head, _, *rows = [self.cells(line) for line in block.strip().splitlines()]
            tables.setdefault(tuple(word for word in head if word != "exact"), []).append(
                [[cell for cell, word in zip(row, head) if word != "exact"] for row in rows])
        for key, table in forms.page_tables().items():
            head, *rows = forms.csv[key]
            found = [t for t in tables.get(tuple(c["heading"] for c in table["columns"]), ())
                     if len(t) == len(rows)]
            lines = iter(forms.text.splitlines())
            for row, cells in zip(rows, found[0] if found else (), strict=bool(found)):
                visible = [cell for column, cell in zip(table["columns"], cells)
                           if column["kind"] != "text"]
                self.assertTrue(any(self.has(line, visible) for line in lines), (key, visible))
                for column, cell in zip(table["columns"], cells, strict=True):
                    figures += self.check_shown(head, row, column, cell, key)
        return figures

    def has(self, line, cells):
        """Whether the line of text has these cells, in their order."""
        place = 0
        for cell in cells:
            place = line.find(f" {cell}", place)
            if place < 0:
                return False
            place += len(cell) + 1
        return True

    def cells(self, line):
        """Of a row of Markdown, unescaped."""
        cells = re.split(r"(?<!\\)\|", line)[1:-1]
        return [re.sub(r"\\(.)", r"\1", html.unescape(c.replace("&#8203;", ""))).strip()
                for c in cells]

    def check_shown(self, head, row, column, cell, key):
        exact = row[head.index(column["key"])]
        if column["kind"] == "text" or exact == "":
            return 0
        marks, least, most = shown(cell, column["kind"])
        self.assertTrue(least <= Decimal(exact) <= most, (key, column["key"], cell, exact))
        if f"{column['key']}_mark" in head:
            self.assertEqual(marks.strip(), row[head.index(f"{column['key']}_mark")],
                             (key, column["key"]))
        return 1

    def test_lost_adds_up(self):
        self.each(self.lost_adds_up, 100)

    def lost_adds_up(self, forms):
        def dicts(key):
            head, *rows = forms.csv[key]
            return [dict(zip(head, row, strict=True)) for row in rows]

        whole, lines = dicts("lost_capacity")[0], dicts("lost")
        if whole["missing"]:
            self.assertFalse(any(line["ns"] for line in lines))
            self.assertIn(f"not known: {whole['missing']}", forms.text)
            return 1
        ns = {line["line"]: int(line["ns"]) for line in lines}
        self.assertEqual(sum(ns[line["line"]] for line in lines if not line["parent"]),
                         int(whole["capacity_ns"]))
        for parent in {line["parent"] for line in lines} - {""}:
            self.assertEqual(sum(ns[line["line"]] for line in lines if line["parent"] == parent),
                             ns[parent])
        for part in ("lost_phases", "lost_parts", "lost_steps"):
            for line in lines:
                if line["line"] not in {other["parent"] for other in lines}:
                    self.assertEqual(sum(int(row["ns"]) for row in dicts(part)
                                         if row["line"] == line["line"]), ns[line["line"]])
        # As printed: each line leaves what the one before did, less its share.
        text = re.split("\n\n|\n  <= ", forms.text.split("Where the peak went, of ")[1])[0]
        left = Decimal(100)
        for line in text.splitlines()[2:]:
            shares = re.findall(r"(<0\.1|\d+\.\d) %(?=  |$)", re.sub("  (=|takes ).*", "", line))
            share = Decimal(0) if shares[0] == "<0.1" else Decimal(shares[0])
            left -= share
            if len(shares) > 1:
                self.assertEqual(Decimal(shares[1]), left, line)
        self.assertEqual(left, 0)
        return len(lines)

    def test_json_is_csv(self):
        self.each(self.json_is_csv, 5000)

    def json_is_csv(self, forms):
        cells = 0
        report = {**forms.json, "figures": [forms.json["figures"]]}
        del report["schema_version"]
        self.assertEqual(report.keys() | FACTS, forms.csv.keys() | FACTS)
        for key in report:
            head, *rows = forms.csv[key]
            for row, record in zip(rows, report[key], strict=True):
                texts = dict(zip(head, row, strict=True))
                for column in head:
                    of = re.sub("_(mark|at_most)$", "", column)
                    if of == column or of not in head:
                        self.check_cell(texts[column], texts.get(f"{column}_mark", ""), record,
                                        column, key, texts.get(f"{column}_at_most"))
                    elif column.endswith("_at_most") and texts[column]:
                        self.assertTrue(same(texts[column], record[column]), (key, column))
                    cells += 1
        return cells

    def check_cell(self, text, mark, record, column, key, most):
        """`most`: the upper end, where it is a range."""
        where = (key, column, text, mark, record)
        bounds = [end for sign, end in ((">", "_at_least"), ("<=", "_at_most")) if sign in mark]
        for end in ("_at_least", "_at_most"):
            if len(bounds) < 2:
                there = end in bounds or (end == "_at_most" and bool(most))
                self.assertEqual(f"{column}{end}" in record, there, where)
        self.assertEqual(record.get(f"{column}_estimated", False), "~" in mark, where)
        if bounds:
            self.assertIsNone(record[column], where)
        if len(bounds) == 2:  # neither end is known
            return
        name = column + "".join(bounds)
        if (exact := record.get(f"{name}_exact")) is not None:
            self.assertEqual(text, exact, where)
            self.assertEqual(float(record[name]), float(exact), where)
        else:
            self.assertTrue(same(text, record[name]), where)


if __name__ == "__main__":
    unittest.main(argv=["agreement_test", "-v"])
