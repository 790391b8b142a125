"""flopinj attach enters programs that were started without flopinj: they are as without it."""

import contextlib
import ctypes
import os
import random
import resource
import re
import signal
import struct
import subprocess
import time
import unittest
from pathlib import Path

import harness
from attaching import PATIENCE_S, Attach, ask
from harness import CLIENTS, TRAINER

SYSTEM_CALL_FUTEX, SYSTEM_CALL_RESTART = "202", "219"


def may_trace():
    """Whether this machine lets a program hold another one that is no child of its own."""
    attach, detach = 16, 17
    libc = ctypes.CDLL(None, use_errno=True)
    with subprocess.Popen(["sleep", "60"]) as program:
        held = os.uname().machine == "x86_64" and libc.ptrace(attach, program.pid, 0, 0) == 0
        if held:
            os.waitpid(program.pid, os.WUNTRACED)
            libc.ptrace(detach, program.pid, 0, 0)
        program.kill()
    return held


def forbid_no_call():
    """A filter as containers have it, which is inherited: the number -1 is no system call, and who
    makes it ends. Debuggers leave a system call out by that number."""
    load, jump_if_equal, result, kill, allow = 0x20, 0x15, 0x06, 0x80000000, 0x7fff0000
    code = ((load, 0, 0, 0), (jump_if_equal, 0, 1, 0xffffffff), (result, 0, 0, kill),
            (result, 0, 0, allow))
    instructions = b"".join(struct.pack("=HBBI", *one) for one in code)
    buffer = ctypes.create_string_buffer(instructions)
    program = struct.pack("@HP", len(code), ctypes.addressof(buffer))
    no_new_privileges, seccomp, filtered = 38, 22, 2
    libc = ctypes.CDLL(None)
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) or libc.prctl(seccomp, filtered, program):
        raise OSError("no filter")


class Command:
    """flopinj attach, in a session of its own as a terminal's shell would give it."""

    def __init__(self, pid, folder, *options, before=None):
        self.process = subprocess.Popen(
            [str(w) for w in (harness.FLOPINJ, "attach", *options, pid)], text=True, cwd=folder,
            env=harness.clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True, preexec_fn=before)

    def end(self):
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, out, err

    def everyone(self):
        """The command and the processes that it has started."""
        parents = {}
        for process in Path("/proc").iterdir():
            if process.name.isdigit():
                try:
                    fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
                except OSError:
                    continue
                parents[int(process.name)] = int(fields[1])
        found = [self.process.pid]
        for pid in found:
            found += [p for p, parent in parents.items() if parent == pid]
        return found


@unittest.skipIf(not may_trace(), "this machine lets nobody hold a process, or is not x86-64")
@unittest.skipIf(harness.SANITIZER_PRELOAD, "sanitizers have to be there from the start")
class Entering(Attach):
    def client(self, *case, before=None):
        env = {**harness.clean_environment(), "LD_LIBRARY_PATH": str(harness.SIMGPU)}
        program = subprocess.Popen([str(w) for w in (CLIENTS / "enter_client", *case)], env=env,
                                   text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   start_new_session=True, preexec_fn=before)
        self.addCleanup(harness.kill_session, program)
        self.assertEqual(program.stdout.readline(), "ready\n")
        return program

    @staticmethod
    def tell(program, line):
        """What it has been told is done when this returns: the number of its signals so far."""
        program.stdin.write(line + "\n")
        program.stdin.flush()
        return int(program.stdout.readline())

    def attach(self, program):
        return Command(program.pid, self.folder).end()

    def assert_attached(self, ended):
        self.assertEqual((ended[0], ended[2]), (0, ""), ended)
        self.assertIn("without flopinj", ended[1])

    def assert_right(self, program, signals=0):
        out, _ = program.communicate(timeout=PATIENCE_S)
        self.assertEqual((program.returncode, out), (0, f"right {signals}\n"))

    def assert_refused(self, pid, words):
        code, out, err = Command(pid, self.folder).end()
        self.assertEqual((code, out, len(err.splitlines())), (1, "", 1), err)
        self.assertIn(words, err)


