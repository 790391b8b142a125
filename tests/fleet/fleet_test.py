"""flopinj fleet on this machine, over simulated ranks: what a lake says is what flopreduce says of
the traces themselves, whatever was repeated, killed, damaged or taken away."""

import csv
import datetime
import doctest
import gzip
import io
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python"), str(HERE.parent / "support")]
import simulated_fleet  # noqa: E402
import staged  # noqa: E402
from report_tables import figure, known  # noqa: E402

BUILD = Path(os.environ["FLOPINJ_BUILD"]).resolve()
SCRATCH = tempfile.TemporaryDirectory(prefix="flopinj-fleet-")
STAGE = staged.stage(Path(SCRATCH.name) / "packages", BUILD)
sys.path.insert(0, str(STAGE))

try:
    import duckdb
    import fsspec  # noqa: F401
    import pyarrow
    import pyarrow.parquet
except ImportError as missing:
    print(f"skipped: {missing}; `tools/dev test` brings it")
    sys.exit(77)

import flopinj  # noqa: E402
from flopinj.fleet import Lake, ingest, keep, layout, plan  # noqa: E402

SIZE = 40
plan._FILES_IN_PART = 7  # so that a job has several parts
#: Columns that depend on when and how a job was taken in.
HOW = {"ingest", "pack", "taken_in", "source", "version"}


def reduce(*arguments):
    done = subprocess.run([BUILD / "bin/flopreduce", *map(str, arguments)],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.stdout


def report_of(*traces):
    return json.loads(reduce("--format=json", *traces))


def content(lake):
    """All rows of all tables, wherever their traces were."""
    found, lake = {}, Lake(lake)
    for table in ("jobs", *layout.TABLES):
        rows = lake.sql(f"SELECT * FROM {table}")
        rows = rows.drop_columns([c for c in rows.column_names if c in HOW])
        found[table] = sorted(map(repr, rows.to_pylist()))
    return found


def summaries(lake):
    return {file.parent.name.removeprefix("job="): unpacked(file)
            for file in Path(lake).glob("summaries/*/*.sum.zst")}


def unpacked(file):
    with pyarrow.input_stream(str(file), compression="zstd") as plain:
        return plain.read()


#: Ends the process before the write or removal of this number, as a signal would.
ENDING = """if True:
    import os
    from flopinj.fleet.place import Place
    left = {n}
    def ending(of):
        def one(*words):
            global left
            left -= 1
            if left < 0: os._exit(9)
            return of(*words)
        return one
    Place.put = ending(Place.put)
    remove = Place.remove
    def each(self, *names):
        for name in names: ending(remove)(self, name)
    Place.remove = each"""


class Killed(subprocess.Popen):
    """Of the programs that are chosen, each is ended by a signal as soon as it has begun."""

    def __init__(self, command, *args, **kwargs):
        self.is_chosen = self.chosen(command)
        super().__init__(command, *args, **kwargs)
        if self.is_chosen:
            self.end()

    def end(self):
        self.kill()


class KilledAtItsEnd(Killed):
    """The signal comes when all that it writes is there."""

    def end(self):
        pass

    def communicate(self, *args, **kwargs):
        said = super().communicate(*args, **kwargs)
        if self.is_chosen:
            self.returncode = -signal.SIGKILL
        return said


class Folder(unittest.TestCase):
    """Two jobs, a job's traces in a folder, and their lake."""

    @classmethod
    def setUpClass(cls):
        cls.runs = Path(tempfile.mkdtemp(dir=SCRATCH.name)) / "runs"
        cls.jobs = simulated_fleet.make(BUILD, cls.runs, 2, SIZE)
        cls.lake = cls.runs.parent / "lake"
        cls.outcome = ingest(cls.runs, cls.lake)

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(dir=SCRATCH.name))
        self.other = self.folder / "lake"

    def copy(self):
        return Path(shutil.copytree(self.runs, self.folder / "runs"))

    def rows(self, query, lake=None):
        return Lake(lake or self.lake).sql(query).to_pylist()


