"""flopinj fleet on this machine, over simulated ranks: what a lake says is what flopreduce says of
the traces themselves, whatever was repeated, killed, damaged or taken away."""

import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python")]
import simulated_fleet  # noqa: E402
import staged  # noqa: E402

BUILD = Path(os.environ["FLOPINJ_BUILD"]).resolve()
SCRATCH = tempfile.TemporaryDirectory(prefix="flopinj-fleet-")
STAGE = staged.stage(Path(SCRATCH.name) / "packages", BUILD)
sys.path.insert(0, str(STAGE))

try:
    import duckdb  # noqa: F401
    import fsspec  # noqa: F401
    import pyarrow
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import flopinj  # noqa: E402
from flopinj.fleet import Lake, ingest, layout, plan  # noqa: E402

SIZE = 40
plan._FILES_IN_PART = 7  # so that a job has several parts


def reduce(*arguments):
    done = subprocess.run([BUILD / "bin/flopreduce", *map(str, arguments)],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.stdout


def report_of(*traces):
    return json.loads(reduce("--format=json", "--no-signatures", *traces))


def content(lake):
    """All rows of all tables."""
    found = {}
    for table in ("jobs", *layout.TABLES):
        rows = Lake(lake).sql(f"SELECT * FROM {table}").drop_columns(["ingest"])
        found[table] = sorted(map(repr, rows.to_pylist()))
    return found


def summaries(lake):
    return {file.parent.name: gzip.decompress(file.read_bytes())
            for file in Path(lake).glob("summaries/*/*.sum.gz")}


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
            report = report_of(flat)
            self.assertEqual(row["flop"], int(report["total"]["flop_exact"]))
            self.assertEqual(row["launches"], report["total"]["launches"])
            self.assertEqual(row["gpu_time_ns"], report["total"]["gpu_time_ns"])
            for name in ("hfu", "mfu", "hfu_kernel_time", "coverage", "ratio", "step_time"):
                self.assertEqual(row[name], report[name], name)
            self.assertEqual((row["processes"], row["world_size"], row["ranks_missing"]),
                             (SIZE, SIZE, 0))
            self.assertTrue(row["simulated"])

    def test_flop_by_sql_are_those_of_the_report_to_the_last_digit(self):
        sums = self.rows("SELECT job, sum(flop) AS flop, sum(launches) AS launches, "
                         "sum(gpu_time_ns) AS ns FROM rows GROUP BY job")
        self.assertEqual(len(sums), 2)
        for row in sums:
            total = report_of(self.runs / row["job"])["total"]
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
        ingest(runs, self.other)
        last = runs / self.jobs[1].name / f"rank{SIZE - 1}.pb"
        kept = last.read_bytes()
        last.unlink()
        outcome = ingest(runs, self.other)
        self.assertEqual(outcome.done, [self.jobs[1].name])
        (row,) = self.rows(f"SELECT processes, ranks_missing FROM jobs WHERE job = "
                           f"'{self.jobs[1].name}'", self.other)
        self.assertEqual(row, {"processes": SIZE - 1, "ranks_missing": 1})
        self.assertEqual(self.rows("SELECT count(*) AS n FROM processes", self.other),
                         [{"n": 2 * SIZE - 1}])
        last.write_bytes(kept)
        ingest(runs, self.other)
        self.assertEqual(content(self.other), content(self.lake))

    def test_a_lake_that_was_killed_while_it_was_made_is_whole_after_the_next_time(self):
        draw = random.Random(7)
        command = [sys.executable, "-c",
                   "import sys; from flopinj.fleet import plan; plan._FILES_IN_PART = 7\n"
                   "plan.ingest(*sys.argv[1:])", self.runs, self.other]
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
                self.assertLessEqual(rows, set(content(self.lake)[table]), table)
        ingest(self.runs, self.other)
        self.assertEqual(content(self.other), content(self.lake))
        self.assertEqual(summaries(self.other), summaries(self.lake))

    def seen(self):
        try:
            return {table: set(rows) for table, rows in content(self.other).items()}
        except flopinj.Error:  # no lake yet
            return {}

    def test_a_program_that_is_killed_runs_again(self):
        killed = []

        class Killing(subprocess.Popen):
            def __init__(self, command, *args, **kwargs):
                super().__init__(command, *args, **kwargs)
                if not killed and command[1] == "merge":
                    killed.append(self)
                    self.kill()

        with unittest.mock.patch("subprocess.Popen", Killing):
            ingest(self.runs, self.other)
        self.assertEqual(killed[0].returncode, -signal.SIGKILL)
        self.assertEqual(content(self.other), content(self.lake))

    def test_one_that_flopreduce_cannot_live_with_is_found_and_named(self):
        hostile = f"{self.runs}/{self.jobs[0].name}/rank9.pb"

        class Killing(subprocess.Popen):
            def __init__(self, command, *args, **kwargs):
                super().__init__(command, *args, **kwargs)
                if hostile in command:
                    self.kill()

        with unittest.mock.patch("subprocess.Popen", Killing):
            outcome = ingest(self.runs, self.other)
        ((job, file, problem),) = outcome.problems
        self.assertEqual((job, file), (self.jobs[0].name, f"{self.jobs[0].name}/rank9.pb"))
        self.assertIn("ended by signal 9, 3 times", problem)
        found = self.rows("SELECT job, processes FROM jobs", self.other)
        self.assertEqual({row["job"]: row["processes"] for row in found},
                         {self.jobs[0].name: SIZE - 1, self.jobs[1].name: SIZE})
        flat = self.folder / "flat.sum"
        reduce("merge", "-o", flat, *(trace for trace in self.jobs[0].traces
                                      if str(trace) != hostile))
        self.assertEqual(summaries(self.other)[job], flat.read_bytes())

    def test_jobs_whose_report_cannot_be_had_are_named_and_are_there_the_next_time(self):
        class Killing(subprocess.Popen):
            def __init__(self, command, *args, **kwargs):
                super().__init__(command, *args, **kwargs)
                if "--format=json" in command:
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
        total = report_of(*of)["total"]
        self.assertEqual(row["flop"], int(total["flop_exact"] or total["flop_partial_exact"]))
        self.assertEqual(self.rows("SELECT file FROM inputs WHERE problem IS NOT NULL", self.other),
                         [{"file": f"{self.jobs[0].name}/{name}"}])

    def test_empty(self):
        self.expect(lambda job: (job / "rank3.pb").write_bytes(b""), "rank3.pb", "is empty",
                    processes=SIZE - 1)

    def test_no_trace(self):
        self.expect(lambda job: (job / "rank3.pb").write_bytes(b"text\n" * 99), "rank3.pb",
                    "is not a trace", processes=SIZE - 1)

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

        self.expect(flip, "rank3.pb", "damaged places", processes=SIZE)

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
    def fleet(self, *words, code=0):
        done = subprocess.run([sys.executable, "-m", "flopinj", "fleet", *map(str, words)],
                              env={**os.environ, "PYTHONPATH": str(STAGE)}, cwd=self.folder,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=120)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code in (0, 3) else done.stderr

    def test_wrong_input_gets_one_line(self):
        for words, said in (
            (["ingest", "nowhere", "--out", "lake"], "nowhere: no traces: nothing is there"),
            (["ingest", HERE, "--out", "lake"], "no name there ends in .pb or .sum"),
            (["ingest", self.runs, "--out", "lake", "--job-from", "x"], "{job} in the place"),
            (["ingest", self.runs, "--out", "lake", "--job-from", "{job}.tar"], "has a name like"),
            (["ingest", self.runs, "--out", "lake", "--engine", "hadoop"], "invalid choice"),
            (["ingest", self.runs, "--out", "nothing://x"], "Protocol not known"),
            (["ingest", self.runs, "--out", "/proc/lake"], "/proc/lake"),
            (["ingest", self.runs, "--out", "lake", "--", "--no-such"], "--no-such"),
            (["jobs", "--lake", "nowhere"], "is no lake"),
            (["jobs", "--lake", self.lake, "--top", "0"], "a count from 1 on"),
            (["sql", "SELECT nothing FROM jobs", "--lake", self.lake], "nothing"),
            (["sql", "--lake", self.lake], "SELECT"), ([], "COMMAND"),
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
            self.jobs, key=lambda job: -report_of(job.folder)["hfu_kernel_time"])])
        for form in ("text", "csv"):
            text = self.fleet("stragglers", "--lake", self.other, "--format", form)
            for job in self.jobs:
                self.assertIn(job.name, text)
        kernels = json.loads(self.fleet("kernels", "--lake", self.other, "--format", "json"))
        launches = {}
        for job in self.jobs:
            for kernel in report_of(job.folder)["kernels"]:
                launches[kernel["name"]] = launches.get(kernel["name"], 0) + kernel["launches"]
        for kernel in kernels:
            self.assertEqual(kernel["launches"], launches[kernel["kernel"]])

    def test_options_of_flopreduce_are_for_the_reports(self):
        self.fleet("ingest", self.runs, "--out", self.other, "--", "--fma", "1")
        rows = self.rows("SELECT job, flop FROM jobs", self.other)
        for row in rows:
            total = report_of("--fma", "1", self.runs / row["job"])["total"]
            self.assertEqual(row["flop"], int(total["flop_exact"]))

    def test_the_program_without_python_says_where_it_is(self):
        done = subprocess.run([BUILD / "bin/flopinj", "fleet", "jobs", "--lake", "x"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stdout), (125, ""))
        self.assertRegex(done.stderr, r"^flopinj: fleet .*pip install 'flopinj\[fleet\]'.*\n$")


class Importing(unittest.TestCase):
    def test_nothing_is_imported_before_it_is_asked_for(self):
        code = ("import sys, time; begin = time.process_time(); import flopinj.fleet\n"
                "print(time.process_time() - begin, *sys.modules)")
        done = subprocess.run([sys.executable, "-c", code], text=True, check=True,
                              env={**os.environ, "PYTHONPATH": str(STAGE)}, stdout=subprocess.PIPE)
        seconds, *loaded = done.stdout.split()
        self.assertLess(float(seconds), 0.02)
        heavy = {"pyarrow", "duckdb", "fsspec", "pyspark", "ray", "distributed", "numpy", "pandas"}
        self.assertEqual(heavy & set(loaded), set())


if __name__ == "__main__":
    unittest.main()