class Places(Entering):
    def test_each_kind_of_wait_goes_on(self):
        for case in ("poll_for_ever", "poll_for_a_while", "ppoll_for_ever", "select_for_a_while",
                     "sleep_for_a_while", "sleep_until_a_time", "condition_for_ever",
                     "condition_for_a_while", "semaphore", "registers", "pending_error"):
            with self.subTest(case):
                program = self.client(case)
                self.assert_attached(self.attach(program))
                self.assertEqual(ask(program.pid, "status")["state"], "recording")
                self.assert_right(program)

    def test_no_place_that_is_not_safe_is_entered(self):
        """On a small stack or deep in a large one, in a signal handler, or where a filter ends the
        thread: the command waits until the first thread sleeps in an ordinary place."""
        for case in ("alternate_stack", "alternate_stack_on_stack", "handler", "small_thread",
                     "deep_thread", "filtered_thread", "epoll"):
            with self.subTest(case):
                program = self.client(case)
                command = Command(program.pid, self.folder)
                time.sleep(3)
                self.assertIsNone(command.process.poll())
                self.assertIsNone(self.listens(program.pid))
                self.tell(program, "go on")
                self.assert_attached(command.end())
                self.assert_right(program)


    def test_a_program_in_no_safe_place_is_left_in_time(self):
        program = self.client("alternate_stack")
        self.assert_refused(program.pid, "was in no place within 20 s")
        self.assertIsNone(self.listens(program.pid))
        self.assert_right(program)