class Tables(Folder):
    def test_a_job_is_what_flopreduce_says_of_its_traces(self):
        self.assertEqual((self.outcome.traces, self.outcome.problems), (2 * SIZE, []))
        for row in self.rows("SELECT * FROM jobs"):
            flat = self.folder / f"{row['job']}.sum"
            reduce("merge", "-o", flat, self.runs / row["job"])
            figures = report_of(flat)["figures"]
            self.assertEqual(row["flop"], int(figures["flop_exact"]))
            for name in ("launches", "gpu_time_ns", "hfu", "mfu", "hfu_kernel_time", "coverage",
                         "ratio", "step_time"):
                self.assertEqual(row[name], figures[name], name)
            self.assertEqual((row["processes"], row["world_size"], row["ranks_missing"]),
                             (SIZE, SIZE, 0))
            self.assertTrue(row["simulated"])

    def test_flop_by_sql_are_those_of_the_report_to_the_last_digit(self):
        sums = self.rows("SELECT job, sum(flop) AS flop, sum(launches) AS launches, "
                         "sum(gpu_time_ns) AS ns FROM rows GROUP BY job")
        self.assertEqual(len(sums), 2)
        for row in sums:
            total = report_of(self.runs / row["job"])["figures"]
            self.assertEqual((int(row["flop"]), int(row["launches"]), int(row["ns"])),
                             (int(total["flop_exact"]), total["launches"], total["gpu_time_ns"]))

    def test_the_planted_ranks_are_the_stragglers(self):
        from flopinj.fleet import lake

        found = self.rows(lake.query("stragglers", top=100))
        self.assertEqual({(row["job"], row["rank"]) for row in found},
                         {(job.name, job.slow_rank) for job in self.jobs})
        for row in found:
            self.assertAlmostEqual(row["slowdown"], simulated_fleet.SLOWDOWN, delta=0.02)
        self.assertEqual(self.rows(lake.query("stragglers", over=1.4)), [])

    def test_the_summary_is_that_of_all_traces_at_once(self):
        for job in self.jobs:
            flat = self.folder / f"{job.name}.sum"
            reduce("merge", "-o", flat, job.folder)
            self.assertEqual(summaries(self.lake)[job.name], flat.read_bytes())

    def test_text_and_time_come_back_as_they_were(self):
        runs = self.folder / "runs"
        runs.mkdir()
        trace = simulated_fleet.ranks.Trace(self.jobs[0].traces[1].read_bytes())
        (runs / "a.pb").write_bytes(trace.of_rank(
            0, 1, host="=1+1,\"x\"", session=5, begin_ns=simulated_fleet.MAY))
        ingest(runs, self.other, job_from="{job}.pb")
        (row,) = self.rows("SELECT hostname, epoch_us(begin) AS begin FROM processes, jobs",
                           self.other)
        self.assertEqual(row, {"hostname": "=1+1,\"x\"", "begin": simulated_fleet.MAY // 1000})


class Questions(Folder):
    """Those that come with flopinj."""

    def ask(self, name, **limits):
        from flopinj.fleet import lake

        return self.rows(lake.query(name, **{"top": 1000, "price": 2.5, "electricity": 0.3,
                                           **limits}))

    def test_their_sums_agree_with_the_reports(self):
        reports = {job.name: report_of(job.folder) for job in self.jobs}
        hours = {name: report["lost_capacity"][0]["capacity_ns"] / 3.6e12
                 for name, report in reports.items()}
        jobs = {row["job"]: row for row in self.ask("jobs")}
        for name, row in jobs.items():
            self.assertAlmostEqual(row["gpu_hours"], hours[name], delta=1e-9 * hours[name])
            self.assertAlmostEqual(row["cost"], 2.5 * hours[name], delta=1e-9)
            self.assertEqual(row["mfu"], reports[name]["figures"]["mfu"])
        energy = {name: figure(report["figures"], "energy_j") for name, report in reports.items()}
        for row in self.rows("SELECT * FROM jobs"):
            joules = energy[row["job"]]
            self.assertAlmostEqual(row["energy_joules"], joules, delta=1e-9 * joules)
            self.assertAlmostEqual(row["kwh"], joules / 3.6e6, delta=1e-12)
            # On a busy machine the program may be far before the counter is read.
            if reports[row["job"]]["figures"]["energy_j"] is None:
                mark = ">= ~"
                self.assertIsNone(row["flop_per_joule"])
            else:
                mark = "~"
                self.assertAlmostEqual(row["flop_per_joule"], float(row["flop"]) / joules,
                                       delta=1e-6 * row["flop_per_joule"])
            self.assertEqual((row["energy_gpus"], row["energy_joules_mark"]), (row["gpus"], mark))
        (model,) = self.ask("models", electricity=0.3)
        self.assertAlmostEqual(model["electricity_cost"], 0.3 * sum(energy.values()) / 3.6e6,
                               delta=1e-12)
        self.assertEqual(model["energy_known_share"], 1)
        total = sum(hours.values())
        for question, column in (("days", "gpu_hours"), ("models", "gpu_hours"),
                                 ("chips", "gpu_hours"), ("wasted", "gpu_hours")):
            self.assertAlmostEqual(sum(row[column] for row in self.ask(question)), total,
                                   delta=1e-9 * total, msg=question)
        all_lines = [line for report in reports.values() for line in report["lost"]]
        for row in self.ask("lost"):
            lines = [line for line in all_lines if line["line"] == row["line"]]
            self.assertAlmostEqual(row["gpu_hours"],
                                   sum(figure(line, "ns") or 0 for line in lines) / 3.6e12,
                                   delta=1e-12, msg=(row, lines))
        launches = sum(report["figures"]["launches"] for report in reports.values())
        self.assertEqual(sum(row["launches"] for row in self.ask("kernels")), launches)
        self.assertEqual(sum(row["ranks"] for row in self.ask("hosts")), 2 * SIZE)
        self.assertEqual([row["measuring_ranks"] for row in self.ask("measured")], [1, 1])
        self.assertEqual(self.ask("problems"), [])

    def test_a_long_job_counts_on_each_of_its_days(self):
        from flopinj.fleet import tables

        made = tables.Made("j", "i", "p", str(self.folder))
        begin = tables.instant(simulated_fleet.MAY + 18 * 3600 * 10**9)
        made.days({"begin": begin, "ended": begin + datetime.timedelta(hours=36),
                   "gpu_hours": 36.0, "flop": 3600})
        days = pyarrow.parquet.read_table(made.small[0][2]).to_pylist()
        self.assertEqual([(str(row["day"]), row["gpu_hours"], row["flop"]) for row in days],
                         [("2026-05-01", 6, 600), ("2026-05-02", 24, 2400), ("2026-05-03", 6, 600)])

    def test_polars_answers_as_duckdb_does(self):
        try:
            import polars
        except ImportError:
            self.skipTest("polars is not installed")
        from flopinj.fleet import lake

        context = polars.SQLContext()
        for table in ("jobs", *layout.SMALL):
            if files := list(self.lake.glob(f"{table}/*/*.parquet")):
                context.register(table, polars.scan_parquet(files, hive_partitioning=False))
        for name in lake.questions():
            theirs = context.execute(lake.query(
                name, top=50, price=2.5, electricity=0.3)).collect().to_dicts()
            own = self.ask(name, top=50)
            self.assertEqual(len(theirs), len(own), name)
            for one, other in zip(own, theirs):
                for key, value in one.items():
                    if isinstance(value, float):
                        self.assertAlmostEqual(other[key], value, delta=1e-9 * abs(value))
                    else:
                        self.assertEqual(str(other[key]), str(value), (name, key))


class Again(Folder):
    def test_what_is_there_is_not_done_again(self):
        before = {file: file.stat().st_mtime_ns for file in self.lake.rglob("*.parquet")}
        outcome = ingest(self.runs, self.lake)
        self.assertEqual((outcome.done, outcome.as_before),
                         ([], sorted(job.name for job in self.jobs)))
        self.assertEqual(before, {file: file.stat().st_mtime_ns
                                  for file in self.lake.rglob("*.parquet")})
        self.assertEqual(list(self.lake.glob("parts/*")), [])

    def test_only_a_job_with_another_trace_is_done_again(self):
        runs = self.copy()
        last = runs / self.jobs[1].name / f"rank{SIZE - 1}.pb"
        kept = last.read_bytes()
        last.unlink()
        ingest(runs, self.other)
        (row,) = self.rows(f"SELECT processes, ranks_missing FROM jobs WHERE job = "
                           f"'{self.jobs[1].name}'", self.other)
        self.assertEqual(row, {"processes": SIZE - 1, "ranks_missing": 1})
        self.assertEqual(self.rows("SELECT count(*) AS n FROM processes", self.other),
                         [{"n": 2 * SIZE - 1}])
        last.write_bytes(kept)
        self.assertEqual(ingest(runs, self.other).done, [self.jobs[1].name])
        self.assertEqual(content(self.other), content(self.lake))

    def test_a_lake_that_was_killed_while_it_was_made_is_whole_after_the_next_time(self):
        draw = random.Random(7)
        command = [sys.executable, "-c",
                   "import sys; from flopinj.fleet import plan; plan._FILES_IN_PART = 7\n"
                   "plan.ingest(*sys.argv[1:])", self.runs, self.other]
        whole = content(self.lake)
        for _ in range(12):
            process = subprocess.Popen(
                command, start_new_session=True,
                env={**os.environ, "PYTHONPATH": str(STAGE), "TMPDIR": str(self.folder)})
            try:
                process.wait(draw.uniform(0.2, 2.5))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for table, rows in self.seen().items():  # nothing, or a job with all that it has
                self.assertLessEqual(rows, set(whole[table]), table)
        ingest(self.runs, self.other)
        self.assertEqual(content(self.other), whole)
        self.assertEqual(summaries(self.other), summaries(self.lake))

    def seen(self):
        try:
            return {table: set(rows) for table, rows in content(self.other).items()}
        except flopinj.Error:  # no lake yet
            return {}

    def test_a_program_that_is_killed_runs_again(self):
        """Whether the signal comes at its begin, or once all is written."""
        for killing in (Killed, KilledAtItsEnd):
            killed = []

            def chosen(process, command):  # each that writes files, the first time
                first = "--version" not in command and command not in killed
                killed.extend([command] * first)
                return first

            shutil.rmtree(self.other, ignore_errors=True)
            with self.subTest(killing), unittest.mock.patch(
                    "subprocess.Popen", type("Killing", (killing,), {"chosen": chosen})):
                self.assertEqual(ingest(self.runs, self.other).problems, [])
                self.assertGreater(len(killed), 2)
                self.assertEqual(content(self.other), content(self.lake))

    def test_one_that_flopreduce_cannot_live_with_is_found_and_named(self):
        hostile = f"{self.runs}/{self.jobs[0].name}/rank9.pb"

        def chosen(process, command):
            if command[1] != "merge":
                return False
            (of,) = (word.partition("=")[2] for word in command
                     if word.startswith("--files-from="))
            return hostile in map(os.path.realpath, Path(of).read_text().splitlines())

        flat = self.folder / "flat.sum"
        reduce("merge", "-o", flat, *(trace for trace in self.jobs[0].traces
                                      if str(trace) != hostile))
        for killing in (Killed, KilledAtItsEnd):
            shutil.rmtree(self.other, ignore_errors=True)
            with self.subTest(killing), unittest.mock.patch(
                    "subprocess.Popen", type("Killing", (killing,), {"chosen": chosen})):
                ((job, file, problem),) = ingest(self.runs, self.other).problems
                self.assertEqual((job, file),
                                 (self.jobs[0].name, f"{self.jobs[0].name}/rank9.pb"))
                self.assertIn("ended by signal 9, 3 times", problem)
                found = self.rows("SELECT job, processes FROM jobs", self.other)
                self.assertEqual({row["job"]: row["processes"] for row in found},
                                 {self.jobs[0].name: SIZE - 1, self.jobs[1].name: SIZE})
                self.assertEqual(summaries(self.other)[job], flat.read_bytes())

    def test_jobs_whose_report_cannot_be_had_are_named_and_are_there_the_next_time(self):
        class Killing(subprocess.Popen):
            def __init__(self, command, *args, **kwargs):
                super().__init__(command, *args, **kwargs)
                if "--format=csv" in command:
                    self.kill()

        with unittest.mock.patch("subprocess.Popen", Killing):
            outcome = ingest(self.runs, self.other)
        self.assertEqual(len(outcome.failed), 2)
        self.assertEqual([(job, file) for job, file, _ in outcome.problems],
                         [(job, "") for job in sorted(outcome.failed)])
        self.assertEqual(ingest(self.runs, self.other).done, sorted(outcome.failed))
        self.assertEqual(content(self.other), content(self.lake))

    def test_a_lake_below_the_traces_is_not_taken_in(self):
        runs = self.copy()
        for _ in range(2):
            outcome = ingest(runs, runs / "lake")
            self.assertEqual((outcome.traces, outcome.passed_over), (2 * SIZE, 0))
        self.assertEqual(outcome.done, [])

    def test_a_trace_that_went_away_between_is_named(self):
        runs = self.copy()
        gone = runs / self.jobs[0].name / "rank9.pb"
        from flopinj.fleet import work

        def condense(part):
            gone.unlink(missing_ok=True)
            return work_condense(part)

        work_condense = work.condense
        with unittest.mock.patch.object(work, "condense", condense):
            outcome = ingest(runs, self.other)
        self.assertEqual(outcome.problems, [
            (self.jobs[0].name, f"{self.jobs[0].name}/rank9.pb", "is there no more")])


class Damage(Folder):
    """One bad trace among many costs that trace, and is named."""

    def damaged(self, damage, simulated=None):
        runs = self.copy()
        job = runs / self.jobs[0].name
        damage(job)
        outcome = ingest(runs, self.other)
        rows = self.rows(f"SELECT flop, processes, problems FROM jobs WHERE job = "
                         f"'{self.jobs[0].name}'", self.other)
        return outcome.problems, rows[0], job

    def expect(self, damage, name, problem, *, processes, flop_of=None):
        problems, row, job = self.damaged(damage)
        self.assertEqual([(job, file) for job, file, _ in problems],
                         [(self.jobs[0].name, f"{self.jobs[0].name}/{name}")], problems)
        self.assertRegex(problems[0][2], problem)
        self.assertEqual((row["processes"], row["problems"]), (processes, 1))
        of = [trace for trace in sorted(job.iterdir()) if flop_of is None or flop_of(trace.name)]
        self.assertEqual(row["flop"], known(report_of(*of)["figures"]))
        self.assertEqual(self.rows("SELECT file FROM inputs WHERE problem IS NOT NULL", self.other),
                         [{"file": f"{self.jobs[0].name}/{name}"}])

    def test_empty(self):
        self.expect(lambda job: (job / "rank3.pb").write_bytes(b""), "rank3.pb", "is empty",
                    processes=SIZE - 1)

    def test_no_trace(self):
        self.expect(lambda job: (job / "rank3.pb").write_bytes(b"text\n" * 99), "rank3.pb",
                    "is no trace", processes=SIZE - 1)

    def test_truncated(self):
        def cut(job):
            trace = job / "rank3.pb"
            trace.write_bytes(trace.read_bytes()[:-900])

        self.expect(cut, "rank3.pb", "at the end of an unfinished packet", processes=SIZE)

    def test_header_lost(self):
        def flip(job):
            content = bytearray((job / "rank3.pb").read_bytes())
            content[12] ^= 1
            (job / "rank3.pb").write_bytes(content)

        # Nobody could say which recording it is, should it come again.
        self.expect(flip, "rank3.pb", "damaged places|header is lost", processes=SIZE - 1,
                    flop_of=lambda name: name != "rank3.pb")

    def test_doubled(self):
        self.expect(lambda job: shutil.copy(job / "rank3.pb", job / "rank3-copy.pb"), "rank3.pb",
                    "has the same recording as .*rank3-copy.pb: it counts once", processes=SIZE)

    def test_simulated_among_real(self):
        # Made as if they were real; nothing of them is read as a figure of hardware.
        runs = self.folder / "runs"
        (runs / "job").mkdir(parents=True)
        trace = simulated_fleet.ranks.Trace(self.jobs[0].traces[1].read_bytes())
        for rank in range(20):
            (runs / "job" / f"rank{rank:02}.pb").write_bytes(trace.of_rank(
                rank, 20, host="node", session=100 + rank, simulated=rank in (4, 11)))
        outcome = ingest(runs, self.other)
        self.assertEqual(outcome.problems, [
            ("job", f"job/rank{rank:02}.pb", "left out: it was recorded on the simulated GPU, "
             "job/rank00.pb on a real one") for rank in (4, 11)])
        (row,) = self.rows("SELECT processes, simulated FROM jobs", self.other)
        self.assertEqual(row, {"processes": 18, "simulated": False})

    def test_all_of_a_job(self):
        def spoil(job):
            for trace in job.iterdir():
                trace.write_bytes(b"")

        problems, row, _ = self.damaged(spoil)
        self.assertEqual(len(problems), SIZE)
        self.assertEqual((row["flop"], row["processes"], row["problems"]), (None, None, SIZE))


class Small(Folder):
    """Four ranks of a job, as files of their own that a test may change."""

    def setUp(self):
        super().setUp()
        self.source = self.folder / "runs"
        self.job = self.source / "job"
        self.job.mkdir(parents=True)
        for rank in range(4):
            self.write(rank)

    def trace(self, rank, session=None, **header):
        trace = simulated_fleet.ranks.Trace(self.jobs[0].traces[1].read_bytes())
        return trace.of_rank(rank, 4, **{"host": "node", "session": session or 100 + rank,
                                         "begin_ns": simulated_fleet.MAY, **header})

    def write(self, rank, name=None, **header):
        (self.job / (name or f"rank{rank}.pb")).write_bytes(self.trace(rank, **header))

    def ingest(self, source=None, **how):
        return ingest(source or self.source, self.other, **how)

    def fleet(self, *words):
        return subprocess.run([sys.executable, "-m", "flopinj", "fleet", *map(str, words)],
                              env={**os.environ, "PYTHONPATH": str(STAGE)}, text=True,
                              capture_output=True, timeout=120)

    def sessions(self, job="job"):
        """Launches by session: what the lake has of each recording."""
        rows = self.rows(f"SELECT session, launches FROM processes WHERE job = '{job}'",
                         self.other)
        self.assertEqual(len(rows), len({row["session"] for row in rows}))
        return {int(row["session"], 16): row["launches"] for row in rows}

    def whole(self):
        return {100 + rank: self.launches for rank in range(4)}

    @property
    def launches(self):
        return report_of(self.jobs[0].traces[1])["figures"]["launches"]

    def problems(self, outcome):
        return {file: problem for _, file, problem in outcome.problems}


class Kept(Small):
    """What was taken in stays, whatever becomes of the traces; and a job that grew is taken in."""

    def setUp(self):
        super().setUp()
        self.assertEqual(self.ingest().problems, [])
        self.before = content(self.other)
        self.summary = summaries(self.other)

    def expect_kept(self, *named, said, earlier=()):
        """The job is as it was; these traces are named, and no others but those of an earlier
        time. Once more, nothing is said and nothing is done again."""
        outcome = self.ingest()
        self.assertEqual(sorted(self.problems(outcome)), sorted(named))
        for problem in self.problems(outcome).values():
            self.assertRegex(problem, said)
        self.assertEqual(self.sessions(), self.whole())
        self.assertEqual(summaries(self.other), self.summary)
        now = content(self.other)
        for table in ("rows", "step_list", "processes", "paths"):
            self.assertEqual(now[table], self.before[table])
        there = self.rows("SELECT DISTINCT file FROM inputs WHERE problem IS NOT NULL "
                          "ORDER BY file", self.other)
        self.assertEqual([row["file"] for row in there], sorted([*named, *earlier]))
        again = self.ingest()
        self.assertEqual((again.as_before, again.done, again.problems), (["job"], [], []))
        self.assertEqual(len(list(self.other.glob("summaries/job=job/*.sum.zst"))), 1)
        self.assertEqual(len(list(self.other.glob("rows/job=job/*"))), 1)

    def test_the_summary_of_one_part_is_that_of_all_traces_at_once(self):
        flat = self.folder / "flat.sum"
        reduce("merge", "-o", flat, self.job)
        self.assertEqual(self.summary, {"job": flat.read_bytes()})

    def test_some_traces_are_gone(self):
        for rank in (1, 2):
            (self.job / f"rank{rank}.pb").unlink()
        self.expect_kept("job/rank1.pb", "job/rank2.pb", said="is there no more.*is kept")
        # ... and later all others but one.
        for rank in (0, 3):
            (self.job / f"rank{rank}.pb").unlink()
        self.write(3, "rank3-again.pb")
        self.expect_kept("job/rank0.pb", said="is there no more",
                         earlier=("job/rank1.pb", "job/rank2.pb"))

    def test_all_traces_of_a_job_are_gone(self):
        shutil.rmtree(self.job)
        self.job = self.source / "next"
        self.job.mkdir()
        self.write(0, session=7)
        outcome = self.ingest()
        self.assertEqual((outcome.done, outcome.problems), (["next"], []))
        self.assertEqual(self.sessions(), self.whole())
        self.assertEqual(self.sessions("next"), {7: self.launches})

    def test_all_traces_are_damaged(self):
        for trace in self.job.iterdir():
            trace.write_bytes(b"")
        self.expect_kept(*(f"job/rank{rank}.pb" for rank in range(4)),
                         said="is empty|is there no more")

    def test_a_trace_is_cut(self):
        trace = self.job / "rank2.pb"
        trace.write_bytes(trace.read_bytes()[:-900])
        self.expect_kept("job/rank2.pb", said="unfinished packet.*less than when it was taken in")

    def test_a_header_is_damaged(self):
        content = bytearray((self.job / "rank2.pb").read_bytes())
        content[12] ^= 1
        (self.job / "rank2.pb").write_bytes(content)
        self.expect_kept("job/rank2.pb", said="damaged|header is lost|is there no more")

    def test_an_older_copy(self):
        """Whole packets of the beginning: nothing is damaged."""
        ranks = simulated_fleet.ranks
        older = ranks.Trace(self.jobs[0].traces[1].read_bytes())
        older.rest = b"".join(ranks.framed(body, at)
                              for at, body in enumerate(older.bodies[1:-6], 2))
        (self.job / "rank2.pb").write_bytes(
            older.of_rank(2, 4, host="node", session=102, begin_ns=simulated_fleet.MAY))
        self.expect_kept("job/rank2.pb", said="less than when it was taken in")

    def test_another_recording_in_its_place(self):
        self.write(2, session=77, begin_ns=simulated_fleet.MAY + 10**13, host="other")
        self.expect_kept("job/rank2.pb", said="of another run.*--job|is there no more")

    def expect_untouched(self):
        outcome = self.ingest()
        self.assertEqual((outcome.as_before, outcome.done, outcome.problems), (["job"], [], []))
        self.assertEqual(content(self.other), self.before)
        self.assertEqual(summaries(self.other), self.summary)

    def test_a_moved_source_is_not_taken_in_anew(self):
        moved = self.folder / "moved"
        self.source.rename(moved)
        self.source = moved
        self.expect_untouched()

    def test_touched_traces_are_not_taken_in_anew(self):
        for trace in self.job.iterdir():
            os.utime(trace, (1, 1))
        self.expect_untouched()

    def test_a_renamed_trace_is_the_same(self):
        (self.job / "rank2.pb").rename(self.job / "other.pb")
        self.expect_untouched()

    def test_another_recording_of_the_same_size_is_not_the_same(self):
        self.write(2, session=102 + 8)
        self.assertEqual(self.ingest().done, ["job"])
        self.assertEqual(self.sessions(), self.whole() | {110: self.launches})

    def test_simulated_traces_do_not_take_the_place_of_real_ones(self):
        shutil.rmtree(self.other)
        for rank in range(4):
            self.write(rank, simulated=False)
        self.ingest()
        before = content(self.other)
        for rank in range(4):
            self.write(rank, session=200 + rank)
        outcome = self.ingest()
        self.assertEqual(outcome.failed, ["job"])
        self.assertEqual(content(self.other), before)

    def test_real_traces_do_not_take_the_place_of_simulated_ones(self):
        for rank in range(4):
            self.write(rank, session=200 + rank, simulated=False)
        outcome = self.ingest()
        self.assertEqual(outcome.failed, ["job"])
        self.assertIn("--job NAME", outcome.problems[0][2])
        self.assertEqual(content(self.other), self.before)

    def test_a_job_that_grew(self):
        """A trace that was shorter then, and a rank that was not there."""
        shutil.rmtree(self.other)
        whole = (self.job / "rank2.pb").read_bytes()
        (self.job / "rank2.pb").write_bytes(whole[:-900])
        (self.job / "rank3.pb").unlink()
        self.ingest()
        (self.job / "rank2.pb").write_bytes(whole)
        self.write(3)
        self.assertEqual(self.ingest().problems, [])
        self.assertEqual(self.sessions(), self.whole())
        self.assertEqual(content(self.other), self.before)

    def test_a_part_of_the_job_from_another_folder_is_added(self):
        """As of nodes that keep their own traces."""
        shutil.rmtree(self.other)
        node = self.folder / "node1/job"
        node.mkdir(parents=True)
        for rank in (2, 3):
            (self.job / f"rank{rank}.pb").rename(node / f"rank{rank}.pb")
        for _ in range(2):
            for source in (self.source, node.parent):
                self.assertEqual(self.ingest(source).problems, [])
        self.assertEqual(self.sessions(), self.whole())
        self.assertEqual(summaries(self.other), self.summary)
        self.assertEqual(self.rows("SELECT count(*) AS n FROM inputs", self.other), [{"n": 4}])

    def test_an_ingest_that_ended_before_its_job_counts_loses_nothing(self):
        """Its traces are gone when the next one comes: the summary that it left has them."""
        from flopinj.fleet import work

        extra = self.folder / "extra/job"
        extra.mkdir(parents=True)
        (extra / "rank9.pb").write_bytes(self.trace(9, session=109))
        put = work.Place.put

        def killed(place, file, name):
            if name.startswith("jobs/"):
                raise OSError("killed")
            put(place, file, name)

        with unittest.mock.patch.object(work.Place, "put", killed):
            self.assertEqual(self.problems(self.ingest(extra.parent)), {"": "killed"})
        self.assertEqual(content(self.other), self.before)
        shutil.rmtree(extra.parent)
        self.ingest()
        self.assertEqual(self.sessions(), self.whole() | {109: self.launches})
        self.assertEqual(len(list(self.other.glob("summaries/job=job/*.sum.zst"))), 1)

    def test_one_that_was_killed_while_it_tidied_up(self):
        """A summary without its tables and its list, and half a file."""
        (self.job / "rank1.pb").unlink()
        for file in (*self.other.glob("*/month=*/*"), *self.other.glob("rows/*/*"),
                     *self.other.glob("summaries/*/*.json.zst")):
            file.unlink()
        (self.other / "summaries/job=job/beef.sum.zst.12345678.new").write_bytes(b"")
        self.assertEqual(self.ingest().failed, [])
        self.assertEqual(self.sessions(), self.whole())
        self.assertEqual(len(list(self.other.glob("summaries/job=job/*.sum.zst"))), 1)
        self.assertEqual(self.ingest().as_before, ["job"])

    def test_several_at_the_same_time_lose_nothing(self):
        """Each has other traces of the job."""
        script = ("import sys\nfrom flopinj.fleet import ingest\n"
                  "print(ingest(*sys.argv[1:]).problems)")
        for turn in range(2):
            sources = []
            for side in range(3):
                folder = self.folder / f"turn{turn}side{side}" / "job"
                folder.mkdir(parents=True)
                rank = 10 + 3 * turn + side
                (folder / f"{rank}.pb").write_bytes(self.trace(rank, session=100 + rank))
                sources.append(folder.parent)
            running = [subprocess.Popen(
                [sys.executable, "-c", script, source, self.other], text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": str(STAGE)}) for source in sources]
            for process in running:
                out, said = process.communicate(timeout=300)
                self.assertEqual((process.returncode, out), (0, "[]\n"), said)
            self.ingest()
            taken = {rank: self.launches for rank in range(110, 113 + 3 * turn)}
            self.assertEqual(self.sessions(), self.whole() | taken)

    def test_a_store_that_has_neither_links_nor_locks(self):
        """fsspec's in memory: the way that object stores go."""
        import fsspec

        store = fsspec.filesystem("memory")
        store.store.clear()
        store.put(str(self.source), "/runs", recursive=True)
        ingest("memory://runs", "memory://lake")
        store.rm("/runs/job/rank1.pb")
        store.pipe_file("/runs/job/rank2.pb", b"")
        outcome = ingest("memory://runs", "memory://lake")
        self.assertEqual(sorted(self.problems(outcome)), ["job/rank1.pb", "job/rank2.pb"])
        rows = Lake("memory://lake").sql("SELECT session, launches FROM processes").to_pylist()
        self.assertEqual({int(row["session"], 16): row["launches"] for row in rows}, self.whole())
        self.assertEqual(len(store.find("/lake/summaries")), 2)


class Promised(Small):
    """Nothing that was taken in is lost and each trace is named, whatever happens at once; after
    repair all is as if nothing had happened."""

    def setUp(self):
        super().setUp()
        for rank in (4, 5):
            self.write(rank)
        self.assertEqual(self.ingest().problems, [])
        self.before, self.summary = content(self.other), summaries(self.other)
        self.good = {file: file.read_bytes() for file in self.job.iterdir()}
        # Two of six deleted, all others damaged, and another run under the job's name.
        ranks = sorted(self.good)
        for file in ranks[:2]:
            file.unlink()
        for file, damaged in zip(ranks[2:], (
                b"", self.good[ranks[3]][:-900], b"\0" + self.good[ranks[4]][1:], b"no trace")):
            file.write_bytes(damaged)
        for rank in range(2):
            self.write(rank, f"again{rank}.pb", session=200 + rank, host="far",
                       begin_ns=simulated_fleet.MAY + 10**13)
        self.named = sorted([*(f"job/{file.name}" for file in ranks),
                             *(f"job/again{rank}.pb" for rank in range(2))])

    def start(self, code=""):
        return subprocess.Popen(
            [sys.executable, "-c", f"{code}\nimport sys\nfrom flopinj.fleet import ingest\n"
             "ingest(*sys.argv[1:], workers=1)", self.source, self.other],
            stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(STAGE), "TMPDIR": str(self.folder)})

    def expect_whole(self):
        self.assertEqual(self.sessions(), {100 + rank: self.launches for rank in range(6)})

    def expect_named(self):
        self.expect_whole()
        self.assertEqual(summaries(self.other), self.summary)
        rows = self.rows("SELECT DISTINCT file FROM inputs WHERE problem IS NOT NULL ORDER BY file",
                         self.other)
        self.assertEqual([row["file"] for row in rows], self.named)

    def expect_repaired(self):
        for rank in range(2):
            (self.job / f"again{rank}.pb").unlink()
        for file, bytes_of_it in self.good.items():
            file.write_bytes(bytes_of_it)
        self.assertEqual(self.ingest().problems, [])
        self.assertEqual(content(self.other), self.before)
        self.assertEqual(summaries(self.other), self.summary)
        self.assertEqual(len(list(self.other.glob("summaries/job=job/*.sum.zst"))), 1)

    def test_killed_at_any_moment(self):
        lake = shutil.copytree(self.other, self.folder / "before")
        ended, number = 9, 0
        while ended == 9:
            shutil.rmtree(self.other)
            shutil.copytree(lake, self.other)
            process = self.start(ENDING.replace("{n}", str(number)))
            said = process.communicate(timeout=300)[1]
            ended, number = process.returncode, number + 5
            self.assertIn(ended, (0, 9), said)
            self.expect_whole()
            self.ingest()
            self.expect_named()
        self.assertGreater(number, 15)
        self.expect_repaired()

    def test_three_at_once(self):
        for process in [self.start() for _ in range(3)]:
            said = process.communicate(timeout=300)[1]
            self.assertEqual(process.returncode, 0, said)
        self.ingest()
        self.expect_named()
        self.expect_repaired()


class Ending(Small):
    """A thread of Arrow's or DuckDB's that asks for Python while the interpreter ends aborts the
    process: at the end of a script nothing of Python's is left to such a thread."""

    def script(self, text, *words):
        done = subprocess.run([sys.executable, "-c", text, *map(str, words)], text=True,
                              env={**os.environ, "PYTHONPATH": str(STAGE)}, capture_output=True,
                              timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_what_ingest_reads_of_a_lake_is_read_by_its_own_thread(self):
        self.ingest()
        self.assertEqual(self.script("""if True:
            import os, sys
            from flopinj.fleet import tables, work

            def threads():
                names = {int(n): open(f"/proc/self/task/{n}/comm").read()
                         for n in os.listdir("/proc/self/task")}
                return {n for n, name in names.items() if "jemalloc" not in name}

            lake = work.Place(sys.argv[1])
            before = threads()
            for _ in range(20):
                (version,) = work.versions(lake, "job")
                record = tables.record_of(lake, version)
            print(len(record.sessions), len(record.inputs), threads() - before)""", self.other),
            "4 4 set()\n")

    def test_an_answer_that_was_not_read_to_its_end(self):
        """Of a lake that DuckDB reads by fsspec: its threads are still reading."""
        for first in ("rest = lake.relation('FROM rows').to_arrow_reader(1000); "
                      "rest.read_next_batch()",
                      "lake.connection.execute('FROM rows').fetchone()",
                      "lake.lock(); lake.connection.execute('FROM rows').fetchone()"):
            with self.subTest(first):
                self.script(f"""if True:
                    import fsspec, pyarrow, pyarrow.parquet
                    from flopinj.fleet import Lake

                    def write(name, **columns):
                        with fsspec.open(f"memory://lake/{{name}}.parquet", "wb") as file:
                            pyarrow.parquet.write_table(pyarrow.table(columns), file,
                                                        row_group_size=20_000)

                    write("jobs/month=2026-05/a,abcdef", job=["j"], ingest=["i"], pack=["a"])
                    for number in range(8):
                        write(f"rows/job=j/i,abcdef,{{number:04}}", ingest=["i"] * 400_000,
                              n=range(400_000))
                    lake = Lake("memory://lake")
                    {first}""")


class Colliding(Small):
    """Two runs under one name are never in one job."""

    def setUp(self):
        super().setUp()
        self.later = self.folder / "later/job"
        self.later.mkdir(parents=True)

    def write_later(self, folder, **header):
        for rank in range(4):
            (folder / f"again{rank}.pb").write_bytes(self.trace(
                rank, session=200 + rank, host="far",
                begin_ns=simulated_fleet.MAY + 10**13, **header))

    def test_a_job_of_another_cluster_does_not_replace_the_first(self):
        self.ingest()
        before = content(self.other)
        self.write_later(self.later)
        for _ in range(2):
            outcome = self.ingest(self.later.parent)
            self.assertEqual((outcome.done, outcome.failed), ([], ["job"]))
            self.assertEqual(sorted(self.problems(outcome)),
                             [f"job/again{rank}.pb" for rank in range(4)])
            for problem in self.problems(outcome).values():
                self.assertRegex(problem, "another run.*--job NAME")
            self.assertEqual(content(self.other), before)
        # What the line says helps.
        done = self.fleet("ingest", self.later.parent, "--out", self.other, "--job", "job of may")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.sessions(), self.whole())
        self.assertEqual(self.sessions("job of may"),
                         {200 + rank: self.launches for rank in range(4)})

    def test_two_folders_whose_traces_name_one_job(self):
        for name, begin in (("a", 0), ("b", 10**13)):
            folder = self.folder / "both" / name
            folder.mkdir(parents=True)
            for rank in range(4):
                (folder / f"rank{rank}.pb").write_bytes(self.trace(
                    rank, session=ord(name) * 100 + rank, job="4711", host=name,
                    begin_ns=simulated_fleet.MAY + begin))
        done = self.fleet("ingest", self.folder / "both", "--out", self.other)
        self.assertEqual(done.returncode, 3)
        self.assertEqual([line.split(": ")[2] for line in done.stderr.splitlines()],
                         [f"b/rank{rank}.pb" for rank in range(4)])
        self.assertEqual(self.sessions("4711"), {9700 + rank: self.launches for rank in range(4)})
        self.assertEqual(self.ingest(self.folder / "both").as_before, ["4711"])

    def test_a_run_that_was_started_again_in_the_same_folder(self):
        self.ingest()
        self.write_later(self.job)
        outcome = self.ingest()
        self.assertEqual(sorted(self.problems(outcome)),
                         [f"job/again{rank}.pb" for rank in range(4)])
        self.assertEqual(self.sessions(), self.whole())

    def test_of_summaries_with_several_recordings(self):
        self.ingest()
        self.write_later(self.later)
        reduce("merge", "-o", self.later.parent / "job.sum", self.later)
        shutil.rmtree(self.later)
        outcome = self.ingest(self.later.parent, job="job")
        self.assertEqual(outcome.failed, ["job"])
        self.assertTrue(any("another run" in problem for _, _, problem in outcome.problems))
        self.assertEqual(self.sessions(), self.whole())

    def test_a_process_that_was_recorded_twice_is_one_run(self):
        """As by attaching again."""
        (self.job / "second.pb").write_bytes(self.trace(
            1, session=201, begin_ns=simulated_fleet.MAY + 10**12))
        self.assertEqual(self.ingest().problems, [])
        self.assertEqual(self.sessions(), self.whole() | {201: self.launches})


class Hostile(Small):
    """Whatever is in the folder costs itself, is named, and ends nothing."""

    def expect(self, *named, said, **how):
        outcome = self.ingest(**how)
        self.assertEqual(sorted(file for _, file, _ in outcome.problems), sorted(named),
                         outcome.problems)
        for _, _, problem in outcome.problems:
            self.assertRegex(problem, said)
        self.assertEqual(self.sessions(), self.whole())
        return outcome

    def test_a_right_check_sum_over_wrong_types(self):
        ranks = simulated_fleet.ranks
        session, simulated = (ranks.SESSION, 1, b"12345678"), (ranks.SIMULATED, 0, 1)

        def packet(kind, value):
            return ranks.framed([(ranks.HEADER, kind, value)], 1)

        wrong = [packet(2, ranks.encoded(header)) for header in (
            [(ranks.SESSION, 0, 5)], [], [(ranks.RANK, 2, b"one"), session, simulated],
            [(ranks.JOB, 0, 5), session, simulated],
            [(ranks.REALTIME, 2, b"now"), session, simulated])]
        wrong += [packet(0, 5), packet(2, b"\xff" * 3000), b"\xff" * 100000,
                  b"\x08" + b"\xff" * 9 + b"\x01"]
        for number, trace in enumerate(wrong):
            (self.job / f"wrong{number}.pb").write_bytes(trace)
        done = self.fleet("ingest", self.source, "--out", self.other)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertLessEqual(self.whole().items(), self.sessions().items())
        named = {row["file"] for row in self.rows(
            "SELECT file FROM inputs WHERE problem IS NOT NULL", self.other)}
        self.assertLessEqual({f"job/wrong{number}.pb" for number in (0, 1, 5, 6, 7, 8)}, named)
        self.assertFalse({name for name in named if "rank" in name}, named)

    def test_times_that_are_none(self):
        self.write(9, session=109, begin_ns=(1 << 64) - 1)
        outcome = self.ingest()
        self.assertIn("time in its header", self.problems(outcome)["job/rank9.pb"])
        self.assertEqual(outcome.failed, [])
        self.assertLessEqual(self.whole().items(), self.sessions().items())
        for form in ("text", "csv", "json"):
            done = self.fleet("sql", "SELECT begin FROM jobs", "--lake", self.other, "--format",
                              form)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("2026-05-01", done.stdout)

    def test_a_job_with_a_long_name(self):
        names = ["j" * 5000, "j" * 5001, "\u00e4/" * 2000]
        kept = [layout.job_name(name) for name in names]
        self.assertEqual(len(set(kept)), 3)
        for number, name in enumerate(names):
            folder = self.source / f"long{number}"
            folder.mkdir()
            (folder / "x.pb").write_bytes(self.trace(0, session=300 + number, job=name))
        self.expect(said="")
        self.assertEqual(self.rows("SELECT job FROM jobs WHERE job <> 'job' ORDER BY job",
                                   self.other), [{"job": name} for name in sorted(kept)])
        for name, whole in zip(kept, names):
            self.assertEqual(name[:40], whole[:40])
        self.assertEqual(self.ingest().as_before, sorted(["job", *kept]))

    def test_what_is_no_file(self):
        os.mkfifo(self.job / "fifo.pb")
        with socket.socket(socket.AF_UNIX) as listening:
            here = os.getcwd()
            os.chdir(self.job)
            listening.bind("socket.pb")
            os.chdir(here)
        (self.job / "device.pb").symlink_to("/dev/zero")
        (self.job / "loop.pb").symlink_to("loop.pb")
        (self.job / "broken.pb").symlink_to("nowhere")
        (self.job / "up").symlink_to("..")
        (self.job / "folder.pb").mkdir()
        os.mkfifo(self.job / "not named.txt")
        self.expect("job/fifo.pb", "job/socket.pb", "job/device.pb", "job/loop.pb",
                    "job/broken.pb", said="is no file|cannot be read: (Too many|No such)")

    def test_a_link_to_a_trace_is_the_trace(self):
        (self.job / "rank3.pb").rename(self.folder / "kept")
        (self.job / "rank3.pb").symlink_to(self.folder / "kept")
        self.expect(said="")

    def test_names_with_anything_in_them(self):
        odd = os.fsencode(self.source / "a\nb")
        os.mkdir(odd)
        for number, name in enumerate((b"line\nrank9.pb: is empty.pb", b"\x1b[31mred.pb",
                                       b"not\xffutf8.pb", b"colon: and 'quote'.pb")):
            with open(os.path.join(odd, name), "wb") as file:
                file.write(self.trace(number, session=400 + number))
        with open(os.path.join(odd, b"bad\n.pb"), "wb") as file:
            file.write(b"text" * 99)
        done = self.fleet("ingest", self.source, "--out", self.other)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr[:-1].isprintable(), done.stderr)
        self.assertIn("is no trace", done.stderr)
        self.assertEqual(self.rows("SELECT job, processes FROM jobs ORDER BY job", self.other),
                         [{"job": "a\\nb", "processes": 4}, {"job": "job", "processes": 4}])

    def test_damaged_compression(self):
        packed = gzip.compress(self.trace(9, session=109))
        (self.job / "cut.pb.gz").write_bytes(packed[:40])
        (self.job / "none.pb.gz").write_bytes(b"\x1f\x8b" + b"text" * 99)
        (self.job / "none.pb.zst").write_bytes(b"\x28\xb5\x2f\xfd" + b"text" * 99)
        self.expect("job/cut.pb.gz", "job/none.pb.gz", "job/none.pb.zst", said=".")

    @unittest.skipUnless(os.geteuid() == 0, "becomes another user")
    def test_what_one_may_not_read(self):
        closed = self.source / "closed"
        closed.mkdir()
        shutil.copy(self.job / "rank1.pb", closed)
        (self.job / "closed.pb").write_bytes(self.trace(9, session=109))
        (self.job / "closed.pb").chmod(0)
        closed.chmod(0)
        script = ("import fsspec.implementations.local, os, sys\n"
                  "from flopinj.fleet import ingest, work, tables\n"
                  "os.setegid(65534); os.seteuid(65534)\n"
                  "for of in ingest(*sys.argv[1:]).problems: print(*of, sep='|')")
        self.other.mkdir()
        for folder in (self.folder, self.other):
            folder.chmod(0o777)
        for folder in (Path(SCRATCH.name), self.runs.parent):
            folder.chmod(0o755)
        done = subprocess.run([sys.executable, "-c", script, self.source, self.other],
                              capture_output=True, text=True, timeout=120,
                              env={**os.environ, "PYTHONPATH": str(STAGE), "TMPDIR": "/tmp"})
        self.assertEqual(done.stdout.splitlines(), [
            "|closed|cannot be listed: Permission denied",
            "job|job/closed.pb|cannot be read: Permission denied"], done.stderr)
        self.assertEqual(self.sessions(), self.whole())

    def test_what_nobody_thought_of_costs_the_job(self):
        from flopinj.fleet import tables

        for name in ("b", "c"):
            (self.source / name).mkdir()
            for rank in range(4):
                (self.source / name / f"rank{rank}.pb").write_bytes(
                    self.trace(rank, session=ord(name) * 100 + rank))
        made = tables.Made.job
        for error, said in ((ValueError("unheard of"), "ValueError: unheard of"),
                            (OSError("no space left"), "no space left")):
            def failing(self, *of):
                if self.job_name == "b":
                    raise error
                return made(self, *of)

            shutil.rmtree(self.other, ignore_errors=True)
            with self.subTest(said), unittest.mock.patch.object(tables.Made, "job", failing):
                outcome = self.ingest()
                self.assertEqual((outcome.done, outcome.failed), (["c", "job"], ["b"]))
                self.assertEqual(outcome.problems, [("b", "", said)])
        self.assertEqual(self.ingest().done, ["b"])


class Years(Small):
    maxDiff = None

    """Compaction, and jobs that go."""

    JOBS = 5

    def setUp(self):
        super().setUp()
        for number in range(self.JOBS):
            job = self.source / f"j{number}"
            job.mkdir()
            for rank in range(2):
                (job / f"rank{rank}.pb").write_bytes(self.trace(
                    rank, session=1000 + 10 * number + rank,
                    begin_ns=simulated_fleet.MAY + number * 20 * 86400 * 10**9))
        self.ingest()
        self.before = content(self.other)

    def compact(self, code=""):
        return subprocess.Popen(
            [sys.executable, "-c", f"import sys\nfrom flopinj.fleet import keep\n{code}\n"
             "keep.compact(sys.argv[1])", self.other], stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(STAGE), "TMPDIR": str(self.folder)})

    def files(self, table):
        return sorted(self.other.glob(f"{table}/month=*/*.parquet"))

    def test_many_files_become_one_a_month(self):
        self.assertEqual(len(self.files("jobs")), 1 + self.JOBS)
        self.assertEqual(self.compact().communicate()[1], "")
        self.assertEqual(content(self.other), self.before)
        for table in ("jobs", "processes", "kernels", "inputs"):
            months = [file.parent.name for file in self.files(table)]
            self.assertEqual(months, ["month=2026-05", "month=2026-06", "month=2026-07"], table)
        outcome = self.ingest()
        self.assertEqual((outcome.done, outcome.problems), ([], []))
        # A job that grows afterwards counts once, and compaction goes on from there.
        self.write(4, session=104)
        for _ in range(2):
            self.assertEqual(self.ingest().problems, [])
            self.assertEqual(self.sessions(), self.whole() | {104: self.launches})
            self.assertEqual(self.rows("SELECT count(*) AS n FROM jobs", self.other),
                             [{"n": 1 + self.JOBS}])
            self.assertEqual(self.compact().communicate()[1], "")
        self.assertEqual(len(self.files("jobs")), 3)

    def test_ended_at_any_moment_it_loses_nothing(self):
        ended, number = 9, 0
        while ended == 9:
            ended, number = self.compact(ENDING.replace("{n}", str(number))).wait(), number + 3
            self.assertEqual(content(self.other), self.before)
        self.assertEqual(ended, 0)
        self.assertGreater(number, 10)

    def test_several_at_once_beside_an_ingest(self):
        self.write(4, session=104)
        running = [self.compact() for _ in range(3)]
        self.assertEqual(self.ingest().problems, [])
        for process in running:
            _, said = process.communicate(timeout=100)
            self.assertEqual((process.returncode, said), (0, ""))
        self.assertEqual(self.sessions(), self.whole() | {104: self.launches})
        for job in range(self.JOBS):
            self.assertEqual(len(self.sessions(f"j{job}")), 2)
        self.assertEqual(self.compact().communicate()[1], "")
        self.assertEqual(len(self.sessions()), 5)
        self.assertEqual(len(self.files("jobs")), 3)

    def test_forgotten_jobs_leave_nothing(self):
        self.assertEqual(self.compact().communicate()[1], "")
        done = self.fleet("forget", "job", "j2", "--lake", self.other)
        self.assertEqual((done.returncode, done.stdout), (0, "2 jobs forgotten\n"), done.stderr)
        for table, rows in content(self.other).items():
            kept = [row for row in self.before[table]
                    if "'job': 'job'" not in row and "'job': 'j2'" not in row]
            self.assertEqual(rows, kept)
        self.assertEqual({path.name for path in self.other.glob("*/job=*")},
                         {f"job=j{number}" for number in (0, 1, 3, 4)})
        self.assertEqual(self.fleet("forget", "job", "--lake", self.other).returncode, 2)

    def test_jobs_expire(self):
        done = self.fleet("expire", "--before", "2026-06-01", "--lake", self.other)
        self.assertEqual(done.stdout, "3 jobs forgotten\n", done.stderr)
        self.assertEqual(self.rows("SELECT job FROM jobs ORDER BY job", self.other),
                         [{"job": f"j{number}"} for number in (2, 3, 4)])

    def test_questions_about_newer_jobs(self):
        done = self.fleet("sql", "SELECT job FROM jobs ORDER BY job", "--since", "2026-06-10",
                          "--lake", self.other, "--format", "csv")
        self.assertEqual(done.stdout.split()[1:], ["j2", "j3", "j4"], done.stderr)

    def test_old_traces_are_passed_over(self):
        for trace in self.job.iterdir():
            os.utime(trace, (10**9, 10**9))
        shutil.rmtree(self.other)
        done = self.fleet("ingest", self.source, "--out", self.other, "--since", "2002-01-01")
        self.assertIn(f"{2 * self.JOBS} traces of {self.JOBS} jobs", done.stdout)

    def test_a_lake_of_a_newer_format_is_refused(self):
        (self.other / layout.MARKER).write_text('{"format": 3}')
        for words in (("jobs", "--lake"), ("compact", "--lake"),
                      ("ingest", self.source, "--out")):
            done = self.fleet(*words, self.other)
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, "^flopinj fleet: .* is a lake of format 3.*newer one\n$")

    def test_engines_find_the_columns_in_the_names_of_folders(self):
        """DuckDB by itself, without flopinj."""
        name = "a/b=c%d ä'"
        (self.source / "odd").mkdir()
        (self.source / "odd/x.pb").write_bytes(self.trace(0, session=5, job=name))
        self.ingest()
        rows = duckdb.sql(f"SELECT DISTINCT job FROM '{self.other}/rows/*/*.parquet'").fetchall()
        self.assertEqual({job for (job,) in rows}, {"job", name, *(f"j{n}" for n in range(5))})
        months = duckdb.sql(f"SELECT DISTINCT month FROM '{self.other}/jobs/*/*.parquet'")
        self.assertEqual(len(months.fetchall()), 3)

    def test_views_are_made_of_the_tables_that_a_query_names(self):
        for file in self.other.glob("rows/*/*"):
            file.write_bytes(b"")
        self.assertEqual(len(self.rows("FROM jobs", self.other)), 1 + self.JOBS)
        with self.assertRaises(Exception):
            self.rows("FROM rows", self.other)


