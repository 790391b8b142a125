"""Forms of flopreduce's output that other programs read: each opened by a reader that is not ours,
its sums compared with the JSON report, and names that want to be more than text."""

import csv
import io
import json
import re
import sqlite3
import unittest
from collections import Counter
from decimal import Decimal

from made_traces import FOLDER, report, run, trace
from report_tables import exact, known

TRACES = ("training", "simulated", "killed", "damaged", "hostile")
TORN = ("killed", "damaged")  # exit code 3: partial
CONTROL = re.compile("[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def shown(name):
    """A name of the JSON report as other forms have it, for the names of these traces."""
    escaped = "".join(f"\\x{ord(c):02X}" if ord(c) <
                      32 else f"\\u{{{ord(c):X}}}" if "\u202a" <= c <= "\u202e" else c
                      for c in name)
    return escaped.replace("\ufffd", "\\xFF")


class Forms(unittest.TestCase):
    def form(self, name, *options):
        done = run(*options, trace(name))
        self.assertEqual(done.returncode, 3 if name in TORN else 0, done.stderr)
        text = done.stdout.decode()  # UTF-8 whatever the names are
        self.assertNotRegex(text, CONTROL)
        return text


class Sections(Forms):
    """--sections, for forms that people read."""

    def test_only_the_chosen_ones_and_the_head(self):
        whole = self.form("simulated", "--color", "never", "--all")
        for form in ("text", "markdown"):
            part = self.form("simulated", "--format", form, "--color", "never", "--sections",
                             "phases,kernels")
            self.assertIn("SIMULATED", part)  # the warnings stay
            self.assertNotIn("FLOP of", part)
            self.assertIn("By phase", part)
            self.assertIn("Top kernels", part)
            self.assertNotIn("By precision", part)
            self.assertNotIn("Ledger\n", part)
        self.assertIn("By precision", whole)
        self.assertIn("Ledger\n", whole)
        lines = self.form("simulated", "--color", "never", "--sections", "kernels").splitlines()
        self.assertTrue(set(lines) <= set(whole.splitlines()))

    def test_every_section_has_a_key_and_none_is_an_error(self):
        done = run("--sections", "?", trace("training"))
        keys = done.stderr.decode().split("is none of ")[1].split(": did")[0].split(" (see")[0]
        keys = keys.split(", ")
        self.assertEqual(len(keys), len(set(keys)))
        whole = self.form("simulated", "--color", "never", "--all")
        parts = [self.form("simulated", "--color", "never", "--sections", key) for key in keys]
        for key, part in zip(keys, parts):
            body = part if key == "total" else part.split("\n\n", 1)[1]
            if f"\n{key}: nothing " not in part:  # "in these traces", or "to say"
                self.assertIn(body, whole, key)
        self.assertTrue(any("nothing in these traces" in part for part in parts))
        titles = [line for line in whole.splitlines() if line and line[0] != " "]
        self.assertEqual([t for t in titles if not any(t in part for part in parts)], [])


class Csv(Forms):
    def table(self, name, key):
        text = self.form(name, "--format", "csv", "--table", key)
        self.assertEqual(text.count("\r\n"), text.count("\n"))
        rows = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
        for row in rows:
            self.assertNotIn(None, row)  # too many fields
            self.assertNotIn(None, row.values())  # too few
        return rows

    def test_sums_are_those_of_the_json_report(self):
        for name in TRACES:
            with self.subTest(name=name):
                json = report(name)
                kernels = self.table(name, "kernels")
                total = json["figures"]
                self.assertEqual(sum(int(k["flop"] or 0) for k in kernels), known(total))
                self.assertEqual(sum(int(k["launches"]) for k in kernels), total["launches"])
                self.assertEqual(sum(int(k["gpu_time_ns"] or 0) for k in kernels),
                                 total["gpu_time_ns"])
                for phase in self.table(name, "phases"):
                    self.assertEqual("~" in phase["flop_mark"],
                                     int(phase["varying_launches"]) > 0)

    def test_integers_beyond_2_to_the_63_survive(self):
        total = sum(int(k["flop"]) for k in self.table("hostile", "kernels"))
        self.assertGreater(total, 2**63)
        self.assertEqual(int(self.table("hostile", "figures")[0]["flop"]), total)

    def test_what_is_unmeasured_is_empty_and_never_0(self):
        rows = {k["kernel"]: k for k in self.table("training", "kernels")}
        self.assertEqual(rows["ncclDevKernel_AllReduce"]["flop"], "")

    def test_no_field_is_a_formula(self):
        text = self.form("hostile", "--format", "csv", "--table", "kernels")
        names = {row["kernel"] for row in csv.DictReader(io.StringIO(text, newline=""))}
        for field in (f for row in csv.reader(io.StringIO(text, newline="")) for f in row):
            self.assertFalse(field.startswith(("=", "+", "-", "@", "\t", "\r", "\n")), field)
        self.assertLessEqual(
            {
                "'=HYPERLINK(\"http://example.com\";\"x\")", "'+1+1", "'-1+1", "'@SUM(A1)",
                "'\\x09=1", 'comma, "quote"', "<!--<script>"
            }, names)

    def test_a_folder_gets_every_table(self):
        for name in TRACES:
            folder = FOLDER / f"tables-{name}"
            done = run("--format", "csv", "-o", f"{folder}/", trace(name))
            self.assertEqual((done.returncode, done.stdout), (3 if name in TORN else 0, b""),
                             done.stderr)
            keys = {path.stem for path in folder.glob("*.csv")}
            self.assertLessEqual(
                {
                    "figures", "phases", "precisions", "kernels", "signatures", "samples", "ranges",
                    "ledger", "processes", "devices", "damage"
                }, keys)
            for key in keys:
                with open(folder / f"{key}.csv", encoding="utf-8", newline="") as file:
                    rows = list(csv.reader(file, strict=True))
                self.assertEqual({len(row) for row in rows}, {len(rows[0])}, key)
                self.assertEqual(len(set(rows[0])), len(rows[0]), key)


class Query(Forms):
    """flopreduce query: SQLite's answers, on the tables of the CSV form."""

    def query(self, sql, *options):
        done = run("query", sql, *options, trace("training"))
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return done.stdout.decode()

    def test_rows_are_those_of_the_database(self):
        database = FOLDER / "query.db"
        self.assertEqual(run("--format", "sqlite", "-o", database, trace("training")).returncode, 0)
        for sql in ("SELECT kernel, flop, flop_mark FROM kernels ORDER BY gpu_time_ns DESC, kernel",
                    "SELECT sum(flop) AS total FROM stacks WHERE kernel LIKE '%dense%'",
                    "SELECT phase, 1.0 * flop / launches AS each FROM phases WHERE flop > 0",
                    "WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i+1 FROM n WHERE i < 3)"
                    " SELECT -i AS i FROM n", "SELECT kernel FROM kernels WHERE 0"):
            with sqlite3.connect(database) as connection:
                found = connection.execute(sql)
                names = [column[0] for column in found.description]
                rows = found.fetchall()
            self.assertEqual(json.loads(self.query(sql, "--format", "json")),
                             [dict(zip(names, row)) for row in rows])
            lines = list(csv.reader(io.StringIO(self.query(sql, "--format", "csv"), newline="")))
            self.assertEqual(lines[0], names)
            for line, row in zip(lines[1:], rows, strict=True):
                for text, value in zip(line, row):
                    if isinstance(value, float):
                        self.assertEqual(float(text), value)
                    elif isinstance(value, int):
                        self.assertEqual(int(float(text)), value)
                    else:
                        self.assertEqual(text.removeprefix("'"), value or "")
        text = self.query("SELECT kernel, launches FROM kernels WHERE kernel LIKE 'sgd%'")
        self.assertEqual([line.split() for line in text.splitlines() if line],
                         [["kernel", "launches"], ["sgd(float*)", "4"]])

    def test_functions_that_only_compute(self):
        """Of each kind: of numbers, texts, times, sets, windows, JSON."""
        text = self.query("SELECT upper(printf('%d', abs(-2))) || round(pow(2, 3)) AS a, "
                          "strftime('%Y', 0, 'unixepoch') AS b, count(*) OVER () AS c, "
                          "json_group_array(kernel) ->> 0 IS NOT NULL AS d, "
                          "json_extract('[5]', '$[0]') AS e FROM kernels", "--format", "json")
        (row,) = json.loads(text)
        self.assertEqual([row["a"], row["b"], row["d"], row["e"]], ["28.0", "1970", 1, 5])

    def test_names_of_columns_are_the_users(self):
        out = self.query("SELECT 1 AS \"=1+1\", 2 AS \"a,b\"", "--format", "csv")
        self.assertEqual(list(csv.reader(io.StringIO(out, newline=""))),
                         [["'=1+1", "a,b"], ["1", "2"]])

    def test_every_table_that_there_is_is_listed(self):
        listed = re.findall(r"^  (\w+): \S", run("tables").stdout.decode(), re.M)
        for name in TRACES:
            folder = FOLDER / f"listed-{name}"
            run("--format", "csv", "-o", f"{folder}/", trace(name))
            self.assertLessEqual({path.stem for path in folder.glob("*.csv")}, set(listed))
        self.assertEqual(len(listed), len(set(listed)))
        self.assertGreater(len(listed), 30)


class Folded(Forms):
    def stacks(self, name, weight):
        stacks = {}
        for line in self.form(name, "--format", "folded", "--weight", weight).splitlines():
            frames, value = line.rsplit(" ", 1)
            self.assertNotIn(frames, stacks)
            stacks[frames] = int(value)
        return stacks

    def test_weights_add_up_to_the_json_report(self):
        for name in TRACES:
            total = report(name)["figures"]
            self.assertEqual(sum(self.stacks(name, "flop").values()), known(total))
            self.assertEqual(sum(self.stacks(name, "time").values()), total["gpu_time_ns"])
            self.assertEqual(sum(self.stacks(name, "launches").values()), total["launches"])

    def test_frames_are_the_ranges_and_the_kernel(self):
        stacks = self.stacks("training", "launches")
        self.assertEqual(stacks["step;forward;layer:fc1;dense_forward(int, float const*, float*)"],
                         2)
        self.assertEqual(stacks["step;optimizer;sgd(float*)"], 4)
        ranges = {r["range"]: r["launches"] for r in report("training")["ranges"]}
        for path, launches in ranges.items():
            self.assertEqual(
                sum(v for k, v in stacks.items() if k.startswith(path.replace("/", ";") + ";")),
                launches)

    def test_a_name_is_one_frame(self):
        names = [k["kernel"] for k in report("hostile")["kernels"]]
        stacks = self.stacks("hostile", "launches")
        self.assertEqual(len(stacks), 2 * len(names))  # in a range and outside
        self.assertEqual(sum(";" not in frames for frames in stacks), len(names))
        self.assertIn("a\\x3Bb c|d`e*f_g[h](i)\\j", stacks)


class Sqlite(Forms):
    def database(self, name):
        path = FOLDER / f"{name}.db"
        done = run("--format", "sqlite", "--force", "-o", path, trace(name))
        self.assertEqual((done.returncode, done.stdout), (3 if name in TORN else 0, b""),
                         done.stderr)
        database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self.addCleanup(database.close)
        self.assertEqual(database.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        return database

    def test_sums_are_those_of_the_json_report(self):
        for name in TRACES:
            database, json = self.database(name), report(name)
            total = json["figures"]
            flop = known(total)
            for table in ("kernels", "stacks", "phases", "rules", "signatures"):
                rows = database.execute(f"SELECT flop, launches FROM {table}").fetchall()
                self.assertEqual(sum(int(f or 0) for f, _ in rows), flop, table)
                self.assertEqual(sum(n for _, n in rows), total["launches"], table)
            fma, launches, whole = database.execute(
                "SELECT fma, launches, flop FROM figures").fetchone()
            self.assertEqual((fma, launches, int(whole)), (total["fma"], total["launches"], flop))
            self.assertRegex(
                database.execute("SELECT made_by FROM about").fetchone()[0], "^flopinj ")

    def test_integers_beyond_2_to_the_63_are_exact_texts(self):
        database = self.database("hostile")
        value, = database.execute("SELECT flop FROM figures").fetchone()
        self.assertEqual(value, report("hostile")["figures"]["flop_exact"])
        self.assertGreater(int(value), 2**63)
        kernel, = database.execute("SELECT flop FROM kernels LIMIT 1").fetchone()
        self.assertEqual(kernel, 2**61)

    def test_names_are_values(self):
        names = {n for n, in self.database("hostile").execute("SELECT kernel FROM kernels")}
        self.assertLessEqual({"'; DROP TABLE kernels; --", "\\u{202E}evil\\u{202C}"}, names)
        self.assertEqual(len(names), len(report("hostile")["kernels"]))

    def test_what_is_unmeasured_is_null(self):
        row = self.database("training").execute(
            "SELECT flop, launches FROM kernels WHERE kernel = 'ncclDevKernel_AllReduce'").fetchone(
            )
        self.assertEqual(row, (None, 2))

    def test_the_bytes_are_the_same_on_standard_output(self):
        self.database("training")
        self.assertEqual(
            run("--format", "sqlite", trace("training")).stdout,
            (FOLDER / "training.db").read_bytes())


class ChromeTrace(Forms):
    """The Trace Event Format. Times are read as decimals: they are exact nanoseconds."""

    def events(self, *names):
        done = run("--format", "chrome-trace", *map(trace, names))
        self.assertEqual(done.returncode, 3 if set(names) & set(TORN) else 0, done.stderr)
        self.assertTrue(done.stdout.isascii())
        self.assertNotRegex(done.stdout.decode(), CONTROL)
        for digits in re.findall(r"[\d.]+", re.sub(r'"(\\.|[^"\\])*"', "", done.stdout.decode())):
            self.assertLessEqual(Decimal(digits), 2**53)  # beyond, readers round
        whole = json.loads(done.stdout, parse_float=Decimal)
        for event in whole["traceEvents"]:
            for key in ("ts", "dur"):
                if key in event:
                    event[key] = event[key] * 1000
                    self.assertEqual(event[key], int(event[key]))
        return whole["traceEvents"], done.stderr.decode()

    def launches(self, *names):
        return [e for e in self.events(*names)[0] if e["ph"] == "X"]

    def test_sums_by_kernel_are_those_of_the_json_report(self):
        for names in (("vectors",), ("hostile",), ("timeline",), ("timeline", "timeline_rank1")):
            events = self.launches(*names)
            for kernel in report(*names)["kernels"]:
                own = [e for e in events if e["name"] == shown(kernel["kernel"])]
                self.assertEqual(len(own), kernel["launches"])
                self.assertEqual(sum(int(e["args"]["flop"]) for e in own), exact(kernel))
                self.assertEqual(sum(e["dur"] for e in own), kernel["gpu_time_ns"])
                for row in report(*names)["kernel_precisions"]:
                    if row["mangled"] == kernel["mangled"]:
                        self.assertEqual(sum(int(e["args"]["precision"].get(row["precision"], 0))
                                             for e in own), exact(row))
                self.assertEqual({"estimate" in e["args"] for e in own},
                                 {kernel["varying_launches"] > 0})

    def test_events_of_a_track_do_not_overlap(self):
        for name in ("training", "hostile", "timeline", "damaged", "killed"):
            last = {}
            for event in self.launches(name):
                track = event["pid"], event["tid"]
                self.assertGreaterEqual(event["ts"], last.get(track, 0))
                last[track] = event["ts"] + event["dur"]

    def test_tracks_are_streams_of_devices_of_processes(self):
        events, _ = self.events("timeline", "timeline_rank1")
        named = {(e["pid"], e["tid"], e["name"]): e["args"].get("name") for e in events
                 if e["ph"] == "M"}
        processes = {pid: name for (pid, _, what), name in named.items() if what == "process_name"}
        self.assertEqual(sorted(processes.values()), [
            f"rank {rank}, node<{rank}> process {500 + rank}, Test GPU (device {device})"
            for rank in (0, 1) for device in (0, 1)
        ])
        tracks = {}
        for event in events:
            if event["ph"] == "X":
                where = processes[event["pid"]], named[event["pid"], event["tid"], "thread_name"]
                tracks.setdefault(where, []).append(event)
        for rank in (0, 1):
            device = [
                f"rank {rank}, node<{rank}> process {500 + rank}, Test GPU (device {d})"
                for d in (0, 1)
            ]
            begin = rank * 1_000_000
            # Launches of stream 7 that ran beside others have a track of their own; those after
            # them find the first one free.
            stream = tracks[device[0], "stream 7"] + tracks[device[0], "stream 7 (2)"]
            self.assertEqual(Counter(e["name"].split("(")[0] for e in stream),
                             {"dense_gradient": 40, "dense_forward": 40, "sample": 25})
            forward = [e["ts"] for e in stream if e["name"].startswith("dense_forward")]
            self.assertEqual(forward,
                             [begin + 1000 + sum(2010 + k for k in range(i)) for i in range(40)])
            self.assertEqual({e["name"].split("(")[0] for e in tracks[device[0], "stream 7"][40:]},
                             {"dense_gradient"})
            self.assertEqual([e["ts"] for e in tracks[device[0], "stream 13"]][0], begin + 1000)
            self.assertEqual([e["ts"] for e in tracks[device[1], "stream 7"]][0], begin + 2_000_000)
        self.assertEqual(len(tracks), 8)

    def test_an_event_tells_range_phase_and_shape(self):
        gradient = next(e for e in self.launches("timeline")
                        if e["name"].startswith("dense_gradient") and e["ts"] >= 200_000)
        self.assertEqual(gradient["cat"], "backward")  # by the thread's name
        self.assertEqual(
            gradient["args"], {
                "flop": 750, "precision": {"fp32": 610, "fp64": 140}, "range": "step",
                "grid": [1, 1, 1], "block": [32, 1, 1]
            })
        sample = next(e for e in self.launches("timeline") if e["args"].get("graph"))
        self.assertEqual((sample["cat"], sample["args"]["range"], sample["name"]),
                         ("forward", "step/forward", "sample(int, float*)"))

    def test_flop_per_second_adds_up(self):
        events, _ = self.events("timeline", "timeline_rank1")
        for pid in {e["pid"] for e in events}:
            counts = [(e["ts"], e["args"]["FLOP/s"]) for e in events
                      if e["ph"] == "C" and e["pid"] == pid and e["name"] == "FLOP/s"]
            self.assertEqual(counts[-1][1], 0)
            total = sum(
                int(e["args"]["flop"]) for e in events if e["ph"] == "X" and e["pid"] == pid)
            area = sum(
                Decimal(rate) * (end - begin) / 10**9
                for (begin, rate), (end, _) in zip(counts, counts[1:]))
            self.assertAlmostEqual(float(area / total), 1, places=12)

    def test_what_has_no_time_is_said(self):
        events, error = self.events("training")
        self.assertIn("2 launches are not in it", error)
        # Its rates are of the launches that have a count, and say so.
        counters = {e["name"] for e in events if e["ph"] == "C"}
        self.assertEqual(counters - {"HFU % of measured launches"},
                         {"FLOP/s of measured launches"})
        own = [e for e in events if e["ph"] == "X"]
        self.assertEqual(len(own), 20)
        self.assertEqual([e["args"]["flop"] for e in own if e["name"].startswith("nccl")],
                         [None, None])
        self.assertEqual([e["dur"] for e in own if "windowed" in e["args"]], [90_000])


class Markdown(Forms):
    def rendered(self, name):
        from markdown_it import MarkdownIt
        parser = MarkdownIt("commonmark", {"html": True}).enable("table")
        return parser.parse(self.form(name, "--format", "markdown", "--all", "--top", "1000"))

    def test_names_are_text_alone(self):
        allowed = {"text", "strong_open", "strong_close", "softbreak", "hardbreak", "text_special"}
        for name in TRACES:
            for token in self.rendered(name):
                self.assertNotIn(token.type,
                                 ("html_block", "fence", "code_block", "blockquote_open"))
                for child in token.children or ():
                    self.assertIn(child.type, allowed, child.content)

    def test_tables_hold_the_names_and_numbers_of_the_text_form(self):
        for name in TRACES:
            cells, rows = [], []
            for token in self.rendered(name):
                if token.type == "tr_open":
                    cells = []
                elif token.type == "inline":
                    cells.append("".join(c.content for c in token.children).strip())
                elif token.type == "tr_close":
                    rows.append(cells)
            text = " ".join(
                self.form(name, "--color", "never", "--all", "--top", "1000").split())
            kernels = report(name)["kernels"]
            first = 1 + next(i for i, row in enumerate(rows) if row[0] == "kernel")
            found = rows[first:first + len(kernels)]
            self.assertEqual([row[3].replace(",", "") for row in found],
                             [str(k["launches"]) for k in kernels])
            for row in found:
                for cell in (row[1], *row[4:8]):  # FLOP with unit, times
                    self.assertIn(cell, text)


if __name__ == "__main__":
    unittest.main(argv=["forms_test.py", "-v"])
