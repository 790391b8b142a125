"""Recordings that come and go in a running program: each is right, and nothing stays behind."""

import os
import re
import select
import signal
import struct
import subprocess
import time
import unittest
from collections import Counter
from pathlib import Path

import harness
from attaching import (PATIENCE_S, Attach, Refused, ask, connected_to, connection, mark,
                       memory_kib)
from harness import CLIENTS, injected_environment

# A measurement window opens only when captures that began before a late start must have ended.
UNKNOWN_CAPTURES_S = 2


def threads_of(pid):
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sorted((task / "comm").read_text().strip() for task in tasks)


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


class CallsBack(Attach):
    def test_no_launch_before_a_recording_or_behind_it_is_called_back(self):
        """A CUPTI counts its callbacks. Launches go on all the time, two callbacks each."""
        counted = self.folder / "counted"
        client = self.start([CLIENTS / "launch_client", "endless"], stdout=subprocess.PIPE,
                            FLOPINJ_CUPTI=CLIENTS / "counting_cupti.so", COUNTED=counted)

        def callbacks():
            return struct.unpack("<Q", counted.read_bytes())[0]

        def launches(count):
            """So many more, of which the program says each hundredth."""
            said = client.stdout.fileno()
            while select.select([said], [], [], 0)[0]:  # what it has said before
                os.read(said, 1 << 16)
            while count > 0:
                count -= 100 * os.read(said, 1 << 16).count(b"\n")
        launches(300)
        self.assertFalse(counted.exists())  # there is no CUPTI
        behind = 0
        for _ in range(2):
            before = behind
            ask(client.pid, "start")
            self.wait_for(lambda: int(ask(client.pid, "status")["launches"]) > 20)
            ask(client.pid, "stop")
            behind = callbacks()
            self.assertGreater(behind - before, 40)
            launches(300)
            self.assertEqual(callbacks(), behind)


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

    def test_a_request_without_end_is_not_read(self):
        client = self.endless()
        with connection(client.pid) as endless, self.assertRaises(OSError):
            for _ in range(1000):
                endless.sendall(b"status\n" * 1000)
        self.assertEqual(ask(client.pid, "status")["state"], "dormant")

    def test_a_program_that_closes_all_descriptors_keeps_its_own(self):
        """Its own listening socket gets the number of ours: nobody but the program takes its
        connections."""
        done = harness.run([CLIENTS / "attach_client", "own_socket"],
                           injected_environment(self.trace))
        self.assertEqual((done.returncode, done.stdout), (0, "connections 5\n"), done.stderr)


class Cycles(Attach):
    @staticmethod
    def descriptors(pid):
        """How many there are of each file."""
        folder = f"/proc/{pid}/fd"
        files = Counter()
        for number in os.listdir(folder):
            try:
                files[re.sub(r"\d+", "N", os.readlink(f"{folder}/{number}"))] += 1
            except FileNotFoundError:  # closed meanwhile
                pass
        return files

    def test_each_recording_is_whole_and_nothing_stays_behind(self):
        client = self.endless()
        names, memory = [], []
        descriptors = self.descriptors(client.pid)
        for _ in range(24):
            names.append(ask(client.pid, "start")["output"])
            self.assertGreater(os.path.getsize(names[-1]), 0)  # who is answered can read it
            self.wait_for(lambda: int(ask(client.pid, "status")["launches"]) > 20)
            self.assertEqual(ask(client.pid, "stop")["output"], names[-1])
            memory.append(memory_kib(client.pid))
            # A descriptor that stays is a fault; one that is closed a moment later is none. The
            # first look may have met the descriptor of the connection before it.
            self.wait_for(lambda: not self.descriptors(client.pid) - descriptors)
        self.assertEqual(ask(client.pid, "status")["recordings_kept"], "0")
        self.assertEqual(len(set(names)), len(names))
        # CUPTI's thread ends when it likes.
        self.wait_for(lambda: [t for t in threads_of(client.pid) if t.startswith("flopinj")]
                      == ["flopinj-control"])
        if not harness.SANITIZER_PRELOAD:  # which keep freed memory for a while
            self.assertLess(memory[-1] - memory[7], 2048, memory)
        for name in names:
            report = harness.reduce(name)
            self.assert_balanced(report)
            self.assertGreater(report["ledger"][-1]["launches"], 20)
            self.assertEqual(harness.reasons(report, "dropped"), {})
            self.assertEqual([p["end"] for p in report["processes"]], ["detach"])

    def test_every_recording_measures(self):
        """CUPTI's profiler host objects end with a recording: here there may be those of one."""
        client = self.endless(SIMGPU_FAULT="host_objects=12")
        for _ in range(3):
            output = ask(client.pid, "start")["output"]
            self.wait_for(lambda: float(ask(client.pid, "status").get("covered", 0)) == 1)
            ask(client.pid, "stop")
            report = harness.reduce(output)
            self.assert_all_counted(report, report["ledger"][-1]["launches"])

    def test_a_late_recording_measures(self):
        client = self.endless()
        output = ask(client.pid, "start")["output"]
        self.wait_for(lambda: float(ask(client.pid, "status").get("covered", 0)) == 1)
        status = ask(client.pid, "status")
        self.assertGreaterEqual(float(status["seconds"]), UNKNOWN_CAPTURES_S)
        ask(client.pid, "stop")
        report = harness.reduce(output)
        self.assert_all_counted(report, report["ledger"][-1]["launches"])
        # axpy of 16 elements on 256 threads: one fused multiply-add each.
        self.assertEqual(harness.precisions(report),
                         {"fp32": 32 * report["ledger"][-1]["launches"]})
        self.assertIn("session.late", harness.codes(report))

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
        self.wait_for(self.trace.exists)  # it may have ended before it is looked at
        self.assertGreaterEqual(time.monotonic() - began, 0.5)
        self.wait_for(lambda: ask(client.pid, "status")["state"] == "dormant")
        self.assertGreaterEqual(time.monotonic() - began, 1.5)
        report = harness.reduce(self.trace)
        self.assert_balanced(report)
        self.assertEqual([p["end"] for p in report["processes"]], ["detach"])


