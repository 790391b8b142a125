"""The Python package against the programs of the build folder, on the simulated GPU."""

import contextlib
import doctest
import html.parser
import importlib
import importlib.util
import io
import itertools
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
import harness  # noqa: E402
import staged  # noqa: E402
import theory  # noqa: E402
from driver_program import DRIVER  # noqa: E402
from harness import CLIENTS, TRAINER, clean_environment, injected_environment  # noqa: E402

STAGE = tempfile.TemporaryDirectory(prefix="flopinj-package-")
sys.path.insert(0, str(staged.stage(STAGE.name, harness.BUILD)))
import flopinj  # noqa: E402

TRAINING = harness.SOURCE / "tests" / "golden" / "training.pb"
HEAVY = ("torch", "pandas", "numpy", "jax", "pyarrow", "matplotlib", "IPython")


def has(*modules):
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    return unittest.skipIf(missing, f"not installed: {', '.join(missing)}")


def record(trace, *options, **settings):
    """A trace of the trainer's, and what its layers' shapes say of it."""
    done = subprocess.run([str(TRAINER), "--model", "cnn", "--mode", "autograd-thread",
                           "--print-shapes", *options], env=injected_environment(trace, **settings),
                          check=True, timeout=240, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL)
    return theory.Expected(json.loads(done.stdout))


class Importing(unittest.TestCase):

    def python(self, code):
        env = {**clean_environment(), "PYTHONPATH": STAGE.name}
        done = subprocess.run([sys.executable, "-c", code], env=env, check=True, text=True,
                              stdout=subprocess.PIPE, timeout=60)
        return done.stdout

    def test_it_takes_less_than_20_milliseconds(self):
        # Of the processor: what else runs on this machine does not matter.
        code = ("import time; begin = time.process_time(); import flopinj; "
                "print(time.process_time() - begin)")
        self.assertLess(min(float(self.python(code)) for _ in range(5)), 0.02)

    def test_nothing_else_is_imported_before_it_is_asked_for(self):
        loaded = self.python("import sys, flopinj; flopinj.range, flopinj.reduce, flopinj.status;"
                             "print(*sys.modules)").split()
        self.assertEqual([name for name in HEAVY if name in loaded], [])

    def test_its_names_are_there(self):
        for name in flopinj.__all__:
            self.assertIsNotNone(getattr(flopinj, name), name)
        with self.assertRaises(AttributeError):
            flopinj.no_such_name  # noqa: B018


class Examples(unittest.TestCase):

    def test_those_in_the_sources(self):
        for name in ("_programs", "_control", "_marks", "_record", "_progress", "torch.sampling"):
            result = doctest.testmod(importlib.import_module(f"flopinj.{name}"))
            self.assertGreater(result.attempted, 0, name)
            self.assertEqual(result.failed, 0, name)

    def test_lines_of_a_fleet_have_the_words_of_the_first_screen(self):
        from flopinj.fleet import answers

        source = (harness.SOURCE / "tools/flopreduce/report/lost.cpp").read_text()
        words = re.findall(r'\{"([a-z_]+)", (?:"[a-z_]+"|nullptr), "([^"]+)"', source)
        self.assertGreater(len(words), 20)
        self.assertEqual(answers.LINES, dict(words))

    def test_a_terminal_sees_how_far_it_is(self):
        from flopinj import _progress

        for terminal in (False, True):
            shown, clock = io.StringIO(), iter(range(100))
            shown.isatty = lambda terminal=terminal: terminal
            with (contextlib.redirect_stderr(shown),
                  unittest.mock.patch("time.monotonic", lambda: next(clock))):
                done = list(_progress.shown("reading", 80, iter([10, 10, 40, 20]), float))
            self.assertEqual(done, [10, 10, 40, 20])
            # One second for each: after the third, 60 of 80 took three seconds.
            self.assertEqual("75 %, 1 s left" in shown.getvalue(), terminal)
            self.assertEqual(shown.getvalue().endswith("\r\x1b[K"), terminal)

    def test_errors_are_the_programs_own_sentence(self):
        from flopinj import _programs

        command = ["run", "--print-env", "--budget=many", "--", "true"]
        said = subprocess.run([harness.FLOPINJ, *command], stderr=subprocess.PIPE, text=True)
        with self.assertRaises(flopinj.Error) as caught:
            _programs.run("flopinj", *command)
        self.assertEqual(f"flopinj: {caught.exception}", said.stderr.strip())
        self.assertIn("--budget", str(caught.exception))
        self.assertEqual(caught.exception.exit_code, said.returncode)


class Sampling(unittest.TestCase):
    """Which steps of a training have names, by what names cost of a step."""

    @staticmethod
    def steps(count, cost, known=True, length=lambda step: 1.0):
        """Those with names, and their share of the time."""
        from flopinj.torch.sampling import Sampling

        sampling, named, all_named, elapsed, spent = Sampling(), True, [], 0.0, 0.0
        for step in range(count):
            seconds = length(step) + (cost if named else 0)
            elapsed += seconds
            if named:
                all_named.append(step)
                spent += cost
            named = sampling.next(seconds, named, cost if named and known else None)
        return all_named, spent / elapsed

    def test_all_where_that_is_cheap(self):
        self.assertEqual(self.steps(300, 0.009)[0], list(range(300)))

    def test_they_cost_a_hundredth(self):
        for cost in (0.02, 0.1, 0.5):
            for known in (True, False):  # else steps are compared
                with self.subTest(cost=cost, known=known):
                    named, share = self.steps(1000, cost, known)
                    self.assertEqual(named[:3], [0, 1, 2])
                    self.assertLessEqual(share, 0.01)
                    self.assertGreater(share, 0.008)

    def test_they_are_spread_over_all_of_the_run(self):
        named, _ = self.steps(1000, 0.1)
        for tenth in range(10):
            self.assertTrue(any(100 * tenth <= step < 100 * (tenth + 1) for step in named))
        periods = {step % 10 for step in named}
        self.assertGreater(len(periods), 5)  # no period of the program's is met again and again

    def test_a_slow_step_does_not_count_for_others(self):
        named, _ = self.steps(100, 0.1, length=lambda step: 60.0 if step == 50 else 1.0)
        self.assertLess(len([step for step in named if step > 50]), 20)


class Failures(unittest.TestCase):
    """Of ours, which are not the program's."""

    def test_of_a_log_that_gets_no_thread(self):
        from flopinj import tracking

        seen = []
        no_thread = RuntimeError("can't start new thread")
        with unittest.mock.patch.object(threading.Thread, "start", side_effect=no_thread), \
                unittest.mock.patch.object(tracking, "sample", return_value={"hfu": 0.5}):
            with tracking.Log(lambda values, step: seen.append((step, values))) as log:
                log.step(1)
                log.step(2)
        self.assertEqual(seen, [(2, {"flopinj/hfu": 0.5})])

    def test_of_names_of_a_module_that_is_none(self):
        import flopinj.jax

        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(flopinj.jax.save_names(Path(STAGE.name) / "x.names", "no module"), 0)
            self.assertEqual(flopinj.jax.save_names("/none/x.names", "HloModule a\n"), 0)
        lines = said.getvalue().splitlines()
        self.assertRegex(lines[0], "^flopinj: no names of XLA's kernels in .*: no module of XLA")
        self.assertRegex(lines[1], "^flopinj: no names of XLA's kernels in /none/x.names: ")


