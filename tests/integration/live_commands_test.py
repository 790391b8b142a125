"""flopinj attach, detach, status, top and metrics."""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
import unittest
import urllib.request

import harness
from attaching import PATIENCE_S, Attach, ask


def flopinj(*arguments, folder="/tmp"):
    return harness.run([harness.FLOPINJ, *arguments], harness.clean_environment(), cwd=folder)


class Commands(Attach):
    """flopinj attach, detach and status."""

    @staticmethod
    def with_flop(pid):
        """The status, once the trace has counts."""
        status = json.loads(flopinj("status", "--json", pid).stdout)
        return status if status["flop"] else None

    @staticmethod
    def launches_shown(pid):
        """By flopinj top, of what the trace holds so far."""
        report = json.loads(flopinj("top", "--json", pid).stdout).get("report")
        return report["ledger"][-1]["launches"] if report else 0

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
        self.assertLess(status["hfu"] or 0, 1)
        status = self.wait_for(lambda: self.with_flop(client.pid))
        # axpy of 16 elements: one fused multiply-add each.
        self.assertEqual(status["flop"] % 32, 0)
        self.assertLessEqual(status["flop"], 32 * int(ask(client.pid, "status")["launches"]))
        self.assertIn(" FLOP so far", flopinj("status", client.pid).stdout)
        done = flopinj("detach", client.pid)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(f"flopinj report {trace}", done.stdout)
        launches = int(re.search(r"([\d,]+) launches", done.stdout)[1].replace(",", ""))
        report = harness.reduce(trace)
        self.assert_balanced(report)
        self.assertEqual(report["ledger"][-1]["launches"], launches)

    def test_detach_claims_nothing_of_a_trace_that_could_not_be_written(self):
        client = self.endless(LD_PRELOAD=harness.CLIENTS / "full_disk.so", FULL_DISK_BYTES=12_000)
        trace = ask(client.pid, "start")["output"]
        self.assertIn("recording stops here", client.stderr.readline())
        done = flopinj("detach", client.pid)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("the trace could not be written to the end: launches after the last packet "
                      "of the trace are not in it", done.stdout)
        self.assertNotRegex(done.stdout, r"[0-9] launches")
        self.assertIn(f"flopinj report {trace}", done.stdout)
        self.assertEqual(harness.reduce(trace, check=3)["processes"][0]["end"], "failure")
        client.kill()

    def test_without_a_process_those_that_there_are_are_named(self):
        both = [self.endless(), self.endless()]
        for command in ("status", "top"):
            done = flopinj(command)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            if " more" not in done.stderr:  # of other tests' processes
                for client in both:
                    self.assertIn(f" {client.pid} (", done.stderr)
        offered = flopinj("--complete", "attach", "").stdout.splitlines()
        self.assertEqual(offered[0], "words")
        self.assertLessEqual({str(client.pid) for client in both},
                             {line.split("\t")[0] for line in offered[1:]})
        done = flopinj("top", 2 ** 30)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(f"there is no process {2 ** 30}", done.stderr)

    def test_a_process_is_named_in_one_line(self):
        """Its words may hold line breaks, and escapes of somebody who wants to move the cursor."""
        code = ("#\x1b[31m\n\nimport ctypes, time\nctypes.CDLL('libcuda.so.1').cuInit(0)\n"
                "time.sleep(60)")
        client = self.start([sys.executable, "-c", code])
        offered = flopinj("--complete", "attach", "").stdout.splitlines()
        named = [line for line in offered if line.startswith(f"{client.pid}\t")]
        self.assertEqual(len(named), 1, offered)
        self.assertNotIn("\x1b", named[0])
        if len(sys.executable) < 40:  # of longer names there is less to see
            self.assertIn(r" -c #\x1B[31m  ", named[0])

    def test_top_has_keys(self):
        clients = [self.endless(), self.endless()]
        for client in clients:
            ask(client.pid, "start")
            self.wait_for(lambda: int(ask(client.pid, "status")["trace_bytes"]) > 3000)
        screen, terminal = pty.openpty()
        self.addCleanup(os.close, screen)
        self.addCleanup(os.close, terminal)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 6, 90, 0, 0))
        before = termios.tcgetattr(terminal)
        seen = ""

        def begin():
            top = subprocess.Popen([harness.FLOPINJ, "top", str(clients[0].pid)], stdin=terminal,
                                   stdout=terminal, stderr=terminal, start_new_session=True,
                                   env=harness.clean_environment())
            self.addCleanup(top.wait)
            self.addCleanup(top.kill)
            until("\033[?1049h")  # behind what another one may have drawn
            return top

        def until(words):
            """Reads the screen up to these words. What came before them."""
            nonlocal seen
            give_up = time.monotonic() + PATIENCE_S  # the screen is drawn again and again
            while words not in seen:
                ready, _, _ = select.select([screen], [], [], max(0, give_up - time.monotonic()))
                self.assertTrue(ready, f"no {words!r} in {seen[-2000:]!r}")
                seen += os.read(screen, 65536).decode(errors="replace")
            passed, seen = seen.split(words, 1)
            return passed

        def press(key, words):
            os.write(screen, key)
            until(words)

        top = begin()
        until(f"process {clients[0].pid}: recording")
        until("sort: time")
        press(b"s", "sort: flop")
        press(b"a", "first screen")
        press(b"p", "PAUSED")
        press(b"\033[B", "\033[H")  # one line down
        self.assertRegex(until("\033[K"), "^  trace ")
        press(b"p", "p pause")
        os.write(screen, b"n")
        shown = ""  # any other program of this machine that is recorded, or was
        while not shown.isdigit() or shown == str(clients[0].pid):
            until("process ")
            shown = until(" ").rstrip(":")
        os.write(screen, b"q")
        self.assertEqual(top.wait(PATIENCE_S), 0)
        self.assertEqual(termios.tcgetattr(terminal), before)
        for number in (signal.SIGINT, signal.SIGTERM):
            top = begin()
            until("sort: time")
            self.assertNotEqual(termios.tcgetattr(terminal), before)
            top.send_signal(number)
            until("\033[?1049l")
            self.assertEqual(top.wait(PATIENCE_S), -number)
            self.assertEqual(termios.tcgetattr(terminal), before)

    def test_top_shows_the_report_so_far(self):
        client = self.endless()
        self.assertIn("nothing was recorded yet", flopinj("top", "--once", client.pid).stdout)
        output = ask(client.pid, "start")["output"]
        self.wait_for(lambda: self.launches_shown(client.pid) > 0)
        done = flopinj("top", "--once", client.pid)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(f"process {client.pid}: recording", done.stdout)
        self.assertIn("axpy", done.stdout)
        self.assertIn("the program was still running when it was read", done.stdout)
        self.assertNotIn("ended by a signal", done.stdout)
        both = json.loads(flopinj("top", "--json", client.pid).stdout)
        status = both["status"]
        self.assertEqual(status["output"], output)
        # Of one thread: nearly all callbacks were timed one by one by now.
        self.assertLess(status["callback_ns"], 2e9 * status["seconds"])
        self.assertEqual(both["report"]["ledger"][-1]["dropped"], 0)
        self.assertLessEqual(both["report"]["ledger"][-1]["launches"],
                             int(ask(client.pid, "status")["launches"]))

    def test_metrics_are_what_prometheus_reads(self):
        client, idle = self.endless(), self.endless()
        output = ask(client.pid, "start")["output"]
        self.wait_for(lambda: float(ask(client.pid, "status").get("covered", 0)) == 1)
        ask(client.pid, "stop")
        launches = harness.reduce(output)["ledger"][-1]["launches"]
        text = flopinj("metrics", client.pid, idle.pid, 2 ** 30).stdout
        # That of the client has its GPU; idle and no process have the same labels but for the pid.
        host, gpu = socket.gethostname(), f"GPU-{'[0-9a-f]{4}-' * 3}[0-9a-f]{{12}}"
        gpu = gpu.replace("GPU-", "GPU-[0-9a-f]{8}-")
        sample = re.compile(rf'(flopinj_[a-z_]+)\{{Hostname="{host}"'
                            rf'(?:,UUID="{gpu}"|,pid="(\d+)")(?:,(?:phase|device)="(\w+)")?\}} '
                            r'([-+.e\d]+)')
        values = {}
        for line in text.splitlines():
            if line.startswith("#"):
                self.assertRegex(line, r"# (HELP flopinj_[a-z_]+ \w.*\.|TYPE flopinj_[a-z_]+ "
                                       r"(counter|gauge))$")
                continue
            name, pid, phase, value = sample.fullmatch(line).groups()
            values[name, int(pid or client.pid), phase] = float(value)
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
            self.assertRegex(page.read().decode(), r'(?m)^flopinj_recording\{Hostname="\S+"\} 0$')

        def answered_first():
            """Before those who have connected earlier, and say nothing."""
            silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
            urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").close()
            waiting = select.select(silent, [], [], 0)[0]
            for one in silent:
                one.close()
            return len(waiting) < len(silent)

        self.wait_for(answered_first)
        ask(client.pid, "start")
        self.wait_for(lambda: re.search(r"(?m)^flopinj_recording\{.*\} 1$", file.read_text()))
        client.kill()
        client.wait()
        self.assertEqual(server.wait(PATIENCE_S), 0)
        self.assertFalse(file.exists())

    def test_metrics_are_for_this_machine_only(self):
        """A page of the web may have its name point here (DNS rebinding): its browser says so."""
        client = self.endless()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        server = subprocess.Popen([str(harness.FLOPINJ), "metrics", "--port", str(port),
                                   str(client.pid)])
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)

        def answer(*parts):
            with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as asking:
                for part in parts:
                    asking.sendall(part.encode())
                    time.sleep(0.05)
                return b"".join(iter(lambda: asking.recv(4096), b"")).decode()

        def is_listening():
            try:
                return answer("GET / HTTP/1.0\r\n\r\n")
            except ConnectionRefusedError:
                return None

        self.assertIn("flopinj_up", self.wait_for(is_listening))
        for host in (f"localhost:{port}", "LOCALHOST", f"127.0.0.1:{port}", "127.0.0.1",
                     f"[::1]:{port}", "[::1]"):
            with self.subTest(host):
                said = answer(f"GET / HTTP/1.1\r\nhost:\t{host}\r\n\r\n")
                self.assertTrue(said.startswith("HTTP/1.0 200 "), said)
        request = "GET / HTTP/1.1\r\n"
        for what, parts in {
                "another name": [f"{request}Host: attacker.example:{port}\r\n\r\n"],
                "a name like ours": [f"{request}Host: localhost.attacker.example\r\n\r\n"],
                "two names": [f"{request}Host: localhost\r\nHost: attacker.example\r\n\r\n"],
                "no name": [f"{request}\r\n"],
                "a name that comes late": [request, "Host: attacker.example\r\n", "\r\n"],
                "too much before a name": [f"{request}X: {'x' * 16_400}\r\n"]}.items():
            with self.subTest(what):
                said = answer(*parts)
                self.assertTrue(said.startswith("HTTP/1.0 403 "), said)
                self.assertNotIn("flopinj_up", said)

    def test_metrics_are_for_others_where_it_is_said(self):
        client = self.endless()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        server = subprocess.Popen([str(harness.FLOPINJ), "metrics", "--port", str(port),
                                   "--address", "0.0.0.0", str(client.pid)])
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)

        def page():
            asked = urllib.request.Request(f"http://127.0.0.2:{port}/metrics",
                                           headers={"Host": "node7.cluster:9178"})
            try:
                with urllib.request.urlopen(asked) as answer:
                    return answer.read().decode()
            except urllib.error.URLError:
                return None

        self.assertIn("flopinj_up{", self.wait_for(page))
        said = flopinj("metrics", "--port", port, "--address", "node7", client.pid)
        self.assertEqual(said.returncode, 1)
        self.assertIn("--address takes an address of this machine, such as 0.0.0.0", said.stderr)

    def test_metrics_do_not_write_to_a_file_of_others(self):
        """In a folder that others write to, the name of the file beside can be guessed."""
        theirs = self.folder / "theirs"
        theirs.write_text("theirs")
        script = 'ln -s theirs m.prom.$$; exec "$0" metrics -o m.prom --every 60 $1'
        client = self.endless()
        server = subprocess.Popen(["sh", "-c", script, str(harness.FLOPINJ), str(client.pid)],
                                  cwd=self.folder)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.wait_for((self.folder / "m.prom").exists)
        self.assertEqual(theirs.read_text(), "theirs")

    def test_what_cannot_be_is_said_in_one_line(self):
        with subprocess.Popen(["sleep", "60"]) as program:
            for arguments, words in ((("attach", program.pid), "has not loaded CUDA's driver"),
                                     (("attach", "--never-enter", program.pid), "does not listen"),
                                     (("detach", program.pid), "does not listen"),
                                     (("attach", 2 ** 30), "there is no process"),
                                     (("attach", program.pid, "--dormant"), "--dormant"),
                                     (("attach", "train.py"), "'train.py' is no process id: it is"),
                                     (("status", "0"), "'0' is no process id"),
                                     (("detach", 1 << 40), "is no process id"),
                                     (("attach",), "which process?")):
                with self.subTest(arguments):
                    done = flopinj(*arguments)
                    self.assertIn(done.returncode, (1, 2))
                    self.assertEqual((done.stdout, len(done.stderr.splitlines())), ("", 1),
                                     done.stderr)
                    self.assertIn(words, done.stderr)
            program.kill()


if __name__ == "__main__":
    harness.main()
