#!/usr/bin/env python3
"""Marks in every form: a figure that differs from the oracle, and that the JSON report marks, has
its mark and reason in the tables of CSV, SQLite and HTML and in text and Markdown too.

Usage: marks_test.py BUILD"""

import csv
import html
import io
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True

import as_gpu  # noqa: E402
import compare  # noqa: E402

HERE = Path(__file__).resolve().parent
# Of each mark in expected_differences.json streams that have it, and two with launches of which no
# number tells the phase.
STREAMS = ("layers_of_all_kinds", "cnn_twins", "unet", "cnn_frozen", "gan", "mlp_gradient_penalty",
           "mobilenet_v2-autocast-checkpoint", "complex_products", "random_7704", "random_27215",
           "random_31532", "evaluation", "deferred_weights", "forward_mode")


def name_of_row(figure):
    return figure.removeprefix("formula of ").removeprefix("operator ").rsplit(": ", 1)[0]


def begins(text, name):
    """With this name, and not with a longer one."""
    return re.match(re.escape(name) + (r"\b" if name[-1].isalnum() else ""), text) is not None


def where(figure, mark):
    """(table, what its row begins with, the marked column, marks of which it must have one, column
    of the reason) of a figure; a column without marks holds the mark itself."""
    if figure.startswith("formula of "):
        phase = figure.rsplit(": ", 1)[1]
        phase = tuple(p for p, as_ in compare.PHASES.items() if as_ == phase)
        marks = {"": "", "at least": (">=", "~"), "at most": ("<=", "~")}
        key = next((m for m in marks if m and mark.startswith(m)), "")
        if "more was executed" in mark:  # the formula is as it is: the cause is the mark
            key = ""
        return "operators", (name_of_row(figure), phase), "formula_flop", marks[key], "cause"
    if figure.startswith("operator "):
        name = name_of_row(figure)
        return "operator_work", (name, None), "backward_flop", (">=", "<="), None
    if figure == compare.THEORY:
        return "utilization", ("theory: ", None), "flop", (">=",), "method"
    if figure == "backward / forward, expected":
        marks = ("~",) if "assumed" in mark and mark.startswith("assumed") else ()
        return "ratio", ("expected of matrix work, most", None), "value", marks, "note"
    if figure == "backward / forward, matrix work" and mark.startswith("at "):
        bound = "<=" if mark.startswith("at most") else ">="
        return "ratio", ("matrix work only", None), "value", (bound,), None
    if figure == "backward / forward, matrix work":
        return "ratio", ("backward / forward", None), "value", (), "note"
    if figure.startswith("phase "):
        phase = figure.split()[1].rstrip(":")
        more = mark.startswith("at most") or (mark == compare.AGAIN and phase == "backward")
        return "phases", (phase, None), "flop", ("<=" if more else ">=", ), None
    raise AssertionError(f"no form is known to mark {figure}")


class Report:
    """One trace in every form, as tables: {key: [{column: (value, mark)}]}."""

    def __init__(self, build, trace, folder):
        self.command = [build / "bin/flopreduce", "--peak", f"fp32={compare.PEAK:g}", trace]
        self.json = json.loads(self.run("--format", "json"))
        self.screen = self.run("--color", "never")
        self.text = self.run("--all", "--top", "10000", "--color", "never")
        self.markdown = html.unescape(
            self.run("--format", "markdown", "--all", "--top", "10000")).replace("\\", "")
        self.tables = {
            "csv": self.csv_tables(folder / "csv"),
            "sqlite": self.sqlite_tables(folder / "report.db"),
            "html": self.html_tables()
        }

    def run(self, *options):
        done = subprocess.run([*self.command, *options], capture_output=True, check=True,
                              timeout=60, env=os.environ | {"COLUMNS": "1000"})
        return done.stdout.decode()

    @staticmethod
    def paired(row):
        return {
            key: (value, row.get(f"{key}_mark") or "")
            for key, value in row.items()
        }

    def csv_tables(self, folder):
        self.run("--format", "csv", "-o", f"{folder}/")
        return {
            path.stem: [self.paired(row) for row in csv.DictReader(io.StringIO(path.read_text()))]
            for path in folder.glob("*.csv")
        }

    def sqlite_tables(self, path):
        self.run("--format", "sqlite", "-o", path)
        database = sqlite3.connect(path)
        database.row_factory = sqlite3.Row
        keys = [r[0] for r in database.execute("SELECT name FROM sqlite_master WHERE type='table'")]
        tables = {
            key: [self.paired(dict(row)) for row in database.execute(f'SELECT * FROM "{key}"')]
            for key in keys
        }
        database.close()
        return tables

    def html_tables(self):
        data = re.search(r'(?<=id="data">)(.*?)(?=</script>)', self.run("--format", "html"))
        page, tables = json.loads(data[1]), {}
        # The page has each text once: cells of text are places in that list.
        texts = [text if isinstance(text, str) else text[0] for text in page["texts"]]
        for table in self.tables_within(page):
            keys = [column["key"] for column in table["columns"]]
            is_text = [column["kind"] == "text" for column in table["columns"]]
            tables[table["key"]] = [
                dict(zip(keys, (self.html_cell(texts[cell] if text and isinstance(cell, int)
                                               else cell)
                                for text, cell in zip(is_text, row)))) for row in table["rows"]
            ]
        return tables

    @staticmethod
    def html_cell(cell):
        return (cell.get("n"), cell.get("m", "")) if isinstance(cell, dict) else (cell, "")

    @classmethod
    def tables_within(cls, data):
        if isinstance(data, dict) and {"key", "columns", "rows"} <= data.keys():
            yield data
        elif isinstance(data, (dict, list)):
            for value in data.values() if isinstance(data, dict) else data:
                yield from cls.tables_within(value)