class Reports(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = Path(STAGE.name)
        cls.trace = cls.folder / "demo.pb"
        cls.expected = record(cls.trace)
        cls.report = flopinj.reduce(cls.trace)

    @has("pandas")
    def test_examples_in_the_sources(self):
        module = importlib.import_module("flopinj._report")
        result = doctest.testmod(module, extraglobs={"demo_trace": self.trace})
        self.assertGreater(result.attempted, 0)
        self.assertEqual(result.failed, 0)

    def test_flop_are_those_of_the_layers_shapes(self):
        self.assertEqual(self.report.flop, self.expected.flop)
        self.assertEqual(self.report.launches, self.expected.launches)
        self.assertEqual(self.report.ratio,
                         self.expected.phase_flop["backward"] / self.expected.phase_flop["forward"])
        self.assertTrue(self.report.simulated)
        self.assertFalse(self.report.partial)
        self.assertEqual(self.report.coverage, 1)

    def test_share_of_launches_with_operators(self):
        self.assertEqual(self.report.operator_share, 0)
        trace = self.folder / "named.pb"
        expected = record(trace, "--steps", "2", "--ranges", "pytorch")
        # The trainer names operators of the forward and the backward pass.
        named = expected.phase_launches["forward"] + expected.phase_launches["backward"]
        self.assertEqual(flopinj.reduce(trace).operator_share, named / expected.launches)

    def test_names_patterns_lists_and_paths_name_the_same_traces(self):
        pattern = str(self.folder / "dem?.pb")
        for traces in (str(self.trace), self.trace, pattern, [self.trace], ([pattern],)):
            self.assertEqual(flopinj.reduce(traces).flop, self.expected.flop, traces)

    def test_what_was_not_measured_is_none(self):
        trace = self.folder / "counted.pb"
        expected = record(trace, "--steps", "2", FLOPINJ_MODE="count")
        report = flopinj.reduce(trace)
        self.assertEqual(report.launches, expected.launches)
        for figure in ("flop", "hfu", "mfu", "ratio", "gpu_time"):
            self.assertIsNone(getattr(report, figure), figure)

    def test_errors_are_the_programs_own_sentence(self):
        missing = self.folder / "missing.pb"
        said = subprocess.run([harness.FLOPREDUCE, missing], stderr=subprocess.PIPE, text=True)
        with self.assertRaises(flopinj.Error) as caught:
            flopinj.reduce(missing)
        self.assertIn(str(caught.exception), said.stderr)
        self.assertIn("missing.pb", str(caught.exception))
        self.assertEqual(caught.exception.exit_code, said.returncode)
        with self.assertRaisesRegex(flopinj.Error, "no keyword batch_sise: .*mean batch_size"):
            flopinj.reduce(self.trace, batch_sise=32)
        with self.assertRaisesRegex(KeyError, "kernels"):
            self.report.table("kernel")

    def test_marks_are_kept(self):
        partial = flopinj.reduce(TRAINING)
        with sqlite3.connect(":memory:") as own:
            partial._database.backup(own)
            marks = {mark for (mark,) in own.execute("SELECT flop_mark FROM phases")}
        self.assertGreater(len(marks), 1)

    def test_figures_by_name_bounds_and_tables(self):
        partial = flopinj.reduce(TRAINING)  # two of its launches have no count
        self.assertIsNone(partial["flop"])
        self.assertEqual(partial["flop_at_least"], int(partial["flop_at_least_exact"]))
        self.assertEqual(partial["flop_at_least"],
                         sum(kernel["flop"] or 0 for kernel in partial["kernels"]))
        self.assertIsNone(partial["flop_at_most"])
        self.assertIsNone(self.report["flop_at_least"])
        self.assertEqual(self.report["flop"], self.expected.flop)
        for key in self.report.keys():  # noqa: SIM118
            self.report[key]
        with self.assertRaises(KeyError):
            self.report["flops"]

    @has("pandas")
    def test_tables_are_data_frames(self):
        import pandas

        self.assertIsInstance(self.report.kernels, pandas.DataFrame)
        for table in ("kernels", "phases"):
            frame = self.report.table(table)
            self.assertEqual(frame["flop"].sum(), self.expected.flop, table)
            self.assertEqual(frame["launches"].sum(), self.expected.launches, table)
        phases = self.report.phases.set_index("phase")["flop"]
        self.assertEqual({phase: int(flop) for phase, flop in phases.items()},
                         dict(self.expected.phase_flop))
        counted = self.report.sql("SELECT count(*) AS n FROM kernels")
        self.assertEqual(counted["n"][0], len(self.report.kernels))

    @has("pandas")
    def test_integers_stay_exact(self):
        from flopinj import _frames

        database = sqlite3.connect(":memory:")
        database.execute("CREATE TABLE t (name TEXT, flop, launches)")
        database.executemany("INSERT INTO t VALUES (?, ?, ?)",
                             [("1", str(2**70 + 1), 2**53 + 1), ("2", None, None), ("3", 5, 1)])
        frame = _frames.pandas_frame(database.execute("SELECT * FROM t"))
        self.assertEqual(list(frame["flop"]), [2**70 + 1, None, 5])
        self.assertEqual(frame["launches"][0], 2**53 + 1)
        self.assertTrue(frame["launches"].isna()[1])
        self.assertEqual(list(frame["name"]), ["1", "2", "3"])

    @has("pyarrow")
    def test_flop_are_decimals_in_arrow(self):
        from decimal import Decimal

        import pyarrow
        from flopinj import _frames

        table = self.report.arrow("kernels")
        self.assertEqual(sum(table["flop"].to_pylist()), self.expected.flop)
        self.assertEqual(table.schema.field("flop").type, pyarrow.decimal128(38, 0))
        database = sqlite3.connect(":memory:")
        database.execute("CREATE TABLE t (flop)")
        database.executemany("INSERT INTO t VALUES (?)", [(str(2**70 + 1),), (None,)])
        table = _frames.arrow_table(database.execute("SELECT * FROM t"))
        self.assertEqual(table["flop"].to_pylist(), [Decimal(2**70 + 1), None])

    def test_what_is_missing_is_named_with_its_remedy(self):
        for module, use in {"pandas": lambda: self.report.kernels, "matplotlib": self.report.plot,
                            "pyarrow": lambda: self.report.arrow("kernels")}.items():
            with unittest.mock.patch.dict(sys.modules):
                for name in [name for name in sys.modules if name.startswith(module + ".")]:
                    del sys.modules[name]
                sys.modules[module] = None
                with self.assertRaisesRegex(ModuleNotFoundError, f"pip install {module}"):
                    use()

    def test_everything_has_a_short_form(self):
        compared = flopinj.compare(self.trace, self.trace)
        for one in (self.report, compared, flopinj.record(), flopinj.range("data", tokens=3)):
            self.assertRegex(repr(one), r"^<flopinj\.[^\n]{3,500}>$")
            self.assertNotIn(" object at ", repr(one))
        self.assertIn("hfu", self.report)
        self.assertIn("total", compared)
        self.assertNotIn("hfu", compared)

    def test_one_process_gives_figures_tables_and_page(self):
        from flopinj import _programs

        with unittest.mock.patch("flopinj._programs.call", wraps=_programs.call) as call:
            report = flopinj.reduce(self.trace)
            self.assertEqual(report.launches, self.report.launches)
            self.assertIn("kernels", report.tables)
            self.assertIn("<html", report.html())
            self.assertIn("HFU", report._repr_html_())
            self.assertEqual(call.call_count, 1)

    def test_text_and_page_are_the_programs(self):
        with unittest.mock.patch.dict(os.environ, COLUMNS="100"):
            done = subprocess.run([harness.FLOPREDUCE, self.trace], stdout=subprocess.PIPE,
                                  text=True, check=True)
            self.assertEqual(str(self.report), done.stdout)
        self.assertIn("<html", self.report.html())

    def test_a_summary_and_a_comparison(self):
        job = flopinj.merge([self.trace], out=self.folder / "job.sum")
        self.assertEqual(flopinj.reduce(job).flop, self.expected.flop)
        short = self.folder / "short.pb"
        expected = record(short, "--steps", "5")
        compared = flopinj.compare(self.trace, short)
        self.assertEqual({row["figure"]: row for row in compared["total"]}["flop"]["ratio"],
                         expected.flop / self.expected.flop)


    def test_one_function_has_two_names(self):
        self.assertIs(flopinj.load, flopinj.reduce)

    def test_a_figure_is_explained(self):
        explained = self.report.explain("ratio", also="phase_precisions")
        with unittest.mock.patch.dict(os.environ, COLUMNS="100"):
            done = subprocess.run([harness.FLOPREDUCE, "explain", "ratio", self.trace, "--also",
                                   "phase_precisions"], stdout=subprocess.PIPE, text=True,
                                  check=True)
            self.assertEqual(str(explained), done.stdout)
        self.assertIn("phase_precisions", explained.tables)
        self.assertRegex(repr(explained), "^<flopinj.Explanation: ratio>$")
        self.assertIn("<html", explained.html())
        with self.assertRaisesRegex(flopinj.Error, "nothing is named 'no such kernel'"):
            self.report.explain("no such kernel")
        # As the report was asked for: all figures of the screen are explained with its options.
        with_flop = flopinj.load(self.trace, formula_flop=self.expected.flop, peak="fp32=1T")
        self.assertIn("fp32", str(with_flop.explain("MFU")))

    @has("pandas")
    def test_tables_of_a_comparison_and_an_explanation(self):
        compared = flopinj.compare(self.trace, self.trace)
        kernels = compared.compared_kernels
        self.assertEqual(set(kernels["change"]), {"same"})
        self.assertEqual(sum(kernels["flop_a"]), self.expected.flop)
        explained = self.report.explain("phase:backward")
        self.assertEqual(sum(explained.stacks["flop"]), self.expected.phase_flop["backward"])

    def test_files_have_the_form_of_their_names(self):
        saved = {end: self.report.save(self.folder / f"saved{end}")
                 for end in (".html", ".json", ".db", ".md", ".txt")}
        self.assertEqual(json.loads(saved[".json"].read_text()), self.report._json)
        self.assertEqual(saved[".txt"].read_text(), str(self.report))
        self.assertIn("<html", saved[".html"].read_text())
        self.assertIn("| ", saved[".md"].read_text())
        with contextlib.closing(sqlite3.connect(saved[".db"])) as database:
            self.assertEqual(database.execute("SELECT sum(launches) FROM kernels").fetchone(),
                             (self.expected.launches,))
        tables = self.report.save(f"{self.folder}/saved/")
        self.assertTrue((tables / "kernels.csv").is_file())
        self.report.save(saved[".txt"])  # again
        with self.assertRaisesRegex(ValueError, r"form of '.pdf' is not known: there are .html"):
            self.report.save("report.pdf")

    def test_names_that_are_near_are_said(self):
        for wrong, near in (("kernel", "kernels"), ("explian", "explain"), ("hfuu", "hfu")):
            with self.assertRaisesRegex(AttributeError, f"'{wrong}': near .*{near}"):
                getattr(self.report, wrong)
        with self.assertRaisesRegex(KeyError, "near .*phases"):
            self.report["phase"]
        with self.assertRaisesRegex(AttributeError, "'recrod': near record"):
            flopinj.recrod  # noqa: B018

    def test_names_of_other_profilers_are_answered_with_ours(self):
        for name, like in (("profile", "flopinj.record"), ("query", "sql[(]SELECT"),
                           ("report", "flopinj.load"), ("demo", "flopinj demo --help")):
            with self.assertRaisesRegex(AttributeError, f"'{name}': .*{like}"):
                getattr(flopinj, name)
        for name, like in (("to_pandas", "data frames"), ("to_csv", "save[(]FILE"),
                           ("key_averages", "text[(]"), ("query", "sql[(]SELECT"),
                           ("zzzzzz", "keys[(][)] lists")):
            with self.assertRaisesRegex(AttributeError, f"'{name}': .*{like}"):
                getattr(self.report, name)
        with self.assertRaisesRegex(KeyError, "no table 'kernls': near kernels"):
            self.report.table("kernls")
        for name, like in (("HFU", "near hfu"), ("total_flops", "flop is"),
                           ("to_dict", "report[[]"), ("__dct__", "keys[(]"),
                           ("compare", "flopinj.compare[(]BEFORE")):
            with self.assertRaisesRegex(KeyError, f"'{name}': .*{like}"):
                self.report[name]
        with self.assertRaisesRegex(TypeError, "flopinj.step[(]tokens=4096[)]"):
            flopinj.step("name")
        for name, like in (("fail_if", "assert report.mfu"), ("gate", "--fail-if")):
            with self.assertRaisesRegex(AttributeError, f"'{name}': .*{like}"):
                getattr(self.report, name)
        with self.assertRaisesRegex(AttributeError, "'profile': annotate"):
            importlib.import_module("flopinj.torch").profile  # noqa: B018
        with self.assertRaisesRegex(ImportError, "'Profiler' from 'flopinj': with flopinj.record"):
            exec("from flopinj import Profiler")

    def test_keywords_of_others_are_answered_with_ours(self):
        for wrong, right in (("peaks", "peak="), ("skip", "skip_steps=5"),
                             ("zzz", "report, with _")):
            with self.assertRaisesRegex(flopinj.Error, f"no keyword {wrong}[:;] .*{right}"):
                flopinj.load(self.trace, **{wrong: 5})
        with self.assertRaisesRegex(TypeError, 'save[(]"report.html"[)]'):
            self.report.save(format="html")
        with self.assertRaisesRegex(TypeError, "save[(]'x.html'[)]"):
            self.report.html("x.html")
        with self.assertRaisesRegex(sqlite3.OperationalError, "such column.*kernels has kernel,"):
            self.report.sql("SELECT colour FROM kernels")
        with self.assertRaisesRegex(TypeError, "flopinj.load[(]\"/"), \
                open(self.trace, "rb") as file:
            flopinj.load(file)

    def test_a_misspelt_phase_is_heard(self):
        with self.assertWarnsRegex(RuntimeWarning, "did you mean 'forward'") as heard, \
                flopinj.phase("foward"):
            pass
        self.assertEqual(heard.filename, __file__)

    def test_a_partial_report_is_heard(self):
        part = self.folder / "part.pb"
        part.write_bytes(Path(self.trace).read_bytes()[:-100])
        with self.assertWarnsRegex(RuntimeWarning, "the report is partial: .*part.pb") as heard:
            report = flopinj.load(part)
        self.assertEqual(heard.filename, __file__)
        self.assertIn("the report is partial", report.notices[0])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            flopinj.load(self.trace)

    def test_what_does_nothing_is_heard(self):
        for call, words in ((flopinj.start, "flopinj run --dormant"),
                            (flopinj.stop, "flopinj.start[(][)] begins"),
                            (flopinj.record, "with flopinj.record[(][)] as run:")):
            with self.assertWarnsRegex(RuntimeWarning, words):
                self.assertIsNone(call() if call != flopinj.record else call() and None)
        with warnings.catch_warnings(), unittest.mock.patch.dict(os.environ, FLOPINJ_MODE="off"):
            warnings.simplefilter("error")
            self.assertIsNone(flopinj.start())
            self.assertIsNone(flopinj.stop())
        with self.assertRaisesRegex(AttributeError, "no 'start': .*with flopinj.record"), \
                flopinj.record() as run:
            run.start()

    def test_what_is_no_trace(self):
        for wrong in (5, None, [5]):
            with self.assertRaisesRegex(TypeError, "a trace is a name, a path"):
                flopinj.load(wrong)
        with self.assertRaisesRegex(ValueError, "no trace in the list"):
            flopinj.load([])
        with self.assertRaisesRegex(TypeError, "flopinj.formula[(]2"):
            flopinj.formula("my_product")
        with self.assertRaisesRegex(TypeError, r'flopinj.load[(]"x.pb"[)]'):
            flopinj.Report("x.pb")
        with self.assertRaisesRegex(TypeError, r'flopinj.compare[(]"a.pb", "b.pb"[)]'):
            flopinj.Comparison("a.pb", "b.pb")
        with self.assertRaisesRegex(TypeError, r'flopinj.load[(]TRACE[)].explain[(]"HFU"[)]'):
            flopinj.Explanation("HFU")
        for one in (flopinj.Report, flopinj.Comparison, flopinj.Explanation):
            with self.assertRaisesRegex(TypeError, r"returns an? "):
                one()

    def test_a_recording_is_no_decorator(self):
        for decorator in (lambda: flopinj.record, flopinj.record):
            with self.assertRaisesRegex(TypeError, "with flopinj.record[(][)] as run: train[(][)]"):
                @decorator()
                def train():
                    pass

    def test_what_a_report_offers(self):
        offered = dir(self.report)
        self.assertLess(len(offered), 80)
        self.assertEqual([name for name in offered if name.startswith("_")], [])
        self.assertLessEqual({"hfu", "mfu", "kernels", "explain", "save"}, set(offered))
        for name in offered:
            if name not in self.report.tables or has("pandas"):
                self.assertIsNotNone(getattr(type(self.report), name, name))


class Screen(html.parser.HTMLParser):
    """The words of a piece of HTML, and its tags with their styles."""

    def __init__(self, text):
        super().__init__()
        self.words, self.tags, self.open = "", [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data + "\n"


class Pictures(unittest.TestCase):
    """What people see of a report in notebooks, of a network whose steps, layers and peaks are
    known."""
    STEPS = 4

    @classmethod
    def setUpClass(cls):
        trace = Path(STAGE.name) / "gpt.pb"
        subprocess.run([TRAINER, "--model", "gpt", "--ranges", "pytorch", "--steps",
                        str(cls.STEPS)], check=True, timeout=240, stdout=subprocess.DEVNULL,
                       env=injected_environment(trace, SIMGPU_CHIP="SG4"))
        cls.report = flopinj.reduce(trace)

    def rows(self, query):
        return self.report._database.execute(query).fetchall()

    def test_the_first_screen_in_a_notebook(self):
        for report in (self.report, flopinj.reduce(TRAINING)):
            page = report._repr_html_()
            self.assertLess(len(page.encode()), 20_000)
            screen = Screen(page)
            self.assertEqual(screen.open, [])
            self.assertLessEqual({tag for tag, _ in screen.tags}, {"div", "span", "b"})
            for name in ("Executed", "HFU", "MFU", "Coverage"):  # as the terminal has them
                value = re.search(rf"^  {name}  +(.+?)(?:  |$)", str(report), re.MULTILINE)[1]
                self.assertIn(f"\n{name}\n{value}\n", screen.words)

    def test_bars_of_the_first_screen_end_at_mfu(self):
        bars = [tuple(float(style[key]) for key in ("margin-left", "width"))
                for tag, attributes in Screen(self.report._repr_html_()).tags
                for style in [dict(re.findall(r"([\w-]+):([\d.]+)%", attributes.get("style", "")))]
                if "margin-left" in style]
        self.assertGreater(len(bars), 3)
        end = 0
        for left, width in bars:
            self.assertAlmostEqual(left, end, delta=0.02)
            end = left + width
        self.assertAlmostEqual(end, 100, delta=0.02)
        self.assertAlmostEqual(bars[-1][1], 100 * self.report.mfu, delta=0.02)

    def test_names_are_text(self):
        from flopinj import _screen

        name = "<script>alert(1)</script>&"
        rows = [{**row, "text": name} if row["part"] == "program" else row
                for row in self.report["screen"]]
        screen = Screen(_screen.html({**self.report._json, "screen": rows}))
        self.assertNotIn("script", [tag for tag, _ in screen.tags])
        self.assertIn(name, screen.words)

    @has("matplotlib")
    def test_plots_have_labels_with_units(self):
        import matplotlib
        from flopinj._show import PLOTS

        matplotlib.use("agg")
        units = {"waterfall": ("%", ""), "steps": ("step", "ms"), "roofline": ("FLOP/B", "FLOP/s")}
        for what in PLOTS:
            axes = self.report.plot(what)
            axes.figure.canvas.draw()
            self.assertIn("simulated", axes.get_title())
            unit, other = units.get(what, ("ms", what.removesuffix("s")))
            self.assertTrue(axes.get_xlabel().endswith(unit), axes.get_xlabel())
            self.assertTrue(axes.get_ylabel().endswith(other), axes.get_ylabel())
            self.assert_all_text_is_seen(axes, what)
        with self.assertRaisesRegex(ValueError, "roofline"):
            self.report.plot("rooflines")
        self.assertIn("not known", flopinj.reduce(TRAINING).plot("waterfall").texts[0].get_text())

    def assert_all_text_is_seen(self, axes, what):
        """Inside of the figure, and names of points beside each other."""
        whole = axes.figure.bbox
        texts = [axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            texts += [tick.label1 for tick in axis.get_major_ticks()
                      if low <= tick.get_loc() <= high]
        for text in texts:
            if not text.get_text() or not text.get_visible():
                continue
            box = text.get_window_extent()
            inside = (box.x0 >= -1 and box.y0 >= -1 and box.x1 <= whole.x1 + 1
                      and box.y1 <= whole.y1 + 1)
            self.assertTrue(inside, (what, text.get_text(), box))
        if what == "roofline":
            boxes = [text.get_window_extent() for text in axes.texts]
            self.assertGreater(len(boxes), 1)
            for one, other in itertools.combinations(boxes, 2):
                self.assertFalse(one.overlaps(other))

    @has("matplotlib")
    def test_plots_have_the_colours_of_the_page(self):
        import matplotlib
        from matplotlib.colors import to_hex

        matplotlib.use("agg")
        style = (harness.SOURCE / "tools/flopreduce/writers/html/page.css").read_text()
        colors = dict(re.findall(r"--([\w-]+): (#\w+);", style.split("@media")[0]))
        phases = dict(re.findall(r'(\w+): "--([\w-]+)"', (
            harness.SOURCE / "tools/flopreduce/writers/html/data.js").read_text()))
        axes = self.report.plot("phases")
        for label, bar in zip(axes.get_yticklabels(), axes.patches):
            self.assertEqual(to_hex(bar.get_facecolor()), colors[phases[label.get_text()]])
        lines = dict(re.findall(r'(\w+): "var\(--([\w-]+)\)"', (
            harness.SOURCE / "tools/flopreduce/writers/html/lost.js").read_text()))
        shown = [line for (line,) in self.rows(
            "SELECT line FROM lost WHERE parent IS NULL AND ns > 0")]
        bars = self.report.plot("waterfall").patches
        self.assertEqual([to_hex(bar.get_facecolor()) for bar in bars],
                         [colors[lines[line]] for line in shown])

    @has("matplotlib")
    def test_plots_show_the_tables(self):
        import matplotlib

        matplotlib.use("agg")

        def widths(what):
            return sorted(round(bar.get_width(), 6) for bar in self.report.plot(what).patches)

        def column(query):
            return sorted(round(value, 6) for (value,) in self.rows(query))

        self.assertEqual(widths("phases"), column("SELECT gpu_time_ns / 1e6 FROM phases"))
        self.assertEqual(widths("layers"), column(
            "SELECT forward_gpu_time_ns / 1e6 FROM layers UNION ALL"
            " SELECT backward_gpu_time_ns / 1e6 FROM layers"))
        self.assertEqual(widths("waterfall"), column(
            "SELECT 100 * share FROM lost WHERE parent IS NULL AND ns > 0"))
        wall, gpu = self.report.plot("steps").lines
        self.assertEqual(list(wall.get_xdata()), list(range(1, self.STEPS + 1)))
        self.assertEqual(sorted(gpu.get_ydata()), sorted(
            value for (value,) in self.rows("SELECT gpu_time_ns / 1e6 FROM step_list")))


CLIENT = DRIVER + "begin()\n"
MARKING = CLIENT + """
@flopinj.range('layer:one')
def layer():
    launch(40)

@flopinj.range
def update():
    launch(9)

for i in range(6):
    with flopinj.step(tokens=10 + i):
        with flopinj.range('data', tokens=1, images=2):
            pass
        with flopinj.phase('forward', images=i):
            launch(100)
            layer()
        with flopinj.phase('backward'):
            launch(70)
        with flopinj.phase('optimizer'):
            update()
ok(driver.cuCtxSynchronize())
"""
CONTROLLING = CLIENT + """
def launches(count):
    for _ in range(count):
        launch(100)
    ok(driver.cuCtxSynchronize())

launches(3)
print(flopinj.status())
print(flopinj.start(sys.argv[2], level='tally'))
launches(7)
print(flopinj.status())
print(flopinj.start('other.pb'))
print(flopinj.stop())
launches(5)
print(flopinj.stop())
"""
# argv: the kernels, when CUDA begins, a trace, options.
INSIDE = DRIVER + """
import json, os
when, trace, options = sys.argv[2], sys.argv[3], json.loads(sys.argv[4])

def recorded(n, output=None, **more):
    with flopinj.record(output, **options, **more) as run:
        if when == 'inside' and 'axpy' not in globals():
            begin()
        with flopinj.step(tokens=n):
            for _ in range(n):
                launch(100)
    return run

if when == 'before':
    with flopinj.step():  # nothing is injected yet
        begin()
    launch(1000)
variables = dict(os.environ)
print(recorded(20).report.flop)
assert os.environ == variables
launch(1000)
run = recorded(30, trace, launch_count=20)
assert list(map(str, run.traces)) == [trace], run
print(run.report.flop)
print({row['range']: row['launches'] for row in run.report['ranges']})
print(run.report['numbers'][0]['number'], run.report['numbers'][0]['total'])
"""
REFUSED = DRIVER + """
import json
when, options = sys.argv[2], json.loads(sys.argv[3])
if when == 'before':
    begin()
try:
    with flopinj.record(**options) as run:
        if when == 'inside':
            begin()
        elif when == 'no GPU':
            print(driver.cuInit(0)[0].name)
        elif when == 'nested':
            with flopinj.record() as inner:
                print('inner')
            inner.report
        elif when == 'early':
            run.report
        elif when == 'error':
            raise flopinj.Error("the program's own", 1)
    print('went on')
    if when == 'again':
        with run:
            print('never')
    run.report
except flopinj.Error as error:
    print(error)
"""
# argv: the kernels, options, a folder that is empty. Each thread records as often as there are
# rounds; of threads that begin at once one does.
THREADS = DRIVER + """
import json, os, threading
options, rounds = json.loads(sys.argv[2]), 5
begin()
launch(100)
variables = dict(os.environ)
barrier = threading.Barrier(3)
runs = []

def trains():
    for _ in range(rounds):
        barrier.wait()
        with flopinj.record(**options) as run:
            barrier.wait()  # both have begun
            runs.append(run)

threads = [threading.Thread(target=trains) for _ in range(2)]
for thread in threads:
    thread.start()
for _ in range(rounds):
    barrier.wait()
    barrier.wait()
    launch(100)
for thread in threads:
    thread.join()
assert os.environ == variables, set(os.environ) ^ set(variables)
whole = refused = 0
for run in runs:
    try:
        whole += run.report.launches in (0, 1)  # which may come before or behind the end
    except flopinj.Error as error:
        refused += 'has not ended' in str(error)
print(whole, refused, os.listdir())
"""
# A child that is forked inside ends as a process does that nobody made by multiprocessing.
FORKED = DRIVER + """
import json, os
when, where, options = sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
variables = dict(os.environ)

def child():
    if os.fork() == 0:
        sys.exit(0)
    assert os.wait()[1] == 0

if when == 'before':
    begin()
with flopinj.record(**options) as run:
    if when == 'inside':
        begin()
    launch(100)
    if where == 'inside':
        child()
if where == 'behind':
    child()
if where == 'recording':  # the child records, too
    if os.fork() == 0:
        with flopinj.record(**options) as own:
            pass
        assert os.environ == variables
        sys.exit(0)
    assert os.wait()[1] == 0
print(run.report.launches)
"""
# Entered, and never left.
LEFT_OPEN = DRIVER + """
import json
run = flopinj.record(**json.loads(sys.argv[2]))
run.__enter__()
begin()
launch(100)
sys.exit(0)
"""
# Between simgpu's CUPTI and the library. Says each time that CUPTI is given back.
FINALIZING = """
#include <dlfcn.h>
#include <unistd.h>
int cuptiFinalize(void) {
  const int result = ((int (*)(void))dlsym(RTLD_NEXT, "cuptiFinalize"))();
  (void)!write(1, "finalized\\n", 10);
  return result;
}
"""
ENDING = DRIVER + """
import json
begin()
for _ in range(3):
    with flopinj.record(**json.loads(sys.argv[2])) as run:
        launch(100)
    print(run.report.launches, flush=True)
"""
# A notebook's shell. argv: the kernels, then cells.
CELLS = """
import sys
from IPython.core.interactiveshell import InteractiveShell

sys.stderr = sys.stdout
shell = InteractiveShell()
for cell in ('%load_ext flopinj', *sys.argv[2:]):
    print('CELL')
    shell.run_cell(cell)
"""


@has("cuda.bindings")
class Programs(harness.TestCase):

    def client(self, code, *arguments, injected=True, environment=None, folder=None, **settings):
        env = injected_environment(self.trace, **settings) if injected else clean_environment()
        env["LD_LIBRARY_PATH"] = str(harness.SIMGPU)
        env["PYTHONPATH"] = STAGE.name
        env.update({name: str(value) for name, value in (environment or {}).items()})
        done = harness.run([sys.executable, "-c", code, CLIENTS / "client_kernels.ptx",
                            *arguments], env, cwd=folder or self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.said = done.stderr
        return done.stdout.splitlines()

    def test_ranges_of_the_program(self):
        self.client(MARKING)
        ranges = harness.reduce(self.trace)["ranges"]
        self.assertEqual({row["range"]: (row["launches"], harness.exact(row)) for row in ranges}, {
            "step": (24, 6 * 2 * 219),
            "step/forward": (12, 6 * 2 * 140),
            "step/forward/layer:one": (6, 6 * 2 * 40),
            "step/backward": (6, 6 * 2 * 70),
            "step/optimizer": (6, 6 * 2 * 9),
            "step/optimizer/update": (6, 6 * 2 * 9),
        })

    def test_numbers_of_ranges_become_flop_for_each(self):
        tokens, flop = sum(10 + i for i in range(6)), 6 * 2 * 219
        for level in ("launches", "tally"):
            self.client(MARKING, FLOPINJ_LEVEL=level, FLOPINJ_FORCE=1)
            summary = self.folder / f"{level}.sum"
            flopinj.merge([self.trace], out=summary)
            for trace in (self.trace, summary):
                report = flopinj.reduce(trace)
                given = {(row["number"], row["path"]): (row["times"], row["total"],
                                                        row["flop_each"])
                         for row in report["numbers"] if not row["whole"]}
                self.assertEqual(given, {
                    ("tokens", "step"): (6, tokens, flop / tokens),
                    ("tokens", "step/data"): (6, 6, None), ("images", "step/data"): (6, 12, None),
                    ("images", "step/forward"): (6, 15, 6 * 2 * 140 / 15),
                })
                whole = {row["number"]: (row["total"], row["flop_each"])
                         for row in report["numbers"] if row["whole"]}
                self.assertEqual(sorted(whole), ["images", "tokens"])
                self.assertEqual(whole["tokens"], (tokens, flop / tokens))
                self.assertIn(f"executed FLOP / {tokens} tokens", str(report))
                rows = report._database.execute(
                    "SELECT total, flop_each FROM numbers WHERE number = 'tokens'").fetchall()
                self.assertEqual([total for total, _ in rows], [tokens, tokens, 6])

    def test_a_formula_of_the_programs_own(self):
        code = CLIENT + """
for _ in range(5):
    with flopinj.step():
        with flopinj.phase('forward'), flopinj.formula(300, 'mine'):
            launch(100)
        with flopinj.phase('backward'), flopinj.formula(600, 'mine'):
            launch(100), launch(100)
ok(driver.cuCtxSynchronize())
"""
        self.client(code)
        report = harness.reduce(self.trace)
        self.assertEqual(report["figures"]["formula_flop"], 5 * 900)
        self.assertEqual({row["phase"]: row["formula_flop"] for row in report["operators"]
                          if row["operator"] == "formula::mine"},
                         {"forward": 5 * 300, "backward": 5 * 600})
        # Executed are 2 n FLOP a launch, of which MFU takes the formulas' part.
        figures = report["figures"]
        self.assertAlmostEqual(figures["mfu"] / figures["hfu"], 900 / (3 * 2 * 100))

    def test_numbers_by_another_library_of_nvtx(self):
        code = CLIENT + """
import nvtx
with nvtx.annotate('forward'):
    for n in (5, 2**40, -1, 2.5):  # the last two are no such numbers
        nvtx.mark('tokens', domain='flopinj', payload=n)
    nvtx.mark('tokens', domain='another', payload=7)
    nvtx.mark('tokens', payload=7)
    launch(100)
ok(driver.cuCtxSynchronize())
"""
        self.client(code)
        whole, given = harness.reduce(self.trace)["numbers"]
        self.assertEqual((whole["number"], whole["total"]), ("tokens", 2**40 + 5))
        self.assertEqual((given["path"], given["times"]), ("forward", 2))

    def test_numbers_of_ranges_that_are_left_out(self):
        self.client(MARKING, FLOPINJ_NVTX_INCLUDE="forward/")
        numbers = {n["number"]: n["total"] for n in harness.reduce(self.trace)["numbers"]}
        self.assertEqual(numbers, {"images": 15})

    def test_ranges_that_cannot_be(self):
        for wrong in (5, None):
            with self.assertRaisesRegex(TypeError, r'a range needs a name, as in @flopinj.range'):
                flopinj.range(wrong)
        self.assertEqual(repr(flopinj.range("a\udcff")), "<flopinj.range 'a?'>")

    @has("pytest")
    def test_limits_of_a_pytest(self):
        """Of a kernel with 2 n FLOP. In a program that runs already it is counted from its second
        launch on."""
        tests = self.folder / "test_limits.py"
        tests.write_text(DRIVER + """
import pytest
sys.argv[1] = KERNELS
flop = lambda *limits, **more: pytest.mark.flop(*limits, record=RECORD, **more)

def work():  # 800 FLOP
    for _ in range(4): launch(100)

@flop(max=800)
def test_fits():
    begin()
    work()

@flop(max=799)
def test_too_many(): work()

@flop('launches < 4', min=800)
def test_conditions(): work()

@flop(mfu_min=0.5)
def test_not_known(): work()

@flop(max=1)
def test_fails_by_itself():
    work()
    assert 1 == 2

@flop(maximum=1)
def test_no_such_limit(): work()

@flop()
def test_no_limit(): work()

def test_without(): work()
""".replace("KERNELS", repr(str(CLIENTS / "client_kernels.ptx"))).replace(
            "RECORD", repr({"simulate": True, "budget": "none", "plan_wait_ms": 60000})))
        env = {**clean_environment(), "LD_LIBRARY_PATH": str(harness.SIMGPU),
               "PYTHONPATH": STAGE.name, "COLUMNS": "300"}
        done = harness.run([sys.executable, "-m", "pytest", "-p", "flopinj.pytest_plugin", "-p",
                            "no:cacheprovider", "-rA", "--strict-markers", tests], env,
                           cwd=self.folder)
        said = re.findall(r"^(PASSED|FAILED|SKIPPED|ERROR) \S*::(\w+)(?: - (.*))?$", done.stdout,
                          re.MULTILINE)
        self.assertEqual({name: result for result, name, _ in said}, {
            "test_fits": "PASSED", "test_too_many": "FAILED", "test_conditions": "PASSED",
            "test_not_known": "FAILED", "test_fails_by_itself": "FAILED",
            "test_no_such_limit": "FAILED", "test_no_limit": "FAILED", "test_without": "PASSED"},
            done.stdout)
        reasons = {name: reason for _, name, reason in said}
        self.assertIn("gate failed: 'flop > 799': flop = 800", reasons["test_too_many"])
        self.assertIn("mfu is not known", reasons["test_not_known"])
        self.assertIn("assert 1 == 2", reasons["test_fails_by_itself"])
        self.assertIn("limits are max, min", reasons["test_no_such_limit"])
        self.assertIn("without a limit", reasons["test_no_limit"])

    @has("pytest")
    def test_a_pytest_that_cannot_be_recorded_is_skipped(self):
        tests = self.folder / "test_nothing.py"
        tests.write_text("import pytest\n\n@pytest.mark.flop(max=1)\ndef test_nothing(): pass\n")
        env = {**clean_environment(), "PYTHONPATH": STAGE.name}
        done = harness.run([sys.executable, "-m", "pytest", "-p", "flopinj.pytest_plugin", "-p",
                            "no:cacheprovider", "-rA", tests], env, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"SKIPPED .*nothing was recorded: (neither this|no NVIDIA)")

    def test_numbers_that_cannot_be(self):
        with self.assertRaisesRegex(ValueError, "tokens=-1: a range's numbers are from 0"):
            flopinj.range("data", tokens=-1)
        with self.assertRaises(TypeError):
            flopinj.range("data", tokens=0.5)

    def test_ranges_without_their_library(self):
        package = self.folder / "package"
        (staged.stage(package, harness.BUILD) / "flopinj" / "_tree").unlink()
        code = "import flopinj\nwith flopinj.step(), flopinj.range('a', n=1): print('went on')\n"
        env = {**clean_environment(), "PYTHONPATH": str(package), "NVTX_INJECTION64_PATH": "x.so"}
        done = harness.run([sys.executable, "-c", 2 * code], env)
        self.assertEqual((done.returncode, done.stdout), (0, "went on\n" * 2), done.stderr)
        self.assertRegex(done.stderr, "^flopinj: the program's ranges are not seen: .*\n$")

    def test_nothing_happens_where_nothing_is_injected(self):
        self.client(MARKING, injected=False)
        lines = self.client(CONTROLLING, "now.pb", injected=False)
        self.assertEqual(lines, ["None"] * 6)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_program_begins_and_ends_its_own_recording(self):
        for settings in ({}, {"FLOPINJ_NO_CONTROL": 1}):
            with self.subTest(**settings):
                self.check_own_recording(**settings)
                self.trace.unlink()

    def check_own_recording(self, **settings):
        first, name, second, refused, stopped, again = self.client(
            CONTROLLING, self.trace, FLOPINJ_DORMANT=1, **settings)
        self.assertIn("'state': 'dormant'", first)
        self.assertEqual(name, str(self.trace))
        self.assertIn("'state': 'recording'", second)
        self.assertEqual(refused, "None")
        self.assertRegex(self.said, "(?m)^flopinj: it records already, to")
        self.assertEqual((stopped, again), (name, name))
        self.assertEqual(harness.reduce(self.trace)["figures"]["launches"], 7)

    def test_a_library_of_another_version(self):
        library = self.folder / "another.so"
        subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", library,
                        "-Wl,-soname,libflopinj.so"], check=True)
        self.assertEqual(self.client("import ctypes, flopinj, sys\nctypes.CDLL(sys.argv[2])\n"
                                     "print(flopinj.status())", library, injected=False), ["None"])
        self.assertRegex(self.said, "^flopinj: .* are of different versions of flopinj: .*\n$")

    def inside(self, code, *arguments, injected=False, environment=None, folder=None, **options):
        options = {"budget": "100", "plan_wait_ms": 60000, **options}
        return self.client(code, *arguments, json.dumps(options), injected=injected,
                           environment=environment, folder=folder)

    def test_recordings_from_inside(self):
        for when in ("inside", "before"):
            with self.subTest(cuda_begins=when):
                trace = self.folder / f"{when}.pb"
                lines = self.inside(INSIDE, when, trace)
                self.assertEqual(lines, [str(20 * 2 * 100), str(20 * 2 * 100), "{'step': 20}",
                                         "tokens 30"])
                self.assertEqual(harness.reduce(trace)["figures"]["launches"], 20)

    def test_a_recording_from_inside_of_a_dormant_program(self):
        self.assertEqual(
            self.inside(INSIDE, "inside", self.folder / "own.pb", injected=True,
                        environment={"FLOPINJ_DORMANT": 1})[:1], [str(20 * 2 * 100)])

    def test_a_recording_from_inside_that_cannot_be(self):
        """The program goes on, and who asks for the report is told why there is none."""
        for when, reason, options, environment in (
                ("never", "nothing was recorded: neither this process nor", {}, {}),
                ("before", f"FLOPINJ_CUPTI={__file__} cannot be loaded", {"cupti": __file__}, {}),
                ("inside", f"FLOPINJ_CUPTI={__file__} cannot be loaded", {"cupti": __file__}, {}),
                ("no GPU", "nothing was recorded|there is no GPU here", {}, {"SIMGPU_DEVICES": 0}),
                ("before", "no-such-folder", {"output": "no-such-folder/t.pb"}, {}),
                ("never", "nothing was recorded: FileNotFoundError", {}, {"PATH": ""})):
            with self.subTest(cuda_begins=when, options=options):
                *before, line = self.inside(REFUSED, when, environment=environment, **options)
                no_gpu = ["CUDA_ERROR_NO_DEVICE"] if when == "no GPU" else []
                self.assertEqual(before, [*no_gpu, "went on"])
                self.assertRegex(line, reason)

    def test_a_recording_from_inside_that_is_asked_for_wrongly(self):
        """Each is one line."""
        for when, reason, options in (
                ("nested", "has not ended: a process has one recording at a time", {}),
                ("early", "no trace before its `with` has ended", {}),
                ("error", "the program's own", {}),
                ("again", "has begun before: flopinj.record[(][)] begins another", {}),
                ("never", "there is no keyword bugdet: did you mean budget", {"bugdet": 3}),
                ("never", "there is no keyword interval; keywords are options of flopinj run",
                 {"interval": 1}),
                ("never", "--cupti: /none is neither a file nor a folder", {"cupti": "/none"}),
                ("never", "torch: only `flopinj run` can", {"torch": True})):
            with self.subTest(cuda_begins=when, options=options):
                *before, line = self.inside(REFUSED, when, **options)
                self.assertEqual(before, {"nested": ["inner"], "again": ["went on"]}.get(when, []))
                self.assertRegex(line, reason)

    def test_another_profiler(self):
        for when in ("before", "inside"):
            _, line = self.inside(REFUSED, when, environment={"SIMGPU_FAULT": "second_subscriber"})
            self.assertIn("another CUPTI client is in this process", line)
        for when, reason in (("before", "it records already, to"),
                             ("inside", "this process is profiled from its start")):
            _, line = self.inside(REFUSED, when, injected=True)
            self.assertIn(reason, line)

    def test_a_line_break_in_a_setting_breaks_no_later_recording(self):
        code = DRIVER + """
import json
options = json.loads(sys.argv[2])
begin()
for wrong in ({'output': 'a\\nb.pb'}, {'output': 'a\\nb=c.pb'}, {'job': 'a\\nexport b=c'}):
    try:
        with flopinj.record(**{**options, **wrong}):
            print('never')
    except flopinj.Error as error:
        print(error.exit_code, error)
with flopinj.record(**options) as run:
    launch(100)
print(run.report.launches, sorted(flopinj.status()))
"""
        *refused, last = self.inside(code)
        self.assertEqual(len(refused), 3)
        for line in refused:
            self.assertRegex(line, r"^2 --(output|job): .*\\x0A.* has a line break in it")
        self.assertRegex(last, r"^1 .*'recordings', 'recordings_kept', 'seconds', 'startup_ns', "
                               r"'state'")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_recordings_that_threads_begin_at_once(self):
        folder = self.folder / "current"
        folder.mkdir()
        (line,) = self.inside(THREADS, folder=folder)
        self.assertEqual(line, "5 5 []")

    def test_what_a_forked_child_does_leaves_the_recording_alone(self):
        for when, where in (("before", "inside"), ("inside", "inside"), ("before", "behind"),
                            ("inside", "behind"), ("before", "recording")):
            with self.subTest(cuda_begins=when, fork=where):
                self.assertEqual(self.inside(FORKED, when, where), ["1"])

    def test_a_recording_that_is_never_left(self):
        self.assertEqual(self.inside(LEFT_OPEN), [])
        self.assertEqual(self.said, "")

    def test_the_end_does_not_wait_for_a_call_of_the_programs(self):
        library = self.folder / "libcupti.so.13"
        source = self.folder / "finalizing.c"
        source.write_text(FINALIZING)
        subprocess.run(["cc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", library, source,
                        "-Wl,-soname,finalizing.so,--no-as-needed",
                        harness.SIMGPU / "libcupti.so.13", f"-Wl,-rpath,{harness.SIMGPU}"],
                       check=True)
        self.assertEqual(self.inside(ENDING, cupti=str(library)), ["finalized", "1"] * 3)

    def test_a_simulated_gpu_and_programs_that_are_started(self):
        code = """
import flopinj, subprocess, sys
with flopinj.record(simulate=True, budget=100, plan_wait_ms=60000) as run:
    print(subprocess.run(sys.argv[2:], check=True, stdout=subprocess.PIPE).stdout.decode())
assert len(run.traces) == 1, run
print(run.report.flop)
"""
        *shapes, flop = self.client(code, TRAINER, "--model", "cnn", "--mode", "autograd-thread",
                                    "--print-shapes", injected=False,
                                    environment={"LD_LIBRARY_PATH": ""})
        self.assertEqual(int(flop), theory.Expected(json.loads("".join(shapes))).flop)

    @has("IPython")
    def test_cells(self):
        kernels = str(CLIENTS / "client_kernels.ptx")
        launches = f"import sys; sys.argv = ['', {kernels!r}]\n" + CLIENT
        text = "\n".join(self.client(
            CELLS, "%%flopinj\n1 + 1", f"%%flopinj --budget=100 --plan-wait-ms=60000\n{launches}"
            "for _ in range(20): launch(100)", "%%flopinj run --level=tally\nlaunch(100)\n1 / 0",
            "%%flopinj --bugdet\n2", "run.report.launches", injected=False,
            environment={"IPYTHONDIR": self.folder}))
        loaded, nothing, shown, failed, wrong, named = text.split("CELL\n")[1:]
        self.assertEqual(loaded, "")
        self.assertIn("flopinj: nothing was recorded", nothing)
        self.assertNotIn("Error", nothing)
        self.assertRegex(shown, r"^Out.*: <flopinj.Report: 4,000 FLOP in 20 launches, simulated>$")
        self.assertIn("ZeroDivisionError", failed)
        self.assertNotIn("Report", failed)
        self.assertIn("UsageError: there is no keyword bugdet: did you mean budget", wrong)
        self.assertRegex(named, "^Out.*: 1$")

    def test_variables_for_another_program(self):
        settings = flopinj.environment(output=str(self.trace), simulate=True, quiet=True)
        self.assertEqual(settings["CUDA_INJECTION64_PATH"], os.path.realpath(harness.LIBRARY))
        subprocess.run([TRAINER, "--steps", "1"], env={**clean_environment(), **settings},
                       check=True, stderr=subprocess.DEVNULL, timeout=120)
        self.assertGreater(harness.reduce(self.trace)["figures"]["launches"], 0)


if __name__ == "__main__":
    harness.main()