class Format1(unittest.TestCase):
    """A lake that was written before the format had a number."""

    def setUp(self):
        self.lake = Path(tempfile.mkdtemp(dir=SCRATCH.name)) / "lake"
        shutil.copytree(HERE / "data" / "lake_of_format_1", self.lake)
        self.flop = {}
        for file in self.lake.glob("summaries/*/*.sum.gz"):
            (job,) = {"first"} & {file.parent.name} or {"a.b c"}
            self.flop[job] = int(report_of(file)["figures"]["flop_exact"])

    def rows(self, query):
        return Lake(self.lake).sql(query).to_pylist()

    def expect(self):
        self.assertEqual({row["job"]: row["flop"] for row in self.rows("FROM jobs")}, self.flop)
        sums = self.rows("SELECT job, sum(flop) AS flop FROM rows GROUP BY job")
        self.assertEqual({row["job"]: row["flop"] for row in sums}, self.flop)
        self.assertEqual(self.rows("SELECT count(*) AS n FROM processes"), [{"n": 6}])
        (row,) = self.rows("SELECT epoch_us(min(begin)) AS begin FROM jobs")
        self.assertEqual(row["begin"], simulated_fleet.MAY // 1000)

    def test_it_is_read(self):
        self.expect()
        from flopinj.fleet import lake

        for file in (STAGE / "flopinj/fleet/queries").glob("*.sql"):
            Lake(self.lake).sql(lake.query(file.stem))

    def test_compaction_makes_it_one_of_today(self):
        from flopinj.fleet import keep, lake

        keep.compact(self.lake)
        self.expect()
        self.assertEqual({path.name for path in self.lake.glob("rows/*")},
                         {"job=first", "job=a.b c"})
        (row,) = self.rows(lake.query("stragglers", over=1.25, top=1))
        self.assertEqual(row["rank"], 2)

    def test_traces_are_added_to_it(self):
        runs = self.lake.parent / "runs/first"
        jobs = simulated_fleet.record(BUILD, self.lake.parent, *simulated_fleet.MODELS[0])
        runs.mkdir(parents=True)
        (runs / "rank3.pb").write_bytes(jobs[1].of_rank(
            3, 3, host="node", session=9, begin_ns=simulated_fleet.MAY))
        self.assertEqual(ingest(runs.parent, self.lake).problems, [])
        self.assertEqual(self.rows("SELECT processes FROM jobs ORDER BY job"),
                         [{"processes": 3}, {"processes": 4}])


class Names(Folder):
    def test_job_and_rank_come_from_a_pattern(self):
        outcome = ingest(self.runs, self.other, job_from="{job}/rank{rank}.pb")
        self.assertEqual(outcome.done, sorted(job.name for job in self.jobs))
        ranks = self.rows("SELECT file, rank FROM inputs", self.other)
        self.assertEqual(len(ranks), 2 * SIZE)
        for row in ranks:
            self.assertTrue(row["file"].endswith(f"/rank{row['rank']}.pb"))

    def test_else_the_job_is_that_of_the_header(self):
        runs = self.folder / "runs"
        for number, job in enumerate(("a/b c", ".d", "a/b c")):
            (runs / f"node{number}").mkdir(parents=True)
            trace = simulated_fleet.ranks.Trace(self.jobs[0].traces[1].read_bytes())
            (runs / f"node{number}" / "trace.pb").write_bytes(trace.of_rank(
                number, 3, host="node", session=number + 1, job=job))
        ingest(runs, self.other)
        self.assertEqual(self.rows("SELECT job, processes FROM jobs ORDER BY job", self.other),
                         [{"job": ".d", "processes": 1}, {"job": "a/b c", "processes": 2}])

    def test_a_job_of_which_it_is_not_known_when_it_ran(self):
        # Their headers have no time of day.
        golden = Path(__file__).resolve().parents[1] / "golden"
        runs = self.folder / "runs"
        for trace in sorted(golden.glob("*.pb")):
            (runs / trace.stem).mkdir(parents=True)
            shutil.copy(trace, runs / trace.stem / "rank0.pb")
        outcome = ingest(runs, self.other)
        names = sorted(trace.stem for trace in golden.glob("*.pb"))
        self.assertGreaterEqual(len(names), 5)
        self.assertEqual((outcome.failed, sorted(outcome.done)), ([], names))
        jobs = self.rows("SELECT job, begin, ended, wall_ns, launches FROM jobs ORDER BY job",
                         self.other)
        self.assertEqual([row["job"] for row in jobs], names)
        for row in jobs:
            self.assertEqual((row["begin"], row["ended"], row["wall_ns"]), (None, None, None))
            expected = report_of(golden / f"{row['job']}.pb")["figures"]["launches"]
            self.assertEqual(row["launches"], expected)
        self.assertEqual(self.rows("FROM days", self.other), [])
        self.assertEqual(ingest(runs, self.other).as_before, names)
        # They go by the day on which they were taken in.
        today = datetime.datetime.now(datetime.timezone.utc).date()
        self.assertEqual(keep.expire(str(self.other), today - datetime.timedelta(days=1)), [])
        tomorrow = today + datetime.timedelta(days=2)
        self.assertEqual(keep.expire(str(self.other), tomorrow), names)

    def test_compressed_traces_are_taken_in(self):
        runs = self.copy()
        for number, trace in enumerate(sorted(runs.rglob("*.pb"))):
            if number % 3 == 0:
                trace.with_name(trace.name + ".gz").write_bytes(gzip.compress(trace.read_bytes()))
            elif number % 3 == 1:
                with pyarrow.output_stream(f"{trace}.zst", compression="zstd") as packed:
                    packed.write(trace.read_bytes())
            if number % 3 < 2:
                trace.unlink()
        outcome = ingest(runs, self.other)
        self.assertEqual(outcome.problems, [])
        self.assertEqual(summaries(self.other), summaries(self.lake))


class CommandLine(Folder):
    def fleet(self, *words, code=0, **environment):
        done = subprocess.run([sys.executable, "-m", "flopinj", "fleet", *map(str, words)],
                              env={**os.environ, "PYTHONPATH": str(STAGE), **environment},
                              cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=120)
        out, said = done.stdout.decode(), done.stderr.decode()  # with every line's end as it is
        self.assertEqual(done.returncode, code, said)
        return out if code in (0, 3) else said

    def test_wrong_input_gets_one_line(self):
        for words, said in (
            (["ingest", "nowhere", "--out", "lake"], "nowhere: no traces: there is no such folder"),
            (["sql", "select", "kernel", "from", "jobs", "--lake", "lake"],
             "put the statement in quotes: flopinj fleet sql 'SELECT * FROM jobs' --lake LAKE"),
            (["jobs", "-o", "x.csv", "--lake", "lake"], "jobs --format csv > jobs.csv"),
            (["expire", "--lake", "lake"], "flopinj fleet expire --before 2026-05-01 --lake LAKE"),
            (["ingest", HERE.parent / "documents", "--out", "lake"],
             "no name there ends in .pb or .sum"),
            (["ingest", self.runs, "--out", "lake", "--job-from", "x"], "{job} in the place"),
            (["ingest", self.runs, "--out", "lake", "--job-from", "{job}.tar"], "has a name like"),
            (["ingest", self.runs, "--out", "lake", "--engine", "hadoop"], "invalid choice"),
            (["ingest", self.runs, "--out", "nothing://x"], "Protocol not known"),
            (["ingest", self.runs, "--out", "/proc/lake"], "/proc/lake"),
            (["ingest", self.runs, "--out", "lake", "--", "--no-such"], "--no-such"),
            (["jobs", "--lake", "nowhere"], "flopinj fleet ingest RUNS/ --out LAKE makes one"),
            (["jobs", "--lake", __file__], "is a file, and a lake is a folder"),
            (["ingest", __file__, "--out", "lake"], "SOURCE is the folder that it is in"),
            (["jbos", "--lake", "lake"], "did you mean jobs?"),
            (["query", "SELECT 1"], "did you mean sql?"),
            (["--lake", "lake"], "LAKE goes behind the command"),
            (["jobs", "--lake", self.lake, "--where", "x"], "SELECT * FROM jobs WHERE"),
            (["sql", "SELECT 1 FROM job", "--lake", self.lake], "'SHOW TABLES'"),
            (["forget", "nobody", "--lake", self.lake], "flopinj fleet jobs lists its jobs"),
            (["jobs", "--lake", self.lake, "--top", "0"], "a count from 1 on"),
            (["sql", "SELECT nothing FROM jobs", "--lake", self.lake], "nothing"),
            (["sql", "--lake", self.lake], "SELECT"), ([], "COMMAND"),
            (["ingest", self.runs, "--out", "lake", "--job", "a", "--job-from", "{job}.pb"],
             "one of them"),
            *((["sql", text, "--lake", self.lake], "it takes one SELECT, and nothing else")
              for text in ("COPY jobs TO 'x.csv'", "CREATE TABLE x AS SELECT 1", "",
                           "SET threads=1", "SELECT 1; SELECT 2", "SELECT 1; COPY jobs TO 'x.csv'",
                           "DROP VIEW jobs", "ATTACH 'x.db'", "INSTALL httpfs",
                           "CALL pragma_version()")),
            *((["sql", f"SELECT * FROM {text}", "--lake", self.lake], "Cannot access")
              for text in ("read_csv('/etc/passwd')", "read_text('/etc/passwd')", "glob('/*')",
                           f"read_text('{self.lake}/../../../etc/passwd')")),
        ):
            with self.subTest(words=words):
                text = self.fleet(*words, code=2)
                self.assertEqual(text.count("\n"), 1, text)
                self.assertTrue(text.startswith("flopinj fleet: "), text)
                self.assertIn(said, text)

    def test_a_job_is_asked_about(self):
        self.assertIn(f"{2 * SIZE} traces of 2 jobs: 2 taken in",
                      self.fleet("ingest", self.runs, "--out", self.other))
        jobs = json.loads(self.fleet("jobs", "--lake", self.other, "--format", "json"))
        self.assertEqual([job["job"] for job in jobs], [job.name for job in sorted(
            self.jobs, key=lambda job: -report_of(job.folder)["figures"]["hfu_kernel_time"])])
        for form in ("text", "csv"):
            text = self.fleet("stragglers", "--lake", self.other, "--format", form)
            for job in self.jobs:
                self.assertIn(job.name, text)
        kernels = json.loads(self.fleet("kernels", "--lake", self.other, "--format", "json"))
        launches = {}
        for job in self.jobs:
            for kernel in report_of(job.folder)["kernels"]:
                name = kernel["kernel"]
                launches[name] = launches.get(name, 0) + kernel["launches"]
        for kernel in kernels:
            self.assertEqual(kernel["launches"], launches[kernel["kernel"]])

    def test_the_lake_may_be_named_once(self):
        lake = str(self.folder / "named")
        said = self.fleet("ingest", self.runs, FLOPINJ_LAKE=lake)
        self.assertIn("Next: flopinj fleet jobs\n", said)
        self.assertEqual(self.fleet("jobs", FLOPINJ_LAKE=lake),
                         self.fleet("jobs", "--lake", lake))
        self.assertIn("--lake", self.fleet("jobs", code=2))

    def test_people_read_figures_with_units(self):
        from flopinj.fleet import answers

        result = doctest.testmod(answers)
        self.assertGreater(result.attempted, 3)
        self.assertEqual(result.failed, 0)
        (job, *_) = self.rows("SELECT job, hfu_kernel_time, flop FROM jobs ORDER BY job", self.lake)
        text = self.fleet("jobs", "--lake", self.lake)
        self.assertRegex(text, rf"\n{job['job']} .* \d[\d.]* [kMG]?FLOP ")
        self.assertRegex(text, r"\d[\d.]* %")
        self.assertIn(str(job["flop"]), self.fleet("sql", "SELECT flop FROM jobs", "--lake",
                                                   self.lake).replace(",", ""))

    def test_a_select_may_begin_in_other_ways(self):
        for text in ("FROM jobs", "WITH x AS (SELECT * FROM jobs) SELECT * FROM x", "VALUES (1)",
                     "DESCRIBE jobs", "-- jobs\nSELECT 1;"):
            self.fleet("sql", text, "--lake", self.lake)

    def test_no_cell_of_a_spreadsheet_is_a_formula(self):
        text = ("SELECT '=1+1' AS \"=a\", '+1' AS b, '-1' AS c, '@x' AS d, chr(9) || 'x' AS e, "
                "chr(13) || 'x' AS f, -1 AS g, 'x' AS h, -1.5 AS i, chr(39) AS j")
        out = self.fleet("sql", text, "--lake", self.lake, "--format", "csv")
        self.assertEqual(list(csv.reader(io.StringIO(out, newline=""))), [
            ["'=a", "b", "c", "d", "e", "f", "g", "h", "i", "j"],
            ["'=1+1", "'+1", "'-1", "'@x", "'\tx", "'\rx", "-1", "x", "-1.5", "''"]])

    def test_options_of_flopreduce_are_for_the_reports(self):
        self.fleet("ingest", self.runs, "--out", self.other, "--", "--fma", "1")
        rows = self.rows("SELECT job, flop FROM jobs", self.other)
        for row in rows:
            total = report_of("--fma", "1", self.runs / row["job"])["figures"]
            self.assertEqual(row["flop"], int(total["flop_exact"]))

    def test_the_program_without_python_says_where_it_is(self):
        done = subprocess.run([BUILD / "bin/flopinj", "fleet", "jobs", "--lake", "x"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stdout), (125, ""))
        self.assertRegex(done.stderr, "^flopinj: fleet .*in a clone of flopinj, pip install "
                                      r"'\.\[fleet\]'.*\n$")


class Importing(unittest.TestCase):
    def test_nothing_is_imported_before_it_is_asked_for(self):
        done = subprocess.run(
            [sys.executable, "-c", "import sys, flopinj.fleet; print(*sys.modules)"], text=True,
            check=True, env={**os.environ, "PYTHONPATH": str(STAGE)}, stdout=subprocess.PIPE)
        heavy = {"pyarrow", "duckdb", "fsspec", "pyspark", "ray", "distributed", "numpy", "pandas"}
        self.assertEqual(heavy & set(done.stdout.split()), set())


if __name__ == "__main__":
    unittest.main(verbosity=2)