class Nvtx(Attach):
    def test_ranges_and_domains_from_before_are_known_by_name(self):
        client = self.start([CLIENTS / "attach_client", "rounds"])
        for _ in range(3):
            output = ask(client.pid, "start")["output"]
            self.wait_for(lambda: int(ask(client.pid, "status")["launches"]) > 40)
            ask(client.pid, "stop")
            report = harness.reduce(output)
            paths = {row["range"] for row in report["ranges"]}
            self.assertEqual(paths & {"round", "round/mine:registered"},
                             {"round", "round/mine:registered"}, paths)


class Forks(Attach):
    @unittest.skipIf(harness.SANITIZER_PRELOAD, "sanitizers' locks are no more free in a child")
    def test_a_child_does_not_hold_the_socket(self):
        client = self.start([CLIENTS / "attach_client", "forks"], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE)
        address, _ = mark(client.pid)
        client.stdin.write("\n")
        client.stdin.flush()
        child = int(client.stdout.readline())
        client.wait(PATIENCE_S)
        self.addCleanup(os.kill, child, signal.SIGKILL)

        def refused():  # once the child has run: it closes what it inherited
            try:
                connected_to(address).close()
            except ConnectionRefusedError:
                return True
            return False

        self.wait_for(refused)
        self.assertTrue(Path(f"/proc/{child}").exists())


class Exits(Attach):
    """The program ends while a recording begins: CUPTI is slow, and the trace has its header."""

    def ends_while_beginning(self, slow_ms, earlier=0):
        """The trace, what the program has said, and how long its end has taken."""
        client = self.start([CLIENTS / "attach_client", "scarce"], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, SIMGPU_FAULT=f"slow_enable={slow_ms}")
        client.stdin.write("none\n")
        client.stdin.flush()
        client.stdout.readline()  # it has a context, and launches
        for _ in range(earlier):
            ask(client.pid, "start")
            ask(client.pid, "stop")
        before = set(self.folder.iterdir())

        def with_header():
            return [path for path in set(self.folder.iterdir()) - before if path.stat().st_size]

        with connection(client.pid) as beginning:
            beginning.sendall(b"start\n\n")
            trace, = self.wait_for(with_header)
            began = time.monotonic()
            out, err = client.communicate(timeout=PATIENCE_S)
        # As without the library: the launches have computed what they should.
        self.assertEqual((client.returncode, out), (0, "right\n"), err)
        return trace, err, time.monotonic() - began

    def test_the_trace_is_whole(self):
        for earlier in (0, 1):  # the first recording of a process, and a later one
            with self.subTest(earlier=earlier):
                trace, _, _ = self.ends_while_beginning(1500, earlier)
                report = harness.reduce(trace)
                self.assert_balanced(report)
                self.assertEqual(report["damage"], [])
                self.assertEqual([p["end"] for p in report["processes"]], ["exit"])

    def test_a_cupti_that_does_not_return_is_left(self):
        trace, err, seconds = self.ends_while_beginning(10 * PATIENCE_S * 1000)
        self.assertIn("a recording has been beginning or ending", err)
        self.assertGreater(seconds, 9)
        report = harness.reduce(trace, check=3)
        self.assertEqual([d["kind"] for d in report["damage"]], ["stopped"])
        self.assertIn("session.unfinished",
                      harness.codes(report))


if __name__ == "__main__":
    harness.main()
