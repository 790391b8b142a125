"""Programs that do to a library in them what real programs do: each ends as it does without the
profiler, with the same output, and what was recorded is there.

A run without the profiler is made beside each one with it, so that the expectation is the program's
own behaviour.
"""

import json
import os
import re
import resource
import signal
import stat
import subprocess
import time
import unittest
from pathlib import Path

import harness
from harness import CLIENTS, injected_environment

HOSTILE = CLIENTS / "hostile_client"
# More than one line of a pipe's capacity takes no time; a hang is noticed after this many seconds.
LIMIT_S = 120


def plain_environment():
    """The program on simgpu, without a profiler."""
    env = harness.clean_environment()
    env["LD_LIBRARY_PATH"] = f"{harness.SIMGPU}:{env.get('LD_LIBRARY_PATH', '')}"
    return env


class Hostile(harness.TestCase):
    def both(self, *arguments, **settings):
        """Runs the client without and with the profiler: exit code and output have to agree."""
        plain = harness.run([HOSTILE, *arguments], plain_environment(), timeout=LIMIT_S)
        done = harness.run([HOSTILE, *arguments],
                           injected_environment(self.trace, **settings), timeout=LIMIT_S)
        self.assertEqual((done.returncode, done.stdout), (plain.returncode, plain.stdout),
                         done.stderr)
        return done

    def both_until(self, condition, *arguments, **settings):
        """The same with a client that goes on to the end of its input. Under the profiler that is
        when the condition is true."""
        plain = harness.run([HOSTILE, *arguments], plain_environment(), timeout=LIMIT_S)
        with subprocess.Popen([str(word) for word in (HOSTILE, *arguments)], text=True,
                              env=injected_environment(self.trace, **settings),
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as client:
            self.addCleanup(client.kill)
            give_up = time.monotonic() + LIMIT_S
            while not condition():
                self.assertLess(time.monotonic(), give_up, "it did not come")
                time.sleep(0.02)
            out, err = client.communicate(timeout=LIMIT_S)
        self.assertEqual((client.returncode, out), (plain.returncode, plain.stdout), err)

    def has_launches(self):
        """The trace as far as it has come."""
        return (self.has_begun() and
                harness.reduce(self.trace, check=None)["ledger"][-1]["launches"] > 0)

    def has_begun(self):
        return self.trace.exists() and self.trace.stat().st_size > 0

    def report(self, check=0):
        report = harness.reduce(self.trace, check=check)
        self.assert_balanced(report)
        return report


class Descriptors(Hostile):
    def test_a_file_of_the_programs_that_gets_our_descriptor_is_left_alone(self):
        theirs = self.folder / "precious.db"
        done = self.both("takes_descriptors", theirs)
        self.assertEqual(theirs.read_bytes(), b"mine\n")
        lines = done.stderr.strip().splitlines()
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertIn("has closed the descriptor", lines[0])

    def test_neither_is_one_that_takes_the_place_of_a_fifo(self):
        theirs = self.folder / "precious.db"
        os.mkfifo(self.trace)
        with subprocess.Popen(["cat", str(self.trace)], stdout=subprocess.DEVNULL) as reader:
            self.both("takes_descriptors", theirs)
            reader.wait(LIMIT_S)
        self.assertEqual(theirs.read_bytes(), b"mine\n")

    def test_a_trace_that_is_removed_is_missed(self):
        env = injected_environment(self.trace)
        with subprocess.Popen([str(CLIENTS / "launch_client"), "endless"], env=env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as client:
            client.stdout.readline()
            self.trace.unlink()
            line = client.stderr.readline()
            client.kill()
        self.assertIn("somebody has removed the file", line)


class StandardError(Hostile):
    """A line of ours for the user costs the program nothing, whatever stderr is."""

    def run_with(self, stderr, **how):
        """The exit code of a run that has a line to say."""
        env = injected_environment(self.trace, FLOPINJ_SAYS_NOTHING="1")
        return subprocess.run([str(CLIENTS / "launch_client"), "same_grid", "5"], env=env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr,
                              timeout=LIMIT_S, **how).returncode

    def test_it_says_so_where_it_can(self):
        with open(self.folder / "stderr", "w+", encoding="utf-8") as stderr:
            self.assertEqual(self.run_with(stderr), 5)
            stderr.seek(0)
            self.assertIn("FLOPINJ_SAYS_NOTHING", stderr.read())

    def test_nobody_reads_it(self):
        reader, writer = os.pipe()
        os.close(reader)
        try:
            self.assertEqual(self.run_with(writer), 5)
        finally:
            os.close(writer)
        self.assertEqual(self.report()["ledger"][-1]["launches"], 60)

    def test_it_is_a_full_pipe(self):
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        try:
            while True:
                os.write(writer, bytes(4096))
        except BlockingIOError:
            pass
        os.set_blocking(writer, True)
        try:
            self.assertEqual(self.run_with(writer), 5)
        finally:
            os.close(reader)
            os.close(writer)

    def test_it_is_a_file_that_may_not_grow(self):
        size = 1 << 33  # far more than simgpu's memory, which is a file too

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        with open(self.folder / "stderr", "wb") as stderr:
            stderr.truncate(size)
            stderr.seek(size)
            self.assertEqual(self.run_with(stderr, preexec_fn=limit), 5)

    def test_it_is_closed(self):
        with open("/dev/full", "wb") as full:
            self.assertEqual(self.run_with(full), 5)
        self.trace.unlink()
        self.assertEqual(self.run_with(None, preexec_fn=lambda: os.close(2)), 5)


class Ends(Hostile):
    def test_main_may_end_before_its_threads(self):
        """CUPTI has a thread of its own then, but for mode count."""
        for mode in ("multiplex", "timing", "count"):
            with self.subTest(mode):
                self.both("main_ends", 100, FLOPINJ_MODE=mode, FLOPINJ_FORCE=1)
                self.assertEqual(self.report()["ledger"][-1]["launches"], 40)

    def test_a_signal_ends_a_program_whose_main_thread_has_ended(self):
        env = injected_environment(self.trace)
        with subprocess.Popen([str(HOSTILE), "main_ends", "600000"], env=env) as program:
            try:
                stat = Path(f"/proc/{program.pid}/task/{program.pid}/stat")
                give_up = time.monotonic() + LIMIT_S
                while " Z " not in stat.read_text() and time.monotonic() < give_up:
                    time.sleep(0.01)
                program.terminate()
                self.assertEqual(program.wait(LIMIT_S), -signal.SIGTERM)
            finally:
                program.kill()

    @unittest.skipIf(harness.SANITIZER_PRELOAD, "sanitizers' allocators are no more ready for it")
    def test_exit_in_a_signal_handler(self):
        for microseconds in range(20_000, 100_000, 4_000):
            with self.subTest(microseconds):
                self.both("exit_in_handler", microseconds, FLOPINJ_FORCE=1,
                          FLOPINJ_PLAN_WAIT_MS=0)
                harness.reduce(self.trace, check=None)

    def check_end(self, done):
        """A trace without its end has a line that says so."""
        damage = {d["kind"] for d in harness.reduce(self.trace, check=None).get("damage", [])}
        if "no_end" in damage:
            self.assertIn("the trace lacks its end", done.stderr)
        return "no_end" in damage

    @unittest.skipIf(harness.SANITIZER_PRELOAD, "sanitizers' allocators are no more ready for it")
    def test_exit_in_a_signal_handler_while_all_threads_allocate(self):
        for end, mode in (("exit", "multiplex"), ("quick_exit", "multiplex"), ("exit", "timing"),
                          ("exit", "count")):
            for threads in (1, 3):
                for microseconds in range(20_000, 80_000, 20_000):
                    with self.subTest(end=end, mode=mode, threads=threads, after=microseconds):
                        done = self.both("exit_in_malloc", microseconds, end, threads,
                                         FLOPINJ_FORCE=1, FLOPINJ_MODE=mode)
                        self.assertEqual(done.returncode, 7)
                        self.check_end(done)

    @unittest.skipIf(harness.SANITIZER_PRELOAD, "sanitizers' allocators are no more ready for it")
    def test_exit_in_a_signal_handler_while_the_list_of_libraries_is_read(self):
        for microseconds in range(20_000, 80_000, 10_000):
            with self.subTest(after=microseconds):
                done = self.both("exit_in_malloc", microseconds, "exit", 1, "lists_libraries",
                                 FLOPINJ_FORCE=1)
                self.assertEqual(done.returncode, 7)
                self.check_end(done)

    @unittest.skipIf(harness.SANITIZER_PRELOAD, "sanitizers have an allocator of their own")
    def test_exit_in_a_signal_handler_that_has_interrupted_malloc(self):
        """With an allocator in which no other thread gets memory from then on."""
        for end in ("exit", "quick_exit"):
            for of_profiler in (0, 1):
                with self.subTest(end=end, of_profiler=of_profiler):
                    done = self.both("exit_in_locked_malloc", of_profiler, end, FLOPINJ_FORCE=1)
                    self.assertEqual((done.returncode, done.stdout), (7, "SIGTERM ends it\n"))
                    self.assertTrue(self.check_end(done))

    def test_a_program_that_unloads_the_library_keeps_it(self):
        self.both("unloads")
        self.assertEqual(self.report()["ledger"][-1]["launches"], 110)

    def test_a_child_of_a_raw_fork_ends_at_once(self):
        self.both("raw_fork")
        self.assertEqual(self.report()["ledger"][-1]["launches"], 1)

    def test_quick_exit_is_an_exit(self):
        self.both("quick_end")
        self.assertEqual(self.report()["ledger"][-1]["launches"], 1)

    def test_immediate_exit_leaves_a_trace_that_says_whose_it_is(self):
        self.both_until(self.has_begun, "immediate_exit")
        report = self.report()
        self.assertIn("immediate_exit", report["processes"][0]["command_line"])

    def test_immediate_exit_loses_nothing_that_was_written_while_the_program_ran(self):
        self.both_until(self.has_launches, "immediate_exit")
        self.assertEqual(self.report()["ledger"][-1]["launches"], 1)

    def test_a_program_that_runs_itself_has_a_trace_for_each(self):
        """An exec() keeps the process id, and so the name."""
        done = harness.run([HOSTILE, "runs_itself", 3],
                           injected_environment(self.folder / "t-%p.pb"), timeout=LIMIT_S)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        traces = sorted(path.name.split(".")[1:] for path in self.folder.glob("t-*"))
        self.assertEqual(traces, [["2", "pb"], ["3", "pb"], ["pb"]])


class Threads(Hostile):
    @unittest.skipIf(harness.SANITIZER_PRELOAD, "sanitizers do not unwind cancelled threads")
    def test_a_cancelled_thread_initializes_cuda(self):
        self.assertEqual(self.both("cancelled_init").stdout, "cancelled 1\n")

    @unittest.skipIf(harness.SANITIZER_PRELOAD, "sanitizers' allocators are no more ready for it")
    def test_ranges_in_a_signal_handler(self):
        self.both("ranges_in_handler")
        self.report()

    @unittest.skipIf(harness.SANITIZER_PRELOAD, "sanitizers start threads in their own way")
    def test_a_signal_finds_no_thread_of_ours_even_in_its_first_moment(self):
        done = self.both("signals_meet_threads", FLOPINJ_FORCE=1)
        self.assertEqual(done.stdout, "handlers in threads of the profiler: 0\n")
        self.assertEqual(done.stderr, "threads of the profiler: 5\n")

    def test_all_keys_of_the_c_library_are_taken(self):
        self.assertEqual(self.both("all_keys").stdout, "keys changed 0\n")
        self.assertEqual(self.report()["ledger"][-1]["launches"], 10)

    @unittest.skipIf(harness.SANITIZER_PRELOAD, "sanitizers need memory of their own")
    def test_a_thousand_threads_take_little_memory(self):
        """Under 64 MB more than the program itself has."""
        arguments = [HOSTILE, "many_threads", 1_000]
        plain = harness.run(arguments, plain_environment(), timeout=LIMIT_S)
        done = harness.run(arguments, injected_environment(self.trace), timeout=4 * LIMIT_S)
        self.assertEqual((plain.returncode, done.returncode), (0, 0), done.stderr)
        self.assertLess(int(done.stdout) - int(plain.stdout), 64_000)
        self.assertEqual(self.report()["ledger"][-1]["launches"], 10_000)


@unittest.skipIf(harness.SANITIZER_PRELOAD, "sanitizers have memory of their own for each thread")
class Memory(Hostile):
    """What docs/safety.md says of a thread's memory. Read while the program is stopped, with the
    profiler and without it: the difference is the profiler's."""

    @staticmethod
    def private_kib(pid):
        """Pages that are the process's own, and written to."""
        os.kill(pid, signal.SIGSTOP)
        status = Path(f"/proc/{pid}/status")
        while "State:\tT" not in status.read_text():
            time.sleep(0.001)
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        os.kill(pid, signal.SIGCONT)
        return int(re.search(r"Private_Dirty:\s+(\d+) kB", rollup)[1])

    def growth_kib(self, environment, threads, rounds, launches):
        """Of so many threads, once what they have launched is in the trace, if there is one."""
        command = [str(word) for word in (HOSTILE, "thread_memory", threads, rounds, launches)]
        with subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as client:
            self.addCleanup(client.kill)
            memory = []
            for _ in range(1 + rounds):
                made = int(client.stdout.readline())
                if "FLOPINJ_OUTPUT" in environment:
                    self.wait_for_launches(made)
                memory.append(self.private_kib(client.pid))
                client.stdin.write("\n")
                client.stdin.flush()
            self.assertEqual(made, launches * (1 + rounds * threads))
            self.assertEqual(client.wait(LIMIT_S), 0)
        return memory[-1] - memory[0]

    def wait_for_launches(self, made):
        give_up = time.monotonic() + LIMIT_S
        while not self.trace.exists() or self.written() < made:
            self.assertLess(time.monotonic(), give_up, "it did not come")
            time.sleep(0.1)

    def written(self):
        done = harness.run([harness.FLOPREDUCE, "--format", "json", self.trace],
                           harness.clean_environment())
        return json.loads(done.stdout)["ledger"][-1]["launches"] if done.stdout else 0

    def ours_kib(self, **arguments):
        settings = {"FLOPINJ_MODE": "count", "FLOPINJ_LEVEL": "tally", "FLOPINJ_FORCE": 1}
        with_us = self.growth_kib(injected_environment(self.trace, **settings), **arguments)
        return (with_us - self.growth_kib(plain_environment(), **arguments)) / arguments["threads"]

    def test_a_thread_that_launches_a_few_kernels(self):
        self.assertLessEqual(self.ours_kib(threads=400, rounds=1, launches=10), 40)

    def test_a_thread_that_launches_many(self):
        """All 16,384 places of its ring have been used. In rounds, for launches that a late writer
        has not written take memory beside: 112 KiB a thread at the most here."""
        self.assertLessEqual(self.ours_kib(threads=12, rounds=20, launches=1_000), 1_200)


class Nvtx(Hostile):
    """What a program may do with NVTX that no program should."""

    # A recording that ends and one that begins while the program runs.
    LATER = ({"FLOPINJ_DURATION": 0.3}, {"FLOPINJ_START_AFTER": 0.3},
             {"FLOPINJ_LAUNCH_COUNT": 5}, {"FLOPINJ_CAPTURE_RANGE": "cudaProfilerApi"})

    def test_a_library_with_nvtx_is_closed_before_a_recording_begins_or_ends(self):
        for later in self.LATER:
            for mapped_again in (0, 1):
                with self.subTest(**later, mapped_again=mapped_again):
                    self.trace.unlink(missing_ok=True)
                    self.both_until(self.has_launches, "closes_nvtx", mapped_again, **later)
                    self.assertGreater(self.report()["ledger"][-1]["launches"], 0)

    def test_handles_that_nobody_gave(self):
        done = self.both("bogus_handles")
        self.assertEqual(self.report()["ledger"][-1]["launches"], int(done.stdout.split()[0]))


class NoMemory(Hostile):
    @unittest.skipIf(harness.SANITIZER_PRELOAD, "sanitizers have an allocator of their own")
    def test_failed_allocations_end_nothing(self):
        """From the first allocation of the start to those of the planner's and writer's threads."""
        for after in [*range(0, 60, 3), *range(60, 1_000, 47)]:
            for onwards in ([], ["onwards"]):
                with self.subTest(after=after, onwards=bool(onwards)):
                    self.both("no_memory", after, *onwards, FLOPINJ_FORCE=1,
                              FLOPINJ_PLAN_WAIT_MS=200)


class Privacy(Hostile):
    def test_a_trace_is_its_owners_only(self):
        before = os.umask(0)
        try:
            self.both("raw_fork")
        finally:
            os.umask(before)
        self.assertEqual(stat.S_IMODE(self.trace.stat().st_mode), 0o600)

    def test_secrets_of_the_command_line_are_hidden(self):
        self.both("raw_fork", "--api-key=abc", "--password", "def")
        words = self.report()["processes"][0]["command_line"]
        self.assertEqual(words.split(" ", 1)[1],
                         "raw_fork --api-key=[hidden] --password [hidden]")
        self.assertNotIn(b"abc", self.trace.read_bytes())

    def test_the_command_line_may_be_left_out(self):
        self.both("raw_fork", FLOPINJ_NO_COMMAND_LINE=1)
        self.assertEqual(self.report()["processes"][0]["command_line"], "")

    def test_links_are_not_followed(self):
        """Even where the user wants to overwrite: in a shared folder others make links."""
        theirs = self.folder / "victim"
        for make in (os.symlink, os.link):
            with self.subTest(make.__name__):
                theirs.write_bytes(b"theirs")
                make(theirs, self.trace)
                done = self.both("raw_fork", FLOPINJ_FORCE=1)
                self.assertIn("link", done.stderr)
                self.assertEqual(theirs.read_bytes(), b"theirs")
                self.trace.unlink()

    def test_a_message_has_no_commands_for_the_terminal(self):
        done = harness.run([HOSTILE, "raw_fork"], injected_environment("/nowhere/\x1b[31mred"))
        self.assertIn("/nowhere/?[31mred", done.stderr)
        self.assertNotIn("\x1b", done.stderr)


class TwoLibraries(Hostile):
    def test_a_second_library_for_nvtx_is_noticed(self):
        other = self.folder / "libother.so"
        other.write_bytes(harness.LIBRARY.read_bytes())
        done = self.both("raw_fork", NVTX_INJECTION64_PATH=other)
        self.assertIn("NVTX_INJECTION64_PATH names another library", done.stderr)
        codes = harness.codes(self.report())
        self.assertIn("nvtx.other_library", codes)


if __name__ == "__main__":
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    harness.main()
