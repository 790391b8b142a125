"""Recordings that come and go in a running program: it is as without them, and each is right.

The requests are made by a client of the test's own, from the description of the protocol in
common/control_address.h.
"""

import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import time
import unittest
import urllib.request
from pathlib import Path

import harness
from harness import CLIENTS, TRAINER, injected_environment

PATIENCE_S = 60
# A measurement window opens only when captures that began before a late start must have ended.
UNKNOWN_CAPTURES_S = 2


PID_NAMESPACE = os.stat("/proc/self/ns/pid").st_ino


class Refused(Exception):
    pass


def connection(pid):
    client = socket.socket(socket.AF_UNIX)
    try:
        client.settimeout(PATIENCE_S)
        client.connect(f"\0flopinj-{PID_NAMESPACE}-{pid}")
        return client
    except OSError:
        client.close()
        raise


def ask(pid, *request):
    """The answer's keys and values."""
    with connection(pid) as client:
        client.sendall(("\n".join(request) + "\n\n").encode())
        text = b"".join(iter(lambda: client.recv(4096), b"")).decode()
    first, *lines = text.splitlines()
    if first != "ok":
        raise Refused(first)
    return dict(line.split(" ", 1) for line in lines)


def threads_of(pid):
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sorted((task / "comm").read_text().strip() for task in tasks)


def memory_kib(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1])


class Attach(harness.TestCase):
    def start(self, command, stdin=None, stdout=subprocess.DEVNULL, **settings):
        """The program, once it listens."""
        env = injected_environment(self.folder / "t-%p.pb", FLOPINJ_DORMANT=1, **settings)
        process = subprocess.Popen([str(c) for c in command], env=env, text=True, stdin=stdin,
                                   stdout=stdout, stderr=subprocess.PIPE, start_new_session=True)
        self.addCleanup(harness.kill_session, process)
        self.wait_for(lambda: self.listens(process.pid))
        return process

    @staticmethod
    def listens(pid):
        try:
            return ask(pid, "status")
        except OSError:
            return None

    def wait_for(self, condition):
        give_up = time.monotonic() + PATIENCE_S
        while time.monotonic() < give_up:
            if result := condition():
                return result
            time.sleep(0.01)
        self.fail("it did not come")

    def endless(self, **settings):
        return self.start([CLIENTS / "launch_client", "endless"], **settings)


class Dormant(Attach):
    def test_nothing_is_there_until_it_is_asked_for(self):
        client = self.endless()
        self.assertEqual(ask(client.pid, "status")["state"], "dormant")
        # Sanitizers have a thread of their own, of the program's name.
        self.assertEqual(set(threads_of(client.pid)), {"flopinj-control", "launch_client"})
        self.assertEqual(list(self.folder.iterdir()), [])
        self.assertNotIn("libcupti", Path(f"/proc/{client.pid}/maps").read_text())

    def test_nobody_listens_where_that_is_switched_off(self):
        env = injected_environment(self.trace, FLOPINJ_NO_CONTROL=1)
        with subprocess.Popen([str(CLIENTS / "launch_client"), "endless"], env=env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as client:
            client.stdout.readline()
            self.assertNotIn("flopinj-control", threads_of(client.pid))
            with self.assertRaises(ConnectionRefusedError):
                ask(client.pid, "status")
            client.kill()


class Requests(Attach):
    def test_what_is_not_understood_is_refused_in_one_line(self):
        client = self.endless()
        for request, words in ((("dance",), "does not know the request"),
                               (("stop",), "does not record"),
                               (("start", "FLOPINJ_LEVEL=all"), "launches or tally"),
                               (("start", "FLOPINJ_LEVLE=tally"), "did you mean FLOPINJ_LEVEL"),
                               (("start", "FLOPINJ_OUTPUT=/nowhere/t.pb"), "/nowhere"),
                               (("",), "nothing was asked")):
            with self.subTest(request), self.assertRaisesRegex(Refused, re.escape(words)):
                ask(client.pid, *request)
        self.assertEqual(ask(client.pid, "status")["recordings"], "0")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_client_that_says_nothing_does_not_keep_others_waiting(self):
        client = self.endless()
        silent = [connection(client.pid) for _ in range(3)]
        self.assertEqual(ask(client.pid, "status")["state"], "dormant")
        for one in silent:
            one.close()

    def test_a_request_without_end_is_not_read(self):
        client = self.endless()
        with connection(client.pid) as endless, self.assertRaises(OSError):
            for _ in range(1000):
                endless.sendall(b"status\n" * 1000)
        self.assertEqual(ask(client.pid, "status")["state"], "dormant")

    @unittest.skipIf(os.geteuid() != 0, "only root can be two users")
    def test_another_user_is_refused(self):
        client = self.endless()
        child = os.fork()
        if child == 0:
            os.setuid(65534)
            try:
                ask(client.pid, "start")
            except Refused as refusal:
                os._exit(42 if "another user" in str(refusal) else 1)
            except OSError:
                os._exit(2)
            os._exit(0)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 42)

    def test_a_program_that_closes_all_descriptors_keeps_its_own(self):
        """Its own listening socket gets the number of ours: nobody but the program takes its
        connections."""
        done = harness.run([CLIENTS / "attach_client", "own_socket"],
                           injected_environment(self.trace))
        self.assertEqual((done.returncode, done.stdout), (0, "connections 5\n"), done.stderr)