class States(Entering):
    def test_a_filter_of_system_calls(self):
        program = self.client("filtered")
        self.tell(program, "")
        self.wait_for(lambda: re.search(r"Seccomp:\s+2",
                                        Path(f"/proc/{program.pid}/status").read_text()))
        self.assert_refused(program.pid, "seccomp")
        self.assert_right(program)

    def test_a_filter_that_flopinj_has_too(self):
        for case in ("sleep", "poll_for_ever"):
            with self.subTest(case):
                program = self.client(case, before=forbid_no_call)
                self.assert_attached(Command(program.pid, self.folder, before=forbid_no_call).end())
                self.assert_right(program)

    def test_a_stopped_process(self):
        program = self.client("sleep")
        program.send_signal(signal.SIGSTOP)
        os.waitpid(program.pid, os.WUNTRACED)
        self.assert_refused(program.pid, "is stopped: let it go on (kill -CONT")
        program.send_signal(signal.SIGCONT)
        self.assert_attached(self.attach(program))
        self.assert_right(program, signals=1)  # SIGCONT itself

    @unittest.skipUnless(harness.works("unshare", "-n"), "no network namespaces can be made")
    def test_another_network_is_seen_before_anything_is_done(self):
        new_network = 0x40000000  # CLONE_NEWNET
        program = self.client("sleep", before=lambda: ctypes.CDLL(None).unshare(new_network))
        threads = sorted(os.listdir(f"/proc/{program.pid}/task"))
        self.assert_refused(program.pid, f"nsenter -t {program.pid} -n flopinj")
        self.assertNotIn("libflopinj", Path(f"/proc/{program.pid}/maps").read_text())
        self.assertEqual(sorted(os.listdir(f"/proc/{program.pid}/task")), threads)
        self.assert_right(program)

    def test_what_a_program_says_of_its_libraries_has_a_limit(self):
        """One has 8 GiB of code, and the command a quarter of a GiB of memory."""
        program = self.client("forged_library")
        command = Command(program.pid, self.folder, before=lambda: resource.setrlimit(
            resource.RLIMIT_AS, (256 << 20, 256 << 20)))
        self.assert_attached(command.end())
        self.assert_right(program)

    SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17  # of ptrace

    def let_go(self, program):
        libc = ctypes.CDLL(None)
        libc.ptrace(self.INTERRUPT, program.pid, 0, 0)
        os.waitpid(program.pid, 0)
        libc.ptrace(self.DETACH, program.pid, 0, 0)

    def test_a_process_that_a_debugger_holds(self):
        program = self.client("sleep")
        self.assertEqual(ctypes.CDLL(None).ptrace(self.SEIZE, program.pid, 0, 0), 0)
        self.assert_refused(program.pid, f"is held by a debugger, process {os.getpid()}")
        self.let_go(program)
        self.assert_right(program)

    def test_a_wait_that_a_debugger_has_interrupted(self):
        """The kernel goes on with it in a system call that has a number of its own."""
        for case in ("poll_for_ever", "sleep_for_long"):
            with self.subTest(case):
                program = self.client(case)
                first_thread = Path(f"/proc/{program.pid}/syscall")
                self.wait_for(lambda: first_thread.read_text() != "running\n")
                self.assertEqual(ctypes.CDLL(None).ptrace(self.SEIZE, program.pid, 0, 0), 0)
                self.let_go(program)
                self.wait_for(lambda: first_thread.read_text().split()[0] == SYSTEM_CALL_RESTART)
                self.assert_attached(self.attach(program))
                self.assert_right(program)

    def test_a_process_that_has_ended(self):
        program = self.client("sleep")
        program.kill()
        os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)
        self.assert_refused(program.pid, "has ended")

    def test_children(self):
        for case in ("forks", "vforks"):
            with self.subTest(case):
                program = self.client(case)
                self.assert_attached(self.attach(program))
                out, _ = program.communicate(timeout=PATIENCE_S)
                # Each child's end is a signal.
                self.assertEqual((program.returncode, out.split()[0]), (0, "right"), out)

    def test_a_program_that_runs_itself_again_and_again(self):
        """Each image is entered or not; the last one ends well."""
        env = {**harness.clean_environment(), "LD_LIBRARY_PATH": str(harness.SIMGPU)}
        for _ in range(5):
            program = subprocess.Popen([str(CLIENTS / "enter_client"), "execs", "100"], env=env,
                                       text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.addCleanup(program.kill)
            command = Command(program.pid, self.folder)
            out, err = program.communicate(timeout=PATIENCE_S)
            self.assertEqual((program.returncode, out), (0, "right 0\n"), err)
            command.end()


class Signals(Entering):
    """Signals at any moment, to the target and to the command."""

    # Those that a terminal or a user sends, and those of the real time, which the kernel counts.
    SENT = (signal.SIGINT, signal.SIGTRAP, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM,
            signal.SIGUSR1, signal.SIGCHLD, signal.SIGSEGV)
    REAL_TIME = signal.SIGRTMIN + 3

    def test_the_target_is_signalled_all_the_time(self):
        for case in ("sleep", "poll_for_ever"):
            with self.subTest(case):
                program = self.client(case)
                command = Command(program.pid, self.folder)
                sent = 0
                while command.process.poll() is None:
                    program.send_signal(self.SENT[sent % len(self.SENT)])
                    os.kill(program.pid, self.REAL_TIME)
                    sent += 1
                    time.sleep(0.002)
                self.assert_attached(command.end())
                out, _ = program.communicate(timeout=PATIENCE_S)
                self.assertEqual(program.returncode, 0)
                word, count = out.split()
                self.assertEqual(word, "right")
                self.assertGreaterEqual(int(count), sent)

    def test_no_signal_is_lost_where_the_command_is_killed(self):
        """The kernel counts each signal of the real time, up to as many as a user may have pending:
        a program that does not run for a while could have more."""
        draw, at_most = random.Random(1), resource.getrlimit(resource.RLIMIT_SIGPENDING)[0] // 4
        for _ in range(15):
            program = self.client("sleep")
            command = Command(program.pid, self.folder)
            everyone, sent = [command.process.pid], 0
            end_at = time.monotonic() + draw.uniform(0, 0.1)
            while time.monotonic() < end_at:
                if sent < at_most:
                    os.kill(program.pid, self.REAL_TIME)
                    sent += 1
                if len(everyone) == 1:
                    everyone = command.everyone()
            for pid in everyone:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            command.end()
            self.assert_right(program, signals=sent)

    def entering(self):
        """A program in which a call waits for the loader's lock, and the command that made it."""
        program = self.client("loader")
        command = Command(program.pid, self.folder)

        def is_in_loader():
            return Path(f"/proc/{program.pid}/syscall").read_text().split()[0] == SYSTEM_CALL_FUTEX
        self.wait_for(is_in_loader)
        return program, command

    def test_signals_come_after_the_call(self):
        program, command = self.entering()
        for number in self.SENT:
            program.send_signal(number)
        time.sleep(0.5)  # so long they could be handled
        self.assertEqual(self.tell(program, ""), 0)
        self.tell(program, "load")
        self.assert_attached(command.end())
        self.wait_for(lambda: self.tell(program, "") == len(self.SENT))
        self.assert_right(program, signals=len(self.SENT))

    def test_the_command_ends_while_the_call_waits(self):
        """By its terminal, a user, or SIGKILL of all its processes: the call ends on its own."""
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGQUIT,
                       signal.SIGKILL):
            with self.subTest(number):
                program, command = self.entering()
                if number == signal.SIGKILL:
                    for pid in command.everyone():
                        os.kill(pid, number)
                else:
                    os.killpg(command.process.pid, number)
                self.assertEqual(command.end()[0], -number)
                program.send_signal(signal.SIGINT)
                self.assertEqual(self.tell(program, ""), 0)
                self.tell(program, "load")
                self.wait_for(lambda: self.tell(program, "") == 1)
                self.assert_attached(self.attach(program))
                self.assert_right(program, signals=1)

    def test_the_target_is_stopped_while_the_call_waits(self):
        program, command = self.entering()
        program.send_signal(signal.SIGSTOP)
        code, _, err = command.end()
        self.assertEqual(code, 1)
        self.assertIn("is stopped", err)
        program.send_signal(signal.SIGCONT)
        self.tell(program, "load")
        self.assert_attached(self.attach(program))
        self.assert_right(program, signals=1)

    def test_the_target_ends_while_the_call_waits(self):
        program, command = self.entering()
        program.kill()
        code, _, err = command.end()
        self.assertEqual((code, len(err.splitlines())), (1, 1))
        self.assertIn("ended while it was entered", err)

    def test_a_call_that_waits_for_long_is_left(self):
        program, command = self.entering()
        code, _, err = command.end()
        self.assertEqual((code, len(err.splitlines())), (1, 1))
        self.assertIn("takes long to load the library", err)
        self.tell(program, "load")
        self.assert_attached(self.attach(program))
        self.assert_right(program)

    def test_the_command_ends_at_any_moment(self):
        draw = random.Random(1)
        for case in ("sleep", "poll_for_ever"):
            for _ in range(15):
                program = self.client(case)
                command = Command(program.pid, self.folder)
                time.sleep(draw.uniform(0, 0.05))
                number = draw.choice((signal.SIGHUP, signal.SIGINT, signal.SIGTERM,
                                      signal.SIGKILL))
                everyone = command.everyone()
                for pid in everyone if draw.random() < 0.5 else everyone[:1]:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, number)
                command.end()
                self.assert_attached_or_recorded(program)
                self.assert_right(program)

    def assert_attached_or_recorded(self, program):
        """It can be attached to, unless the command had already done so."""
        code, _, err = self.attach(program)
        if code != 0:
            self.assertIn("it records already", err)


