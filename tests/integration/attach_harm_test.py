"""Recordings that come and go in a running program: it is as without them."""

import os
import random
import re
import shutil
import signal
import subprocess
import time
import unittest

import harness
from attaching import PATIENCE_S, Attach, Refused, ask, memory_kib
from harness import CLIENTS, TRAINER


class Training(Attach):
    """The weights of a training program are the same, whenever recordings come and go in it."""

    STEPS = 60
    draw = random.Random(1)

    def trained(self, *options, signals=(), **settings):
        """Exit code and weights of a run beside which recordings start and end at times that are
        drawn, and signals come."""
        other = {"start": "stop", "stop": "start"}
        process = self.start([TRAINER, "--steps", self.STEPS, "--sleep-ms", 10, *options],
                             **settings)
        expected = "start"
        while process.poll() is None:
            for _ in range(self.draw.randrange(20) if signals else 1):
                time.sleep(self.draw.uniform(0, 0.01 if signals else 0.1))
                if signals:
                    process.send_signal(self.draw.choice(signals))
            try:
                # Now and then the other one, which is refused: it records already, or not.
                request = expected if self.draw.random() < 0.9 else other[expected]
                ask(process.pid, request)
                expected = other[request]
            except (Refused, OSError, IndexError, ValueError):
                continue  # or the program has ended
        err = process.stderr.read()
        return process.returncode, re.findall(r"weights \S+", err), err

    def check_weights(self, mode, signals=(), **settings):
        options = ("--model", "mlp", "--mode", mode, "--ranges", "pytorch")
        plain = harness.run([TRAINER, "--steps", self.STEPS, *options],
                            harness.sanitizer_first(
                                {**harness.clean_environment(), **settings,
                                 "LD_LIBRARY_PATH": str(harness.SIMGPU)}))
        traces = []
        while len(traces) < 2:  # a busy machine leaves a run no time for a second recording
            code, weights, said = self.trained(*options, signals=signals, **settings)
            self.assertEqual(code, plain.returncode, said)
            self.assertEqual(weights, re.findall(r"weights \S+", plain.stderr), said)
            self.assertEqual(len(weights), 1, said)
            traces = sorted(self.folder.iterdir())
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

    def test_weights_where_signals_come(self):
        signals = [s for s in signal.valid_signals() if s not in (signal.SIGKILL, signal.SIGSTOP)]
        self.check_weights("streams", signals=signals,
                           LD_PRELOAD=str(CLIENTS / "handled_signals.so"))

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
        self.assert_all_counted(report, report["ledger"][-1]["launches"])


class Memory(Attach):
    """Of a program with 16 launching threads in which recordings come and go, without what is
    free in the C library's arenas: on a busy machine these grow with what is in flight for a
    moment. FLOPINJ_ATTACH_ROUNDS: how many of them. Sanitizers keep freed memory for a while: there
    it is not judged, and there are fewer."""

    ROUNDS = int(os.environ.get("FLOPINJ_ATTACH_ROUNDS", 20 if harness.SANITIZER_PRELOAD else 100))
    RECORDS_S = 0.3  # time for a flush
    MOST_KIB = 10_000 * max(ROUNDS, 300) // 1_000  # in 300, what comes and goes from one to another

    def last_recordings(self, held_kib=0, **settings):
        """The devices' times of the last four, once memory has been found to stay as it is.
        `held_kib`: as much of it may be there at one moment and not at another."""
        client = self.start([CLIENTS / "attach_client", "threads", 16], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, **settings)

        def used_kib():
            client.stdin.write("\n")
            client.stdin.flush()
            self.assertEqual(client.stdout.readline(), "\n", "the program has ended")
            return memory_kib(client.pid)

        used, outputs = [], []
        for i in range(self.ROUNDS):
            outputs.append(ask(client.pid, "start")["output"])
            if i < self.ROUNDS - 4:
                time.sleep(self.RECORDS_S)
            else:  # it says so once a second
                self.wait_for(lambda: int(ask(client.pid, "status")["launches"]) > 32)
            ask(client.pid, "stop")
            if i == self.ROUNDS // 10 or i >= self.ROUNDS - 5:
                used.append(used_kib())
            for old in outputs[:-4]:
                os.unlink(old)
            outputs = outputs[-4:]
        self.assertEqual(ask(client.pid, "status")["recordings_kept"], "0")
        if not harness.SANITIZER_PRELOAD:
            self.assertLess(min(used[1:]) - used[0], self.MOST_KIB + held_kib, used)
        reports = [harness.reduce(output) for output in outputs]
        for report in reports:
            self.assert_balanced(report)
            self.assertGreater(report["ledger"][-1]["launches"], 32)
        return [report["device_time"][0] for report in reports]

    def check(self, **settings):
        for device in self.last_recordings(**settings):
            self.assertEqual(device["launches_unplaced"], 0, device)
            self.assertGreater(device["launches_placed"], 32)

    def test_count(self):
        self.last_recordings(FLOPINJ_MODE="count")

    def test_timing(self):
        self.check(FLOPINJ_MODE="timing")

    def test_multiplex(self):
        self.check(FLOPINJ_MODE="multiplex")

    def test_full(self):
        self.check(FLOPINJ_MODE="full")

    def test_cupti_hands_buffers_back_as_it_ends(self):
        self.check(FLOPINJ_MODE="timing", SIMGPU_FAULT="return_buffers")

    def test_cupti_keeps_buffers(self):
        """Every third, with the records in it: a short recording has all its times or none. They
        are left behind when the next recording ends: until then each thread's has the records of
        some tenths of a second, which all hundred recordings together would have 30 MB of."""
        devices = self.last_recordings(held_kib=12_000, FLOPINJ_MODE="timing",
                                       SIMGPU_FAULT="keep_buffers=3")
        self.assertGreater(sum(device["launches_placed"] for device in devices), 32)

    def test_times_come_again_after_a_recording_that_has_used_up_the_memory_for_them(self):
        client = self.start([CLIENTS / "attach_client", "threads", 16], FLOPINJ_FLUSH_MS=10,
                            FLOPINJ_MODE="timing", SIMGPU_FAULT="keep_buffers=2")
        ask(client.pid, "start")
        while "than there is memory for" not in client.stderr.readline():
            pass
        ask(client.pid, "stop")
        output = ask(client.pid, "start")["output"]
        self.wait_for(lambda: int(ask(client.pid, "status")["launches"]) > 5_000)
        ask(client.pid, "stop")
        device, = harness.reduce(output)["device_time"]
        self.assertGreater(device["launches_placed"], 100)


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
        self.assertEqual(harness.reasons(report, "dropped"), {})
        out, err = client.communicate(timeout=PATIENCE_S)
        self.assertEqual((client.returncode, out), (0, "right\n"), err)


class Valgrind(Attach):
    @unittest.skipIf(harness.SANITIZER_PRELOAD, "sanitizers and valgrind do not go together")
    @unittest.skipIf(shutil.which("valgrind") is None,
                     "no valgrind; `apt-get install valgrind` brings it")
    def test_no_access_is_wrong(self):
        # Without leaks: who looks for them reads all that simgpu reserves as memory of its GPU.
        client = self.start(["valgrind", "--quiet", "--leak-check=no", "--error-exitcode=99",
                             CLIENTS / "attach_client", "scarce"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(2):
            ask(client.pid, "start")
            self.wait_for(lambda: int(ask(client.pid, "status")["launches"]) > 20)
            ask(client.pid, "stop")
        out, err = client.communicate(timeout=PATIENCE_S)
        self.assertEqual((client.returncode, out), (0, "right\n"), err)


if __name__ == "__main__":
    harness.main()