class Cycles(Attach):
    def test_each_recording_is_whole_and_nothing_stays_behind(self):
        client = self.endless()
        names, memory, descriptors = [], [], []
        for cycle in range(24):
            names.append(ask(client.pid, "start")["output"])
            self.wait_for(lambda: int(ask(client.pid, "status")["launches"]) > 20)
            self.assertEqual(ask(client.pid, "stop")["output"], names[-1])
            memory.append(memory_kib(client.pid))
            descriptors.append(len(os.listdir(f"/proc/{client.pid}/fd")))
        self.assertEqual(ask(client.pid, "status")["recordings_kept"], "0")
        self.assertEqual(len(set(names)), len(names))
        threads = threads_of(client.pid)
        self.assertEqual([t for t in threads if t.startswith("flopinj")], ["flopinj-control"])
        self.assertEqual(len(set(descriptors)), 1, descriptors)
        if not harness.SANITIZER_PRELOAD:  # which keep freed memory for a while
            self.assertLess(memory[-1] - memory[7], 2048, memory)
        for name in names:
            report = harness.reduce(name)
            self.assert_balanced(report)
            self.assertGreater(report["ledger"]["launches"], 20)
            self.assertEqual(report["ledger"]["dropped"], 0)
            self.assertEqual([p["end"] for p in report["traces"]], ["detach"])

    def test_a_late_recording_measures(self):
        client = self.endless()
        output = ask(client.pid, "start")["output"]
        self.wait_for(lambda: float(ask(client.pid, "status").get("covered", 0)) == 1)
        status = ask(client.pid, "status")
        self.assertGreaterEqual(float(status["seconds"]), UNKNOWN_CAPTURES_S)
        ask(client.pid, "stop")
        report = harness.reduce(output)
        self.assert_all_counted(report, report["ledger"]["launches"])
        # axpy of 16 elements on 256 threads: one fused multiply-add each.
        self.assertEqual(harness.precisions(report),
                         {"fp32": 32 * report["ledger"]["launches"]})
        self.assertIn("session.late", [d["code"] for d in report["traces"][0]["diagnostics"]])

    def test_a_recording_of_the_program_from_its_start_can_be_left_too(self):
        env = injected_environment(self.trace)
        client = subprocess.Popen([str(CLIENTS / "launch_client"), "endless"], env=env,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(client.communicate)
        self.addCleanup(client.kill)
        self.wait_for(lambda: self.listens(client.pid))
        self.assertEqual(ask(client.pid, "stop")["output"], str(self.trace))
        self.assert_balanced(harness.reduce(self.trace))

    def test_at_its_times(self):
        env = injected_environment(self.trace, FLOPINJ_START_AFTER="500ms", FLOPINJ_DURATION="1s")
        began = time.monotonic()
        client = subprocess.Popen([str(CLIENTS / "launch_client"), "endless"], env=env,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(client.communicate)
        self.addCleanup(client.kill)
        self.wait_for(lambda: (self.listens(client.pid) or {}).get("state") == "recording")
        self.assertGreaterEqual(time.monotonic() - began, 0.5)
        self.wait_for(lambda: ask(client.pid, "status")["state"] == "dormant")
        self.assertGreaterEqual(time.monotonic() - began, 1.5)
        report = harness.reduce(self.trace)
        self.assert_balanced(report)
        self.assertEqual([p["end"] for p in report["traces"]], ["detach"])


class Training(Attach):
    """The weights of a training program are the same, whenever recordings come and go in it."""

    STEPS = 60

    def trained(self, *options, **settings):
        """Exit code and weights of a run beside which recordings start and end at random times."""
        seed = random.randrange(1 << 32)
        draw = random.Random(seed)
        other = {"start": "stop", "stop": "start"}
        process = self.start([TRAINER, "--steps", self.STEPS, "--sleep-ms", 10, *options],
                             **settings)
        expected, taken = "start", 0
        while process.poll() is None:
            time.sleep(draw.uniform(0, 0.1))
            try:
                # Now and then the other one, which is refused: it records already, or not.
                request = expected if draw.random() < 0.9 else other[expected]
                ask(process.pid, request)
                expected = other[request]
                taken += 1
            except (Refused, OSError, IndexError, ValueError):
                continue  # or the program has ended
        err = process.stderr.read()
        self.assertGreater(taken, 1, f"seed {seed}")
        return process.returncode, re.findall(r"weights \S+", err), f"seed {seed}: {err}"

    def check_weights(self, mode, **settings):
        options = ("--model", "mlp", "--mode", mode, "--ranges", "pytorch")
        plain = harness.run([TRAINER, "--steps", self.STEPS, *options],
                            {**harness.clean_environment(), **settings,
                             "LD_LIBRARY_PATH": str(harness.SIMGPU)})
        code, weights, said = self.trained(*options, **settings)
        self.assertEqual(code, plain.returncode, said)
        self.assertEqual(weights, re.findall(r"weights \S+", plain.stderr), said)
        self.assertEqual(len(weights), 1, said)
        traces = sorted(self.folder.iterdir())
        self.assertGreater(len(traces), 1)
        # One that was stopped at once has no launch; none is damaged.
        report = harness.reduce(*traces, check=None)
        self.assert_balanced(report)
        self.assertEqual(report["damage"], [])
        for trace in traces:
            trace.unlink()

    def test_weights(self):
        for mode in ("plain", "autograd-thread", "graph", "streams"):
            with self.subTest(mode):
                self.check_weights(mode)

    @unittest.skipIf(harness.SANITIZER_PRELOAD, "sanitizers look at the clock themselves")
    def test_weights_where_the_system_clock_jumps(self):
        self.check_weights("autograd-thread", LD_PRELOAD=str(CLIENTS / "jumping_clock.so"))

    @unittest.skipIf(harness.SANITIZER_PRELOAD, "sanitizers look at the clock themselves")
    def test_a_recording_measures_where_the_system_clock_jumps(self):
        client = self.endless(LD_PRELOAD=str(CLIENTS / "jumping_clock.so"))
        output = ask(client.pid, "start")["output"]
        self.wait_for(lambda: float(ask(client.pid, "status").get("covered", 0)) == 1)
        ask(client.pid, "stop")
        report = harness.reduce(output)
        self.assert_all_counted(report, report["ledger"]["launches"])


class NoMemory(Attach):
    @unittest.skipIf(harness.SANITIZER_PRELOAD, "sanitizers have an allocator of their own")
    def test_failed_allocations_end_nothing(self):
        """While recordings begin and end. With memory again the next recording is whole."""
        client = self.start([CLIENTS / "attach_client", "scarce"], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE)

        def memory(line):
            client.stdin.write(line + "\n")
            client.stdin.flush()
            self.assertEqual(client.stdout.readline(), "\n", "the program has ended")

        def request(verb):
            try:
                return ask(client.pid, verb).get("output")
            except (Refused, OSError, IndexError, ValueError):
                return None  # no memory for the recording, or for the answer

        for after in [*range(0, 40), *range(40, 1_000, 60)]:
            for which in ("one", "all"):
                with self.subTest(after=after, which=which):
                    memory(f"{which} {after}")
                    request("start")
                    time.sleep(0.02)
                    request("stop")
                    memory("none")
                    request("stop")  # where the first had no memory
                    self.assertEqual(ask(client.pid, "status")["state"], "dormant")
        output = request("start")
        self.wait_for(lambda: int(ask(client.pid, "status")["launches"]) > 20)
        request("stop")
        report = harness.reduce(output)
        self.assert_balanced(report)
        self.assertEqual(report["ledger"]["dropped"], 0)
        out, err = client.communicate(timeout=PATIENCE_S)
        self.assertEqual((client.returncode, out), (0, "right\n"), err)


def flopinj(*arguments, folder="/tmp"):
    return harness.run([harness.FLOPINJ, *arguments], harness.clean_environment(), cwd=folder)


def may_trace():
    if shutil.which("gdb") is None:
        return False
    with subprocess.Popen(["sleep", "60"]) as program:
        done = subprocess.run(["gdb", "-nx", "-batch", "-p", str(program.pid), "-ex", "detach"],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)
        program.kill()
    return done.returncode == 0 and "not permitted" not in done.stdout + done.stderr


class Commands(Attach):
    """flopinj attach, detach and status."""

    @staticmethod
    def with_flop(pid):
        """The status, once the trace has counts."""
        status = json.loads(flopinj("status", "--json", pid).stdout)
        return status if status["flop"] else None

    def test_a_dormant_program_is_asked(self):
        client = self.endless()
        self.assertIn("dormant", flopinj("status", client.pid).stdout)
        done = flopinj("attach", client.pid, "-o", "mine-%p.pb", "--level", "tally",
                       folder=self.folder)
        trace = self.folder / f"mine-{client.pid}.pb"
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(str(trace), done.stdout)
        again = flopinj("attach", client.pid)
        self.assertEqual((again.returncode, again.stdout), (1, ""))
        self.assertIn("it records already", again.stderr)
        self.wait_for(lambda: int(ask(client.pid, "status")["launches"]) > 20)
        status = json.loads(flopinj("status", "--json", client.pid).stdout)
        self.assertEqual((status["state"], status["output"]), ("recording", str(trace)))
        self.assertIsNone(status["hfu"])  # of a simulated GPU
        status = self.wait_for(lambda: self.with_flop(client.pid))
        # axpy of 16 elements: one fused multiply-add each.
        self.assertEqual(status["flop"] % 32, 0)
        self.assertLessEqual(status["flop"], 32 * int(ask(client.pid, "status")["launches"]))
        self.assertIn(" FLOP so far", flopinj("status", client.pid).stdout)
        done = flopinj("detach", client.pid)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(f"flopreduce {trace}", done.stdout)
        launches = int(re.search(r"([\d,]+) launches", done.stdout)[1].replace(",", ""))
        report = harness.reduce(trace)
        self.assert_balanced(report)
        self.assertEqual(report["ledger"]["launches"], launches)

    def test_top_shows_the_report_so_far(self):
        client = self.endless()
        self.assertIn("nothing was recorded yet", flopinj("top", "--once", client.pid).stdout)
        output = ask(client.pid, "start")["output"]
        self.wait_for(lambda: int(ask(client.pid, "status")["trace_bytes"]) > 3000)
        done = flopinj("top", "--once", client.pid)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(f"process {client.pid}: recording", done.stdout)
        self.assertIn("axpy", done.stdout)
        both = json.loads(flopinj("top", "--json", client.pid).stdout)
        self.assertEqual(both["status"]["output"], output)
        self.assertGreater(both["report"]["ledger"]["launches"], 0)
        self.assertLessEqual(both["report"]["ledger"]["launches"],
                             int(ask(client.pid, "status")["launches"]))

    def test_metrics_are_what_prometheus_reads(self):
        client, idle = self.endless(), self.endless()
        output = ask(client.pid, "start")["output"]
        self.wait_for(lambda: float(ask(client.pid, "status")["covered"]) == 1)
        ask(client.pid, "stop")
        launches = harness.reduce(output)["ledger"]["launches"]
        text = flopinj("metrics", client.pid, idle.pid, 2 ** 30).stdout
        sample = re.compile(r'(flopinj_[a-z_]+)\{pid="(\d+)"(?:,phase="(\w+)")?\} ([-+.e\d]+)')
        values = {}
        for line in text.splitlines():
            if line.startswith("#"):
                self.assertRegex(line, r"# (HELP flopinj_[a-z_]+ \w.*\.|TYPE flopinj_[a-z_]+ "
                                       r"(counter|gauge))$")
                continue
            name, pid, phase, value = sample.fullmatch(line).groups()
            values[name, int(pid), phase] = float(value)
            kind = "counter" if name.endswith("_total") else "gauge"
            self.assertIn(f"# TYPE {name} {kind}\n", text)
        self.assertEqual(values["flopinj_launches_total", client.pid, None], launches)
        self.assertEqual(values["flopinj_flop_total", client.pid, "other"], 32 * launches)
        processes = (client.pid, idle.pid, 2 ** 30)
        self.assertEqual([values["flopinj_up", pid, None] for pid in processes], [1, 1, 0])
        self.assertNotIn(("flopinj_launches_total", idle.pid, None), values)
        if shutil.which("promtool"):
            checked = subprocess.run(["promtool", "check", "metrics"], input=text, text=True,
                                     capture_output=True)
            self.assertEqual((checked.returncode, checked.stderr), (0, ""))

    def test_metrics_are_served_until_the_program_ends(self):
        client = self.endless()
        file = self.folder / "flopinj.prom"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        server = subprocess.Popen([str(harness.FLOPINJ), "metrics", "--port", str(port), "-o",
                                   str(file), "--every", "0.2", str(client.pid)])
        self.addCleanup(server.kill)
        self.wait_for(file.exists)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as page:
            self.assertEqual(page.headers["Content-Type"], "text/plain; version=0.0.4")
            self.assertIn(f'flopinj_recording{{pid="{client.pid}"}} 0\n', page.read().decode())
        ask(client.pid, "start")
        self.wait_for(lambda: f'flopinj_recording{{pid="{client.pid}"}} 1\n' in file.read_text())
        client.kill()
        client.wait()
        self.assertEqual(server.wait(PATIENCE_S), 0)
        self.assertFalse(file.exists())

    def test_what_cannot_be_is_said_in_one_line(self):
        with subprocess.Popen(["sleep", "60"]) as program:
            for arguments, words in ((("attach", program.pid), "has not loaded CUDA's driver"),
                                     (("attach", "--never-enter", program.pid), "does not listen"),
                                     (("detach", program.pid), "does not listen"),
                                     (("attach", 2 ** 30), "there is no process"),
                                     (("attach", program.pid, "--dormant"), "--dormant"),
                                     (("attach", "me"), "me"), (("attach",), "PID")):
                with self.subTest(arguments):
                    done = flopinj(*arguments)
                    self.assertIn(done.returncode, (1, 2))
                    self.assertEqual((done.stdout, len(done.stderr.splitlines())), ("", 1),
                                     done.stderr)
                    self.assertIn(words, done.stderr)
            program.kill()

    @unittest.skipIf(not may_trace(), "no gdb, or this machine lets nobody trace a process")
    @unittest.skipIf(harness.SANITIZER_PRELOAD, "sanitizers have to be there from the start")
    def test_a_program_that_was_started_without_the_library_is_entered(self):
        options = ("--steps", 120, "--sleep-ms", 25, "--model", "mlp")
        env = {**harness.clean_environment(), "LD_LIBRARY_PATH": str(harness.SIMGPU)}
        plain = harness.run([TRAINER, "--steps", 120, "--model", "mlp"], env)
        program = subprocess.Popen([str(c) for c in (TRAINER, *options)], env=env, text=True,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.wait_for(lambda: "libcuda" in Path(f"/proc/{program.pid}/maps").read_text())
        done = flopinj("attach", program.pid, folder=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("without flopinj", done.stdout)
        self.wait_for(lambda: int(ask(program.pid, "status")["launches"]) > 100)
        self.assertEqual(flopinj("detach", program.pid).returncode, 0)
        self.assertEqual(flopinj("attach", program.pid, "-o", "second.pb",
                                 folder=self.folder).returncode, 0)
        _, err = program.communicate(timeout=240)
        self.assertEqual(program.returncode, plain.returncode)
        self.assertEqual(re.findall(r"weights \S+", err), re.findall(r"weights \S+", plain.stderr))
        for trace in (f"flop-{program.pid}.pb", "second.pb"):
            report = harness.reduce(self.folder / trace)
            self.assert_balanced(report)
            self.assertGreater(report["ledger"]["launches"], 0)


class Nvtx(Attach):
    def test_ranges_and_domains_from_before_are_known_by_name(self):
        client = self.start([CLIENTS / "attach_client", "rounds"])
        for _ in range(3):
            output = ask(client.pid, "start")["output"]
            self.wait_for(lambda: int(ask(client.pid, "status")["launches"]) > 40)
            ask(client.pid, "stop")
            report = harness.reduce(output)
            paths = {row["path"] for row in report["ranges"]}
            self.assertEqual(paths & {"round", "round/mine:registered"},
                             {"round", "round/mine:registered"}, paths)


class Forks(Attach):
    def test_a_child_does_not_hold_the_socket(self):
        client = self.start([CLIENTS / "attach_client", "forks"], stdout=subprocess.PIPE)
        child = int(client.stdout.readline())
        client.wait(PATIENCE_S)
        self.assertTrue(Path(f"/proc/{child}").exists())
        with self.assertRaises(ConnectionRefusedError):
            ask(client.pid, "status")
        os.kill(child, signal.SIGKILL)


if __name__ == "__main__":
    harness.main()