class Trainer(Entering):
    def test_results_are_the_same(self):
        options = ("--steps", 120, "--sleep-ms", 25, "--model", "mlp")
        env = {**harness.clean_environment(), "LD_LIBRARY_PATH": str(harness.SIMGPU)}
        plain = harness.run([TRAINER, "--steps", 120, "--model", "mlp"], env)
        program = subprocess.Popen([str(c) for c in (TRAINER, *options)], env=env, text=True,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(program.kill)
        self.wait_for(lambda: "libcuda" in Path(f"/proc/{program.pid}/maps").read_text())
        self.assert_attached(self.attach(program))
        self.wait_for(lambda: int(ask(program.pid, "status")["launches"]) > 100)
        detach = (harness.FLOPINJ, "detach", program.pid)
        self.assertEqual(harness.run(detach, harness.clean_environment()).returncode, 0)
        again = Command(program.pid, self.folder, "-o", "second.pb").end()
        self.assertEqual((again[0], again[2]), (0, ""))
        _, err = program.communicate(timeout=240)
        self.assertEqual(program.returncode, plain.returncode)
        self.assertEqual(re.findall(r"weights \S+", err), re.findall(r"weights \S+", plain.stderr))
        for trace in (f"flop-{program.pid}.pb", "second.pb"):
            report = harness.reduce(self.folder / trace)
            self.assert_balanced(report)
            self.assertGreater(report["ledger"][-1]["launches"], 0)


# Of tests/newest_python/fetch, which says what is there.
PYTHON = harness.SOURCE / "build/python3.14"


@unittest.skipUnless((PYTHON / "bin/python3.14").exists(),
                     "no Python 3.14; `tests/newest_python/fetch build/python3.14` brings it")
class NewestPython(Entering):
    """CPython from 3.14 on has a way in of its own: its interpreter runs a script."""

    PROGRAM = """
import ctypes, sys, threading, time
ctypes.CDLL("libcuda.so.1")
threading.Thread(target=sys.stdin.read, daemon=True).start()
print("ready", flush=True)
while threading.active_count() > 1:
    {body}
print("right")
"""
    COUNTS = "sum(range(1000))"  # no system call, so that no thread can be held in one

    def python(self, body, **settings):
        env = {**harness.clean_environment(), **settings,
               "LD_LIBRARY_PATH": f"{PYTHON / 'lib'}:{harness.SIMGPU}"}
        program = subprocess.Popen(
            [str(PYTHON / "bin/python3.14"), "-c", self.PROGRAM.format(body=body)], env=env,
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True)
        self.addCleanup(harness.kill_session, program)
        self.assertEqual(program.stdout.readline(), "ready\n")
        return program

    def assert_right(self, program, signals=0):
        out, err = program.communicate(timeout=PATIENCE_S)
        self.assertEqual((program.returncode, out, err), (0, "right\n", ""))

    @staticmethod
    def scripts():
        return set(Path("/tmp").glob("flopinj-??????"))

    def test_its_interpreter_lets_the_library_in(self):
        before = self.scripts()
        program = self.python(self.COUNTS)
        self.assert_attached(self.attach(program))
        self.assertEqual(self.scripts() - before, set())
        self.assert_right(program)

    def test_another_way_is_taken_where_that_is_switched_off(self):
        program = self.python("time.sleep(0.01)", PYTHON_DISABLE_REMOTE_DEBUG="1")
        before = self.scripts()
        self.assert_attached(self.attach(program))
        self.assertEqual(self.scripts() - before, set())
        self.assert_right(program)

    def test_a_request_that_is_met_late_does_no_harm(self):
        """The first thread sleeps, so that the library comes another way; then it is asked."""
        program = self.python("time.sleep(8)")
        self.assert_attached(self.attach(program))
        self.assertEqual(ask(program.pid, "status")["state"], "recording")
        self.assert_right(program)


if __name__ == "__main__":
    harness.main()
