"""flopreduce as a program: what it prints where, its exit codes, and its JSON against the schema in
the repository."""

import contextlib
import csv
import ctypes
import fcntl
import gzip
import json
import os
import pty
import re
import resource
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import jsonschema
import pyarrow

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "support"))
import ranks  # noqa: E402
import report_schema  # noqa: E402
from report_tables import by, known  # noqa: E402

FLOPREDUCE, MAKE_TRACES = sys.argv[1:3]
NAMES = ("training", "simulated", "other_rank", "killed", "damaged", "group")


def run(*arguments, stdin=None, cwd=None, **environment):
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")}
    return subprocess.run([FLOPREDUCE, *map(str, arguments)], input=stdin,
                          env={**env, **environment}, capture_output=True, timeout=60,
                          cwd=cwd)


def zstd_compress(data):
    """In short frames, so that damage to the last one leaves others."""
    codec = pyarrow.Codec("zstd")
    return b"".join(codec.compress(data[at:at + 64], asbytes=True)
                    for at in range(0, len(data), 64))


@contextlib.contextmanager
def opened(file):
    """A function that says afterwards how often the file was opened."""
    libc, in_open, in_close = ctypes.CDLL(None), 0x20, 0x10  # equal events that follow are one
    queue = libc.inotify_init1(os.O_NONBLOCK)
    libc.inotify_add_watch(queue, os.fsencode(file), in_open | in_close)
    yield lambda: seen
    events = os.read(queue, 1 << 20)
    os.close(queue)
    seen = sum(mask == in_open for _, mask, _, _ in struct.iter_unpack("iIII", events))


@contextlib.contextmanager
def being_recorded(trace):
    with open(trace, "rb") as recorded:
        fcntl.flock(recorded, fcntl.LOCK_EX)  # as a recorder does
        yield


def json_of(*arguments):
    return json.loads(run("--format", "json", *arguments).stdout)