def unclear_phases(report, gpu):
    """Figures of phases that are less than they truly are, by what the report says is unclear."""
    true = compare.truth(gpu.launches)
    said = compare.said(report, true)
    return [
        figure for figure in true
        if figure == "phase forward: FLOP" and not compare.same(said[figure], true[figure])
    ]


def shown(ratio):
    """As reports print one below 10: four digits, or three where it is below 1."""
    return f"{ratio:.3f}" if ratio >= 1 else f"{ratio:.3g}"


class Marks(unittest.TestCase):
    build = None

    def check_tables(self, report, figure, mark):
        table, (name, phases), column, marks, reason = where(figure, mark)
        for form, tables in report.tables.items():
            with self.subTest(form=form, figure=figure):
                if form == "html" and table == "ratio":
                    continue  # lines of the page, as in text
                rows = [
                    row for row in tables[table]
                    if begins(str(next(iter(row.values()))[0]), name) and
                    (phases is None or row["phase"][0] in phases)
                ]
                self.assertTrue(rows)
                value, has = rows[0][column]
                if marks:
                    self.assertTrue(any(m in has for m in marks), f"{value} is marked '{has}'")
                elif column == "formula_flop" and mark.startswith("not known"):
                    self.assertIn(value, ("", None))
                elif mark.startswith("not known"):
                    self.assertIn(value, ("", None))
                if reason:
                    self.assertTrue(rows[0][reason][0])

    def check_people(self, report, figure, mark):
        table, (name, phases), _, marks, _ = where(figure, mark)
        forms = [("text", report.text), ("markdown", report.markdown)]
        if table == "phases":
            forms.append(("screen", report.screen))
        for form, text in forms:
            with self.subTest(form=form, figure=figure):
                if table == "ratio":
                    plain = " ".join(text.replace("|", " ").split())
                    for words in self.words_of_ratio(report.json, mark):
                        self.assertRegex(plain, words)
                    continue
                rows = [
                    line for line in text.splitlines() if begins(line.lstrip("| "), name) and
                    (phases is None or any(f" {p} " in line for p in phases))
                ]
                self.assertTrue(rows)
                if marks:
                    self.assertTrue(any(f"{m} " in line for line in rows for m in marks), rows)
                elif "complex" in mark:
                    self.assertIn("complex numbers", rows[0])

    @staticmethod
    def words_of_ratio(report, mark):
        least, most = compare.expected(report)
        ends = {"least": least, "most": most}
        if "range" in mark:
            return [f"expected of matrix work, {end} (~ )?{shown(value)}"
                    for end, value in ends.items()]
        if mark.startswith("assumed"):
            return [f"expected of matrix work, {end} ~ {shown(value)}"
                    for end, value in ends.items()]
        if mark.startswith("at most"):
            rows = compare.by(report, "ratio")
            return [f"matrix work only <= {shown(report['figures']['matrix_ratio_at_most'])}",
                    re.escape(rows["backward / forward"]["note"])]
        why = report["figures"].get("ratio_why") or compare.by(report, "ratio")[
            "expected of matrix work, most"]["note"]
        return [re.escape(why)]

    def test_every_form_has_them(self):
        seen = set()
        for name in STREAMS:
            gpu = as_gpu.convert(HERE / "streams" / f"{name}.jsonl.xz")
            for silent in (False, True):
                with self.subTest(stream=name, silent=silent), tempfile.TemporaryDirectory() as at:
                    if silent:
                        compare.silence(gpu)
                    trace = Path(at) / "stream.pb"
                    compare.write_trace(self.build, gpu, trace)
                    report = Report(self.build, trace, Path(at))
                    found = [(figure, mark) for figure, _, _, mark in compare.differing(
                        report.json, gpu)]
                    found += [(f, "at least") for f in unclear_phases(report.json, gpu)]
                    for figure, mark in found:
                        seen.add(mark)
                        self.check_tables(report, figure, mark)
                        self.check_people(report, figure, mark)
        known = json.loads((HERE / "expected_differences.json").read_text())
        self.assertLessEqual(set(known), seen, "marks that none of the streams here has")


if __name__ == "__main__":
    Marks.build = Path(sys.argv.pop(1)).resolve()
    unittest.main()