class Program(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="flopreduce-test-")
        cls.folder = Path(cls.temporary.name)
        cls.trace = {}
        for name in NAMES:
            cls.trace[name] = cls.folder / f"{name}.pb"
            with open(cls.trace[name], "wb") as out:
                subprocess.run([MAKE_TRACES, name], stdout=out, check=True)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def one_line(self, done, code, *words):
        """Fails with this code and one clear line; nothing on standard output."""
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, b"")
        lines = done.stderr.decode().splitlines()
        self.assertEqual(len(lines), 1, lines)
        for word in ("flopreduce:", *words):
            self.assertIn(word, lines[0])

    def test_without_a_trace_the_newest_run_is_read(self):
        folder = self.folder / "runs"
        folder.mkdir()

        def reduce(*arguments):
            return subprocess.run([FLOPREDUCE, *arguments], cwd=folder, capture_output=True,
                                  timeout=60)

        self.one_line(reduce(), 2, "TRACE is required", "no trace (*.pb, *.sum) is in this folder")
        # Two ranks of a job twice, and a file of another program; the first run was written last.
        for number, (name, begin, job, rank) in enumerate(
                [("new1.pb", 101, "8", 1), ("new0.pb", 100, "8", 0), ("old0.pb", 10, "7", 0),
                 ("old1.pb", 12, "7", 1)]):
            trace = ranks.framed([(ranks.HEADER, 2, ranks.encoded(
                [(1, 0, 1), (ranks.REALTIME, 0, begin * 10**9), (ranks.JOB, 2, job.encode()),
                 (ranks.RANK, 0, rank), (ranks.SESSION, 1, (number + 1).to_bytes(8, "little"))]))],
                1)
            (folder / name).write_bytes(gzip.compress(trace) if rank else trace)
        (folder / "new1.pb").rename(folder / "new1.pb.gz")
        (folder / "old1.pb").rename(folder / "old1.pb.gz")
        (folder / "other.pb").write_bytes(b"of another program")
        (folder / "notes.txt").write_bytes((folder / "new0.pb").read_bytes())
        done = reduce("--format", "json")
        self.assertEqual(
            done.stderr.decode().splitlines()[0],
            "flopreduce: the newest run in this folder: new0.pb, new1.pb.gz")
        report = json.loads(done.stdout)
        self.assertEqual([(row["job_id"], row["processes"]) for row in report["runs"]],
                         [("8", 2)])

    def test_words_too_many_or_too_few(self):
        trace = self.trace["training"]
        self.one_line(run("compare", trace), 2, "B is required: compare takes A B")
        self.one_line(run("compare", trace, trace, "third.pb"), 2,
                      "'third.pb' is one word too many: compare takes A B")
        self.one_line(run("--html", trace), 2, "unknown option --html: did you mean --format html?")

    def test_lines_fit_the_width(self):
        text = run("--all", self.trace["training"], COLUMNS="90").stdout.decode()
        table = text[text.index("Top kernels"):text.index("\nLedger\n")]
        self.assertLessEqual(max(map(len, table.splitlines())), 90)

    def test_rules_are_a_rule_file_that_can_be_given_back(self):
        printed = run("rules")
        self.assertEqual(printed.returncode, 0, printed.stderr)
        rules = self.folder / "my.rules"
        rules.write_bytes(b"everything range regex .\n" + printed.stdout)
        with_mine = run("rules", "--rules", rules)
        self.assertTrue(with_mine.stdout.startswith(b"everything range regex .\n"))
        self.assertTrue(with_mine.stdout.endswith(printed.stdout))
        report = json_of("--rules", rules, self.trace["training"])
        self.assertIn("everything", by(report, "phases"))

    def test_json_fits_its_schema_and_its_rows_add_up(self):
        for names in (["training"], ["simulated"], ["killed"], ["damaged"],
                      ["training", "other_rank"]):
            report = json_of(*(self.trace[n] for n in names))
            report_schema.validate(FLOPREDUCE, report)
            ledger = report["ledger"][-1]
            self.assertEqual(ledger["launches"], sum(ledger[k] for k in (
                "measured", "extrapolated", "unmeasured", "dropped")))
            total = known(report["figures"])
            for key in ("kernels", "phases", "signatures", "rules", "processes", "precisions"):
                self.assertEqual(sum(known(row) for row in report[key]), total, key)

    def test_keys_never_come_and_go(self):
        """Every report has the same tables, and every row the same columns, whatever was measured;
        but for bounds and reasons, which are beside a null, and what is said of an estimate."""
        keys = {}
        for name in NAMES:
            report = json_of(self.trace[name])
            self.assertEqual(keys.setdefault("", list(report)), list(report))
            report["figures"] = [report["figures"]]
            del report["schema_version"]
            for table, rows in report.items():
                for row in rows:
                    self.assertEqual(keys.setdefault(table, self.columns(row)), self.columns(row))
        self.assertGreater(len(keys), 40)

    def columns(self, row):
        beside = re.compile("_(at_least|at_most|why|estimated)(?=(_exact)?$)")
        for key in filter(beside.search, row):
            if not key.endswith("_estimated"):
                self.assertIsNone(row[beside.sub("", key)], key)
        return [key for key in row if not beside.search(key)]

    def test_flop_are_numbers_with_the_exact_text_beside_them(self):
        report = json_of(self.trace["training"])
        seen = 0

        def look(value):
            nonlocal seen
            for item in value if isinstance(value, list) else value.values():
                if isinstance(item, (dict, list)):
                    look(item)
            if isinstance(value, dict):
                for key in (key for key in value if f"{key}_exact" in value):
                    number, text = value[key], value[f"{key}_exact"]
                    self.assertFalse(isinstance(number, str), key)
                    if isinstance(number, int):
                        seen += 1
                        self.assertEqual(text, str(number), key)
        look(report)
        self.assertGreater(seen, 100)

    def test_one_table_of_the_json(self):
        trace = self.trace["training"]
        whole = json_of(trace)
        for table in ("figures", "kernels", "signatures"):
            one = json_of("--table", table, trace)
            report_schema.validate(FLOPREDUCE, one)
            self.assertGreater(len(one[table]), 0)
            self.assertEqual(one, {key: whole[key] for key in ("schema_version", table)})

    def test_tables_are_those_of_the_schema(self):
        schema = json.loads(run("schema").stdout)["properties"]
        schema.pop("schema_version")
        said = json.loads(run("tables", "--format", "json").stdout)
        self.assertEqual([(t["table"], t["about"]) for t in said["tables"]],
                         [(key, table["description"]) for key, table in schema.items()])
        for key, table in schema.items():
            row = table.get("items", table)["properties"]
            for column in (c for c in said["columns"] if c["table"] == key):
                one = row[column["column"]]
                self.assertEqual(column["unit"], one.get("unit"), column)
                self.assertEqual(column["meaning"], one.get("description", column["meaning"]))
        text = run("tables", "phases").stdout.decode()
        self.assertTrue(text.startswith("phases: " + schema["phases"]["description"]), text)
        self.assertNotIn("kernels: ", text)

    def test_schema_refuses_what_it_should(self):
        report = json_of(self.trace["training"])
        for change in (lambda r: r["figures"].pop("launches"), lambda r: r["ledger"][0].popitem(),
                       lambda r: r["figures"].update(flop="5"),
                       lambda r: r["kernels"][0].update(surprise=1), lambda r: r.update(ledger={}),
                       lambda r: r.update(surprise=1), lambda r: r.update(schema_version=2)):
            broken = json.loads(json.dumps(report))
            change(broken)
            with self.assertRaises(jsonschema.ValidationError):
                report_schema.validate(FLOPREDUCE, broken)

    def test_a_rank_that_only_counted_gets_the_other_ones_samples(self):
        report = json_of(self.trace["other_rank"], self.trace["training"])
        kernel = next(k for k in report["kernels"] if k["kernel"].startswith("dense_forward"))
        self.assertEqual((kernel["launches"], kernel["flop"]), (1000004, 1000004 * 8192))

    def test_standard_input_and_fifo(self):
        expected = run("--format", "json", self.trace["training"]).stdout
        piped = run("--format", "json", "-", stdin=self.trace["training"].read_bytes())
        self.assertEqual(piped.returncode, 0)
        self.assertEqual(json.loads(piped.stdout)["figures"], json.loads(expected)["figures"])
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        with open(self.trace["training"], "rb") as source:
            writer = subprocess.Popen(["dd", f"of={fifo}", "status=none"], stdin=source)
            done = run("--format", "json", fifo)
            writer.wait(60)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(json.loads(done.stdout)["figures"], json.loads(expected)["figures"])

    def test_output_file(self):
        out = self.folder / "out.json"
        done = run("--format", "json", "-o", out, self.trace["training"])
        self.assertEqual((done.returncode, done.stdout), (0, b""))
        self.assertEqual(json.loads(out.read_text())["schema_version"], 3)

    def test_what_was_not_measured_is_never_0(self):
        trace = self.trace["training"]  # ncclDevKernel_AllReduce and its phase are unmeasured
        out = self.folder / "tables"
        self.assertEqual(run("--format", "csv", "-o", f"{out}/", trace).returncode, 0)
        for table, key, name in (("kernels", "kernel", "ncclDevKernel_AllReduce"),
                                 ("phases", "phase", "communication"), ("rules_used", "phase",
                                                                        "communication")):
            with open(out / f"{table}.csv", newline="") as file:
                row = next(r for r in csv.DictReader(file) if r[key] == name)
            self.assertEqual((row["flop"], row["flop_share"]), ("", ""), table)
        text = run("--all", trace).stdout.decode()
        line = next(part for part in text.splitlines() if part.strip().startswith("ncclDevKernel"))
        self.assertRegex(line, r"not measured +- +2 +20\.00 us +~ 33\.0 %")  # its time is known
        text = run(trace).stdout.decode()
        line = next(part for part in text.splitlines() if part.strip().startswith("ncclDevKernel"))
        self.assertEqual(line.split()[1:6], ["33.0", "%", "-", "2", "10.00"])  # its time is known

    def test_a_trace_without_a_readable_launch_has_no_total(self):
        torn = self.folder / "torn.pb"
        torn.write_bytes(self.trace["training"].read_bytes()[:120])
        done = run("--all", torn)
        self.assertEqual(done.returncode, 3)
        self.assertIn("total     not measured", done.stdout.decode())
        self.assertRegex(run(torn).stdout.decode(), r"Executed +- +not measured")
        self.assertNotIn("exactly 0", done.stdout.decode())
        figures = json_of(torn)["figures"]
        self.assertIsNone(figures["flop"])
        self.assertNotIn("flop_at_least", figures)
        gate = run("--fail-if", "total.flop > 1", torn)
        self.assertIn("cannot be decided", gate.stderr.decode())

    def test_estimates_are_marked_wherever_they_stand(self):
        trace = self.trace["training"]  # sample(int, float*) has samples that disagree
        out = self.folder / "marks"
        self.assertEqual(run("--format", "csv", "-o", f"{out}/", trace).returncode, 0)
        marks = {}
        for table, key in (("kernels", "kernel"), ("phases", "phase"), ("precisions", "precision"),
                           ("processes", "process")):
            with open(out / f"{table}.csv", newline="") as file:
                marks[table] = {r[key]: r["flop_mark"] for r in csv.DictReader(file)}
        self.assertEqual(marks["kernels"]["sample(int, float*)"], "~")
        self.assertEqual(marks["kernels"]["relu(float*)"], "")
        self.assertEqual(marks["phases"]["loss"], "~")
        self.assertEqual(marks["phases"]["optimizer"], "")
        self.assertEqual(marks["precisions"]["fp32"], ">= ~")
        self.assertEqual(marks["processes"]["0"], ">= ~")

    def test_an_input_is_never_overwritten(self):
        trace = self.folder / "only.pb"
        trace.write_bytes(self.trace["training"].read_bytes())
        (self.folder / "hard.pb").hardlink_to(trace)
        (self.folder / "soft.pb").symlink_to(trace)
        (self.folder / "set").mkdir()
        (self.folder / "set" / "kernels.csv").hardlink_to(trace)
        rules = self.folder / "own.rules"
        rules.write_text("mine range word x\n")
        files = {path: path.read_bytes() for path in (trace, rules)}
        for output in ("only.pb", "hard.pb", "soft.pb", "./set/../only.pb"):
            for command in ((), ("merge",), ("explain", "total"),
                            ("compare", self.trace["training"])):
                for force in ((), ("--force",)):
                    self.one_line(run(*command, *force, "-o", self.folder / output, trace), 2,
                                  "is an input", output.split("/")[-1])
        self.one_line(run("--rules", rules, trace, "-o", rules), 2, "is an input")
        self.one_line(run("rules", "--rules", rules, "-o", rules), 2, "is an input")
        done = run("--format", "csv", "--force", "-o", self.folder / "set", trace)
        self.assertEqual(done.returncode, 2, done.stderr)
        with open(trace, "ab") as appending:
            done = subprocess.run([FLOPREDUCE, trace], stdout=appending, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 2, done.stderr)
        for path, content in files.items():
            self.assertEqual(path.read_bytes(), content, path)

    def test_several_outputs_of_one_reading(self):
        alone = {form: run("--format", form, self.trace["simulated"]).stdout
                 for form in ("json", "html", "text", "markdown", "folded", "chrome-trace")}
        with tempfile.TemporaryDirectory() as folder:
            def at(form):
                return f"{folder}/out.{form}"

            several = [word for form in alone if form != "text"
                       for word in ("--format", form, "-o", at(form))]
            # One goes to standard output.
            done = run(*several, "--format", "text", self.trace["simulated"])
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout, alone["text"])
            for form in alone:
                if form != "text":
                    self.assertEqual(Path(at(form)).read_bytes(), alone[form], form)
            # A form with facts beside a form without: each is as it is alone.
            done = run("--force", "--format", "json", "-o", at("json"), "--format", "csv", "-o",
                       f"{folder}/tables/", self.trace["simulated"])
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(Path(at("json")).read_bytes(), alone["json"])
            self.assertTrue(Path(f"{folder}/tables/rows.csv").exists())
            # Answers of other commands.
            done = run("explain", "--format", "json", "-o", at("explain"), "--format", "text",
                       "total", self.trace["simulated"])
            self.assertEqual(done.stdout, run("explain", "total", self.trace["simulated"]).stdout)
            self.assertIn("explained", json.loads(Path(at("explain")).read_text()))

    def test_outputs_that_do_not_go_together(self):
        with tempfile.TemporaryDirectory() as folder:
            a, b = f"{folder}/a", f"{folder}/b"
            for words, said in (
                    (("--format", "json", "--format", "text"), "standard output"),
                    (("--format", "json", "-o", a, "-o", b), f"-o {b}"),
                    (("-o", a, "--format", "json", "-o", b), f"-o {a}"),
                    (("-o", a, "-o", b), f"-o {a}"),
                    (("--format", "json", "-o", a, "--format", "html", "-o", a), f"-o {a}"),
                    (("--format", "json", "-o", a, "--format", "text", "--weight", "time"),
                     "--weight")):
                done = run(*words, self.trace["simulated"])
                self.assertEqual((done.returncode, done.stdout), (2, b""), words)
                self.assertIn(said, done.stderr.decode())
                self.assertEqual(done.stderr.count(b"\n"), 1)
                self.assertEqual(os.listdir(folder), [])
            # Nothing is written where one output is kept.
            Path(b).write_text("kept")
            done = run("--format", "json", "-o", a, "--format", "html", "-o", b,
                       self.trace["simulated"])
            self.assertEqual(done.returncode, 2)
            self.assertEqual(os.listdir(folder), ["b"])
            # As before: where there is one output the order does not matter.
            done = run("-o", a, "--format", "json", self.trace["simulated"])
            self.assertEqual(done.returncode, 0)
            self.assertIn("figures", json.loads(Path(a).read_text()))

    def test_a_failed_write_leaves_what_was_there(self):
        def small_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        folder = self.folder / "kept"
        folder.mkdir()
        (folder / "old.json").write_text("old")
        for name in ("old.json", "new.json"):
            done = subprocess.run(
                [FLOPREDUCE, "--format", "json", "--force", "-o", folder / name,
                 self.trace["training"]],
                capture_output=True, preexec_fn=small_files)
            self.one_line(done, 2, name, "cannot be written", "File too large")
        self.assertEqual([p.name for p in folder.iterdir()], ["old.json"])
        self.assertEqual((folder / "old.json").read_text(), "old")

    def test_what_a_new_file_replaces_keeps_its_mode_and_links(self):
        real = self.folder / "real.json"
        real.write_text("old")
        real.chmod(0o640)
        link = self.folder / "link.json"
        link.symlink_to(real)
        done = run("--format", "json", "--force", "-o", link, self.trace["training"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(link.is_symlink())
        self.assertEqual(stat.S_IMODE(real.stat().st_mode), 0o640)
        self.assertEqual(json.loads(real.read_text())["schema_version"], 3)

    def test_a_file_that_exists_is_kept_unless_forced(self):
        folder, trace = self.folder / "exists", self.trace["training"]
        folder.mkdir()
        old = folder / "old"
        (folder / "link").symlink_to(old)
        commands = (("--format", "json"), ("--format", "sqlite"), ("--format", "html"), ("merge", ),
                    ("explain", "total"), ("compare", trace))
        for command in commands:
            for name in ("old", "link"):
                old.write_text("old")
                self.one_line(run(*command, "-o", folder / name, trace), 2, f"{name} exists",
                              "--force")
                self.assertEqual(old.read_text(), "old")
                done = run(*command, "--force", "-o", folder / name, trace)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotEqual(old.read_bytes(), b"old")
        # Tables of a folder: all or none.
        tables = folder / "tables"
        self.assertEqual(run("--format", "csv", "-o", f"{tables}/", trace).returncode, 0)
        every = {path.name: path.read_bytes() for path in tables.iterdir()}
        (tables / "ledger.csv").unlink()
        self.one_line(run("--format", "csv", "-o", f"{tables}/", trace), 2, "csv exists")
        self.assertFalse((tables / "ledger.csv").exists())
        self.assertEqual(run("--format", "csv", "--force", "-o", f"{tables}/", trace).returncode, 0)
        self.assertEqual({path.name: path.read_bytes() for path in tables.iterdir()}, every)

    def test_a_file_that_comes_while_the_report_is_made_is_kept(self):
        # The trace comes through a FIFO: the output's name was free when the command began.
        fifo, out = self.folder / "late.fifo", self.folder / "late.json"
        os.mkfifo(fifo)
        with subprocess.Popen([FLOPREDUCE, "--format", "json", "-o", out, fifo],
                              stderr=subprocess.PIPE) as process:
            with open(fifo, "wb") as trace:  # opened once flopreduce reads it
                out.write_text("of another program")
                trace.write(self.trace["training"].read_bytes())
            error = process.communicate(timeout=30)[1].decode()
        self.assertEqual(process.returncode, 2, error)
        self.assertIn("exists", error)
        self.assertEqual(out.read_text(), "of another program")

    def test_output_that_is_no_file_is_written_directly(self):
        expected = run(self.trace["training"]).stdout
        for name in ("-", "/dev/stdout"):
            self.assertEqual(run("-o", name, self.trace["training"]).stdout, expected, name)
        self.assertFalse(Path("-").exists())
        fifo = self.folder / "out.fifo"
        os.mkfifo(fifo)
        with subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE) as reader:
            self.assertEqual(run("-o", fifo, self.trace["training"]).returncode, 0)
            self.assertEqual(reader.communicate(timeout=60)[0], expected)
        self.assertTrue(stat.S_ISFIFO(fifo.stat().st_mode))

    @unittest.skipIf(os.geteuid() != 0, "only root can be two users")
    def test_a_fifo_of_another_user_gets_nothing(self):
        """In a folder that others write to, anybody can make one by the name."""
        fifo = self.folder / "theirs.fifo"
        os.mkfifo(fifo)
        os.chown(fifo, 4711, 4711)
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        self.one_line(run("-o", fifo, self.trace["training"]), 2, "belongs to another user")
        self.assertEqual(os.read(reader, 1), b"")

    def test_streams_without_end_are_left(self):
        for command in ("", "merge"):
            done = subprocess.run(f"'{FLOPREDUCE}' {command} - </dev/zero", shell=True, timeout=60,
                                  capture_output=True)
            self.one_line(done, 5, "standard input", "is no trace")
        # A trace before it counts.
        trace = self.trace["training"]
        done = subprocess.run(f"cat '{trace}' /dev/zero | '{FLOPREDUCE}' --format json -",
                              shell=True, timeout=60, capture_output=True)
        self.assertEqual(done.returncode, 3)
        # 64 MiB, and what the pipe gave beyond it.
        self.assertRegex(done.stderr.decode(), r"standard input: 67,1\d\d,\d{3} bytes")
        self.assertEqual(json.loads(done.stdout)["figures"]["flop_at_least"],
                         json_of(trace)["figures"]["flop_at_least"])

    def test_a_long_stream_with_packets_is_read_to_its_end(self):
        # 40 MiB that damage cost, twice, with packets between.
        trace = self.trace["training"].read_bytes()
        junk = b"\0" * (20 << 20)
        done = subprocess.run([FLOPREDUCE, "--format", "json", "-"], timeout=60,
                              input=trace[:600] + junk + trace[600:] + junk + trace, check=False,
                              capture_output=True)
        whole = json_of(self.trace["training"])
        self.assertEqual(done.returncode, 3)
        self.assertEqual(json.loads(done.stdout)["ledger"][-1]["launches"],
                         whole["ledger"][-1]["launches"])

    def test_partial_traces_are_reported_and_end_with_3(self):
        for name, word in (("killed", "unfinished packet"), ("damaged", "damaged places"),
                           ("group", "unreadable content")):
            done = run("--format", "json", self.trace[name])
            self.assertEqual(done.returncode, 3, name)
            self.assertIn(word, done.stderr.decode())
            self.assertEqual(len(done.stderr.splitlines()), 1)
            figures = json.loads(done.stdout)["figures"]
            self.assertTrue(figures["partial"])
            self.assertGreater(figures["launches"], 0)

    def test_a_trace_without_its_end_has_all_that_was_written(self):
        """The end mark is the last packet; where that is missing all before it is whole."""
        whole = self.trace["training"].read_bytes()
        ended = self.folder / "ended.pb"
        full = json_of(self.trace["training"])
        for cut in range(1, 200):
            ended.write_bytes(whole[:-cut])
            done = run("--format", "json", ended)
            if done.returncode == 0:
                break
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        report = json.loads(done.stdout)
        self.assertFalse(report["figures"]["partial"])
        self.assertEqual([d["kind"] for d in report["damage"]], ["no_end"])
        self.assertEqual(report["figures"], full["figures"])
        notice = report["notices"][0]["notice"]
        self.assertIn("the trace was not closed (by a program that a signal ended, say): launches "
                      "after the last packet of the trace are not in it", notice)
        self.assertIn(notice, run(ended).stdout.decode())
        with being_recorded(ended):
            report = json_of(ended)
        self.assertEqual([d["kind"] for d in report["damage"]], ["goes_on"])
        self.assertIn("the program was still running when it was read: launches after the last "
                      "packet of the trace are not in it",
                      report["notices"][0]["notice"])

    def test_while_the_program_runs_launches_on_their_way_are_not_lost(self):
        def ledger(trace):
            report = json_of(trace)
            line = report["ledger"][-1]
            return (line["launches"], line["dropped"],
                    {r["reason"]: r["launches"] for r in report["ledger_reasons"]
                     if r["fate"] == "dropped"})

        trace = self.folder / "unfinished.pb"
        trace.write_bytes(subprocess.run([MAKE_TRACES, "unfinished"], capture_output=True,
                                         check=True).stdout)
        self.assertEqual(ledger(trace), (20, 7, {"ring_full": 2, "not_written": 5}))
        with being_recorded(trace):
            self.assertEqual(ledger(trace), (15, 2, {"ring_full": 2}))

    def test_a_folder_is_all_traces_in_it(self):
        folder = self.folder / "job"
        (folder / "below").mkdir(parents=True)
        packed = self.folder / "packed"
        packed.mkdir()
        for rank, name in enumerate(("training", "other_rank")):
            (folder / f"rank{rank}.pb").write_bytes(self.trace[name].read_bytes())
        (folder / "notes.txt").write_text("no trace")
        names = [folder / "rank0.pb", folder / "rank1.pb"]
        self.assertEqual(run("--format", "json", folder).stdout,
                         run("--format", "json", *names).stdout)
        for trace, kind, pack in zip(names, ("gz", "zst"), (gzip.compress, zstd_compress)):
            (packed / f"{trace.name}.{kind}").write_bytes(pack(trace.read_bytes()))
        self.assertEqual(run("merge", packed).stdout, run("merge", *names).stdout)
        same = json.loads(run("compare", folder, folder, "--format", "json").stdout)
        self.assertEqual(same["kernel_counts"][0]["changed"], 0)
        self.one_line(run(folder / "below"), 5, "a directory with no trace in it")
        self.one_line(run("-o", names[0], folder), 2, "is an input")

    def test_traces_may_be_compressed(self):
        plain = self.trace["training"].read_bytes()
        half = len(plain) // 2
        two_parts = (plain[:half], plain[half:])
        for kind, pack in (("gz", gzip.compress), ("zst", zstd_compress)):
            with self.subTest(kind):
                self.read_compressed(plain, pack(plain), kind)
                # As `cat` joins compressed files.
                joined = self.folder / f"joined.pb.{kind}"
                joined.write_bytes(b"".join(map(pack, two_parts)))
                self.assertEqual(run("merge", joined).stdout,
                                 run("merge", self.trace["training"]).stdout)
                twice = self.folder / f"twice.pb.{kind}"
                twice.write_bytes(pack(gzip.compress(plain)))
                self.one_line(run(twice), 5, "is compressed twice")

    def test_a_compressed_summary_is_decompressed_once_for_each_reading(self):
        """And not once for each of its recordings."""
        rank = ranks.Trace(self.trace["training"].read_bytes())
        folder = self.folder / "hundred"
        folder.mkdir()
        for number in range(100):
            (folder / f"{number}.pb").write_bytes(
                rank.of_rank(number, 100, host="node", session=1 + number))
        packed = self.folder / "hundred.sum.zst"
        packed.write_bytes(zstd_compress(run("merge", folder).stdout))
        for words in (("--format", "json"), ("--format", "json", "-j", "2"), ("merge",)):
            with self.subTest(words), opened(packed) as times:
                done = run(*words, packed)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertLess(times(), 20)

    def test_compressed_traces_may_be_longer_than_what_is_decompressed_at_once(self):
        trace = self.trace["training"].read_bytes()
        plain = trace[:600] + bytes(3 << 20) + trace[600:]
        (self.folder / "long.pb").write_bytes(plain)
        expected = run("--format", "json", self.folder / "long.pb")
        self.assertEqual(expected.returncode, 3)
        self.assertGreater(json.loads(expected.stdout)["figures"]["launches"], 10)
        for kind, pack in (("gz", gzip.compress), ("zst", pyarrow.Codec("zstd").compress)):
            with self.subTest(kind):
                path = self.folder / f"long.pb.{kind}"
                path.write_bytes(pack(plain))
                done = run("--format", "json", path)
                self.assertEqual(done.returncode, 3)
                for key in ("figures", "kernels", "ledger"):
                    self.assertEqual(json.loads(done.stdout)[key], json.loads(expected.stdout)[key])

    def read_compressed(self, plain, compressed, kind):
        packed = self.folder / f"packed.pb.{kind}"
        packed.write_bytes(compressed)
        expected = json_of(self.trace["training"])
        for done in (run("--format", "json", packed),
                     run("--format", "json", "-", stdin=compressed)):
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            report = json.loads(done.stdout)
            for key in ("figures", "phases", "kernels", "ratio", "ledger", "time"):
                self.assertEqual(report[key], expected[key], key)
        self.assertEqual(run("merge", packed).stdout, run("merge", self.trace["training"]).stdout)
        for name, damaged in (("cut", compressed[:-40]),
                              ("changed", compressed[:-60] + bytes(60))):
            path = self.folder / f"{name}.pb.{kind}"
            path.write_bytes(damaged)
            done = run("--format", "json", path)
            self.assertEqual(done.returncode, 3, name)
            self.assertIn(b"the report is partial", done.stderr)
            self.assertGreater(json.loads(done.stdout)["figures"]["launches"], 0)

    def test_names_of_traces_from_a_list(self):
        names = self.folder / "names"
        names.write_text(f"{self.trace['training']}\n\n{self.trace['other_rank']}\n")
        both = json_of(self.trace["training"], self.trace["other_rank"])
        for done in (run("--format", "json", "--files-from", names),
                     run("--format", "json", "--files-from", "-", stdin=names.read_bytes()),
                     run("--format", "json", self.trace["other_rank"], "--files-from",
                         self.list_of(self.trace["training"]))):
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["figures"], both["figures"])
        self.assertEqual(run("merge", "--files-from", names).stdout,
                         run("merge", self.trace["other_rank"], self.trace["training"]).stdout)

    def list_of(self, *traces):
        path = self.folder / "list"
        path.write_text("".join(f"{trace}\n" for trace in traces))
        return path

    def test_help_fits_80_columns(self):
        for command in ((), ("compare",), ("explain",), ("merge",), ("peaks",), ("project",),
                        ("project", "train"), ("project", "infer"), ("rules",)):
            done = run(*command, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, b""), command)
            text = done.stdout.decode()
            self.assertLessEqual(max(map(len, text.splitlines())), 80, command)
            self.assertNotRegex(text, r"ENUM|UINT|TEXT|:value in")
            self.assertTrue(text.startswith("Usage: flopreduce"), command)

    def test_names_of_figures_can_be_listed(self):
        trace = self.trace["training"]
        done = run("--fail-if", "list", trace)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        listed = dict(line.split(None, 1) for line in done.stdout.decode().splitlines())
        report = json_of(trace)
        self.assertEqual(listed["ratio"], str(report["figures"]["ratio"]))
        self.assertEqual(listed["launches"], str(report["figures"]["launches"]))
        self.assertEqual(listed["kernels.0.launches"], str(report["kernels"][0]["launches"]))
        self.assertIn("hfu", listed)
        self.assertEqual(listed["coverage"], "0.8")  # 20 of 25 launches
        for name in list(listed)[::5]:  # each is a figure
            beside = "== outside" if name.endswith("verdict") else "> 1e30"
            self.assertIn(run("--fail-if", f"{name} {beside}", trace).returncode, (0, 1), name)
        listed = run("compare", trace, trace, "--fail-if", "list").stdout.decode()
        self.assertIn("total.flop.ratio", listed)

    def test_the_json_says_what_each_gate_came_to(self):
        trace = self.trace["training"]
        gates = ("launches < 1", "phases.forward.flop > 1 and 3 > 2", "total.flop > 1T",
                 "hfu > 1 or partial == 0", "phases.nowhere.flop > 1")
        asked = [word for gate in gates for word in ("--fail-if", gate)]
        done = run("--format", "json", trace, *asked)
        self.assertEqual(done.returncode, 2)  # for the row that there is not
        report = json.loads(done.stdout)
        plain = json_of(trace)
        self.assertEqual((plain["gates"], plain["gate_figures"]), ([], []))
        self.assertEqual({**report, "gates": [], "gate_figures": []}, plain)
        self.assertEqual([gate["condition"] for gate in report["gates"]], list(gates))
        self.assertEqual([gate["verdict"] for gate in report["gates"]],
                         ["passed", "failed", "not_known", "failed", "invalid"])
        figures = [[f for f in report["gate_figures"] if f["condition"] == gate] for gate in gates]
        self.assertEqual(figures[0], [{"condition": gates[0], "figure": "launches", "value": 22,
                                       "value_exact": "22", "reason": None}])
        forward = by(plain, "phases")["forward"]
        self.assertEqual((figures[1][0]["value"], figures[1][0]["value_exact"]),
                         (forward["flop"], forward["flop_exact"]))
        self.assertIsNone(figures[2][0]["value"])
        self.assertEqual(figures[2][0]["reason"], ">= 86820; launches are missing from it")
        self.assertEqual([(f["figure"], f["value"]) for f in figures[3]],
                         [("hfu", None), ("partial", 0)])
        self.assertEqual(figures[3][0]["reason"], plain["figures"]["hfu_why"])
        self.assertIn("flop", figures[4][0]["reason"])
        report_schema.validate(FLOPREDUCE, report)
        done = run("compare", trace, trace, "--format", "json", "--fail-if",
                   "total.launches.ratio == 1")
        self.assertEqual(done.returncode, 1)
        compared = json.loads(done.stdout)
        self.assertEqual([(g["condition"], g["verdict"]) for g in compared["gates"]],
                         [("total.launches.ratio == 1", "failed")])
        self.assertEqual(compared["gate_figures"],
                         [{"condition": "total.launches.ratio == 1",
                           "figure": "total.launches.ratio", "value": 1, "value_exact": None,
                           "reason": None}])

    def test_a_command_may_come_behind_options(self):
        trace = self.trace["training"]
        for before in ([], ["-q"], ["--format", "json"], ["--format=json", "-q"],
                       ["--normalize", "batch=1,2"]):
            behind = run("compare", trace, trace, *before)
            self.assertEqual(behind.returncode, 0, behind.stderr)
            first = run(*before, "compare", trace, trace)
            self.assertEqual((first.returncode, first.stdout), (0, behind.stdout), before)
            self.assertIn(b"same", first.stdout)
        # A value is no command: the report goes to a file that is named so.
        done = subprocess.run([FLOPREDUCE, "-o", "merge", trace], cwd=self.folder,
                              capture_output=True)
        self.assertEqual((done.returncode, done.stdout), (0, b""), done.stderr)
        self.assertIn("Executed", (self.folder / "merge").read_text())

    def test_a_projection_does_not_depend_on_what_a_multiply_add_counts(self):
        trace = self.folder / "exact53.pb"  # multiply-adds only
        trace.write_bytes(subprocess.run([MAKE_TRACES, "exact53"], capture_output=True,
                                         check=True).stdout)
        for peak in (("--gpu", "H100 SXM5"), ("--peak", "10T")):
            seconds = []
            for fma in ("2", "1"):
                done = run("project", "train", trace, "--trace-steps", "1", "--steps", "10", *peak,
                           "--utilization", "0.5", "--fma", fma, "--format", "json")
                self.assertEqual(done.returncode, 0, done.stderr)
                projection = by(json.loads(done.stdout), "projection", "figure")
                seconds.append(projection["projected_s"]["value"])
            with self.subTest(peak=peak):
                self.assertAlmostEqual(seconds[0] / seconds[1], 1, places=9)

    def merged(self, name, *inputs, code=0):
        out = self.folder / name
        done = run("merge", "--force", "-o", out, *inputs)
        self.assertEqual((done.returncode, done.stdout), (code, b""), done.stderr)
        return out

    def without_moments(self, *arguments, command=()):
        """JSON without single moments and names of files, which a summary does not have."""
        def kept(value):
            if isinstance(value, list):
                return [kept(item) for item in value
                        if not (isinstance(item, dict) and item.get("part") == "warning")]
            if isinstance(value, dict):
                return {key: kept(item) for key, item in value.items()
                        if key not in ("largest_gaps", "flop_over_time", "files", "file")}
            return value
        report = json.loads(run(*command, "--format", "json", *arguments).stdout)
        return json.dumps(kept(report))

    def test_summaries_are_read_like_the_traces(self):
        both = (self.trace["training"], self.trace["other_rank"])
        expected = self.without_moments(*both)
        one = self.merged("a.sum", both[0])
        other = self.merged("c.sum", both[1])
        for name, inputs in (("whole", both), ("forth", (one, other)), ("back", (other, one)),
                             ("twice", (one, other, one)), ("mixed", (other, one, both[0])),
                             ("again", (self.folder / "whole.sum",))):
            whole = self.merged(f"{name}.sum", *inputs)
            self.assertEqual(whole.read_bytes(), (self.folder / "whole.sum").read_bytes(), name)
            self.assertEqual(self.without_moments(whole), expected, name)
        # What was decided later still applies, and later commands read it too.
        for command, arguments in (((), ("--fma", "1")), ((), ("--phase", "mine=layer")),
                                   (("explain",), ("total",))):
            of_summary, of_traces = (self.without_moments(*arguments, *i, command=command)
                                     for i in ((whole,), both))
            self.assertEqual(of_summary, of_traces, arguments)

    def test_a_summary_knows_when_devices_were_busy(self):
        trace = self.folder / "timeline.pb"
        with open(trace, "wb") as out:
            subprocess.run([MAKE_TRACES, "timeline"], stdout=out, check=True)
        summary = self.merged("timeline.sum", trace)
        self.assertEqual(self.without_moments(summary), self.without_moments(trace))
        devices, of_trace = (json_of(one)["device_time"] for one in (summary, trace))
        self.assertEqual(len(devices), 2)
        for device, expected in zip(devices, of_trace, strict=True):
            for key in ("busy_ns", "idle_ns", "kernel_sum_ns"):
                self.assertGreater(device[key], 0, key)
                self.assertEqual(device[key], expected[key], key)

    def test_a_summary_beside_its_own_trace_counts_once_and_says_so(self):
        trace = self.trace["training"]
        summary = self.merged("own.sum", trace)
        for inputs in ((trace, summary), (summary, trace), (summary, summary)):
            done = run("--all", *inputs)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("packets seen before and left out", done.stdout.decode())
            self.assertIn("FLOP of 22 kernel launches", done.stdout.decode())

    def test_a_summary_keeps_what_was_wrong_with_its_traces(self):
        for name, word in (("killed", "unfinished packet"), ("damaged", "damaged places"),
                           ("group", "unreadable content")):
            done = run("--format", "json", self.merged(f"{name}.sum", self.trace[name]))
            self.assertEqual(done.returncode, 3, name)
            self.assertIn(word, done.stderr.decode())
            self.assertEqual(self.without_moments(self.folder / f"{name}.sum"),
                             self.without_moments(self.trace[name]))

    def test_simulated_and_real_launches_are_never_in_one_sum(self):
        """What hardware made is meant, in whatever order they come; the other is named."""
        real = json_of(self.trace["training"])["ledger"][-1]
        for first, second in (("training", "simulated"), ("simulated", "training")):
            with self.subTest(first):
                inputs = (self.trace[first], self.trace[second])
                done = run("--format", "json", *inputs)
                self.assertEqual(done.returncode, 3)
                self.assertRegex(done.stderr.decode(),
                                 r"simulated\.pb: left out: .*training\.pb on a real GPU")
                report = json.loads(done.stdout)
                self.assertIs(report["figures"]["simulated"], False)
                self.assertEqual(report["ledger"][-1]["launches"], real["launches"])
                summary = self.folder / "mixed.sum"
                done = run("merge", "--force", "-o", summary, *inputs)
                self.assertEqual(done.returncode, 3)
                self.assertRegex(done.stderr.decode(),
                                 r"simulated\.pb: left out: .*training\.pb on a real GPU")
                self.assertEqual(summary.read_bytes(),
                                 self.merged("real.sum", self.trace["training"]).read_bytes())
                # In one pipe the first one says which kind a report means.
                both = b"".join(path.read_bytes() for path in inputs)
                done = run("--format", "json", "-", stdin=both)
                self.assertEqual(done.returncode, 3)
                self.assertIn("1 of its recordings: left out", done.stderr.decode())
                report = json.loads(done.stdout)
                self.assertIs(report["figures"]["simulated"], first == "simulated")
                self.assertEqual(report["ledger"][-1]["launches"], real["launches"])

    def test_recordings_of_some_sessions_are_merged(self):
        def processes(file):
            text = run("--format", "csv", "--table", "processes", file).stdout.decode()
            return {row["session"]: row for row in csv.DictReader(text.splitlines())}

        whole, part = self.folder / "sessions.sum", self.folder / "session.sum"
        run("merge", "-o", whole, self.trace["training"], self.trace["other_rank"])
        both = processes(whole)
        self.assertEqual(len(both), 2)
        for session, row in both.items():
            done = run("merge", "--sessions-from", "-", "--force", "-o", part, whole,
                       stdin=f"{session}\n".encode())
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            (found,) = processes(part).values()
            for key in ("session", "rank", "pid", "launches", "wall_ns", "end"):
                self.assertEqual(found[key], row[key], key)
        none = self.folder / "of_no_session.sum"
        self.one_line(run("merge", "--sessions-from", "-", "-o", none, whole, stdin=b"9\n"), 5,
                      "no recording", "sessions")
        self.one_line(run("merge", "--sessions-from", "-", "-o", none, whole, stdin=b"x1\n"), 2,
                      "'x1' is no session")
        self.one_line(run("merge", "--sessions-from", "nowhere", "-o", none, whole), 2, "nowhere")
        self.assertFalse(none.exists())

    def test_merging_what_cannot_be_read(self):
        out = self.folder / "none.sum"
        self.one_line(run("merge", "-o", out, self.folder / "missing.pb"), 5, "no such file")
        self.assertFalse(out.exists())
        self.one_line(run("merge", "-o", out, self.folder / "missing.pb", self.trace["training"]),
                      3, "no such file")
        self.assertEqual(run(out).stdout, run(self.merged("t.sum", self.trace["training"])).stdout)
        torn = self.folder / "torn.sum"
        torn.write_bytes(out.read_bytes()[:-20])
        done = run(torn)
        self.assertEqual(done.returncode, 3, done.stderr)

    def test_links_that_lead_to_no_file_are_inputs_and_no_commands(self):
        for name, target, why in (("circle", "circle", "symbolic links"),
                                  ("astray", "missing.pb", "no such file")):
            with self.subTest(name):
                (self.folder / name).symlink_to(target)
                self.one_line(run(name, cwd=self.folder), 5, name + ": ", why)

    def test_explaining(self):
        trace = self.trace["training"]
        report = json_of(trace)
        for name in ("total", "phase:backward", "layer:fc1", "kernel:sgd(float*)", "step/forward",
                     "precision:fp32", "ratio", "utilization", "MFU"):
            done = run("explain", "--format", "json", name, trace)
            self.assertEqual(done.returncode, 0, done.stderr)
            j = json.loads(done.stdout)
            parts = [known(part) for part in j["signatures"]]
            self.assertEqual(sum(parts), known(j["explained"][0]), name)
        backward = json.loads(run("explain", "--format", "json", "phase:backward", trace).stdout)
        phase = by(report, "phases")["backward"]
        self.assertEqual(backward["explained"][0]["launches"], phase["launches"])

    def test_explaining_the_words_of_the_screen(self):
        trace = self.trace["training"]
        screen = run(trace).stdout.decode().split("\n\n")[1]
        names = re.findall(r"^  (\S+(?: \S+)*)  ", screen, re.M)
        self.assertLessEqual({"Executed", "HFU", "Coverage"}, set(names))
        for name in (*names, "Per step"):  # which this trace has none of
            for word in (name, name.lower()):
                done = run("explain", word, trace)
                self.assertEqual((done.returncode, done.stderr), (0, b""))

    def with_ledger(self):
        """Of peaks that are far above what it does."""
        trace = self.folder / "with_ledger.pb"
        trace.write_bytes(subprocess.run([MAKE_TRACES, "vectors"], capture_output=True,
                                         check=True).stdout)
        return ["--peak", "fp32=100T", "--peak", "memory=100T", trace]

    def test_a_line_of_the_ledger_is_what_the_ledger_says(self):
        trace = self.with_ledger()
        report = json_of(*trace)
        lost = {row["line"]: row for row in report["lost"]}
        self.assertGreater(lost["idle"]["ns"], 0)
        for key, whole in lost.items():
            done = run("explain", "--format", "json", f"lost:{key}", *trace)
            self.assertEqual((done.returncode, done.stderr), (0, b""), key)
            said = json.loads(done.stdout)
            shown = {row["line"]: row for row in said["lost"]}
            self.assertEqual(set(shown), {key} | {
                name for name, row in lost.items() if row["parent"] == key})
            for name, row in shown.items():
                self.assertEqual(row, lost[name])
            self.assertEqual(sum(known(place, "ns") for place in said["lost_places"]),
                             known(whole, "ns"))
        for part in report["lost_phases"]:
            places = json.loads(run("explain", "--format", "json", f"lost:{part['line']}",
                                    *trace).stdout)["lost_places"]
            self.assertEqual(known(part, "ns"), sum(
                known(place, "ns") for place in places if place["phase"] == part["phase"]))

    def test_what_the_screen_says_is_explained_where_it_was_read_for_it(self):
        trace = self.with_ledger()
        ledger = run("--sections", "lost", *trace).stdout.decode()
        ledger = ledger[ledger.index("Where the peak went, of"):]
        self.assertIn(ledger, run("explain", "Peak lost", *trace).stdout.decode())

    def test_what_no_person_reads_does_not_go_to_a_terminal(self):
        trace = self.trace["training"]
        for words, what in ((["--format", "html"], "a page"),
                            (["--format", "sqlite"], "a database"),
                            (["--format", "chrome-trace"], "a time line"),
                            (["explain", "--format", "html", "total"], "a page"),
                            (["merge"], "a summary"), (["anonymize"], "a trace")):
            leader, terminal = pty.openpty()
            done = subprocess.run([FLOPREDUCE, *words, trace], stdout=terminal,
                                  stderr=subprocess.PIPE, timeout=60)
            os.close(terminal)
            os.set_blocking(leader, False)
            with self.assertRaises(OSError):  # nothing was written
                os.read(leader, 100)
            os.close(leader)
            self.assertEqual(done.returncode, 2, words)
            self.assertRegex(done.stderr.decode(), f"^flopreduce: {what}.* is not for a terminal: "
                             "name a file with -o.*\n$")

    def test_no_section_is_silent_about_rows_that_programs_get(self):
        for name in NAMES:
            report = json_of(self.trace[name])
            for key in run("--sections", "no_such",
                           self.trace[name]).stderr.decode().split("none of ")[1].split(", "):
                key = key.strip().split(";")[0]
                said = run("--sections", key, self.trace[name]).stdout.decode()
                if "nothing in these traces" in said:
                    self.assertEqual(report.get(key, []), [], (name, key))

    def test_a_statement_may_be_behind_the_traces(self):
        trace = self.trace["training"]
        for sql in ("select 1 + 1", "WITH a AS (SELECT 2) SELECT * FROM a"):
            first, last = run("query", sql, trace), run("query", trace, sql)
            self.assertEqual((last.returncode, last.stdout), (0, first.stdout), last.stderr)

    def test_permission(self):
        locked = self.folder / "locked.pb"
        locked.write_bytes(self.trace["training"].read_bytes())
        locked.chmod(0)
        if os.access(locked, os.R_OK):
            self.skipTest("root reads everything")
        self.one_line(run(locked), 5, "permission denied")
        both = run("--format", "json", locked, self.trace["training"])
        self.assertEqual(both.returncode, 4)
        self.assertGreater(json.loads(both.stdout)["ledger"][-1]["launches"], 0)
        locked.chmod(stat.S_IRUSR | stat.S_IWUSR)

    def test_options_change_the_report(self):
        def report(*options):
            return json_of(*options, self.trace["training"])
        self.assertEqual(report("--fma", 1)["figures"]["fma"], 1)
        self.assertIn("steps", by(report("--phase", "steps=^step$", "--phase", "steps=forward"),
                                  "phases"))

    def kernels(self, *options):
        """Rows of the first screen: name and the cells behind it."""
        text = run("--top", 10, *options, self.trace["training"]).stdout.decode()
        rows = text[text.index("\nKernels by"):].split("\n\n")[0].splitlines()[3:]
        return [row.split()[0] for row in rows]

    def test_kernels_are_sorted_as_asked(self):
        rows = [(k["kernel"].split("(")[0], k["gpu_time_ns"], k["launches"], known(k))
                for k in json_of(self.trace["training"])["kernels"]]
        keys = {"time": lambda k: -k[1], "launches": lambda k: -k[2], "flop": lambda k: -k[3],
                "each": lambda k: -(k[1] // k[2]), "name": lambda k: k[0]}
        for order, key in keys.items():
            expected = [k[0] for k in sorted(rows, key=key)]
            self.assertEqual(self.kernels("--sort", order), expected, order)
        self.assertEqual(self.kernels(), self.kernels("--sort", "time"))

    def test_names_of_files_cannot_act_on_the_terminal(self):
        done = run(self.folder / "\x1b[2Jmissing")
        self.assertEqual(done.returncode, 5)
        self.assertNotIn(b"\x1b", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
