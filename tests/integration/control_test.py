"""Requests to a program under the profiler: who may ask, strangers that ask all the same, and
answers of a program that is hostile itself."""

import collections
import contextlib
import json
import os
import random
import re
import shutil
import socket
import subprocess
import threading
import time
import unittest
from pathlib import Path

import harness
from attaching import PATIENCE_S, Attach, Refused, ask, connected_to, connection, mark
from harness import CLIENTS, works

USER, STRANGER = 1000, 2000
LAUNCHES = (CLIENTS / "launch_client", "endless")


def as_user(user, action):
    """What the action returns, a number, when it is done by this user with no capability."""
    child = os.fork()
    if child == 0:
        code = 255
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            code = action()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def setpriv(user, *options):
    return ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *options)


def answers(address, secrets):
    """What is said to these at an address that everybody can read."""
    names = re.findall(r"@flopinj-([-\w]+)$", Path("/proc/net/unix").read_text(), re.M)
    if address not in names:
        return
    for secret in secrets:
        with contextlib.suppress(OSError), connected_to(address) as client:
            client.sendall(secret + b"status\n\n")
            yield client.recv(4096)


def tries_all(pid, address):
    """A stranger's tries: 0 where nobody says anything to them, and the kernel keeps the secret."""
    try:
        mark(pid)
        return 1
    except PermissionError:
        pass
    said = list(answers(address, [b"", b"0" * 32 + b"\n", b"\n" * 33]))
    if any(answer.startswith(b"ok") for answer in said):
        return 2
    return 0 if any(b"secret" in answer for answer in said) else 3


@unittest.skipIf(os.geteuid() != 0, "only root can be two users")
@unittest.skipUnless(shutil.which("setpriv"), "no setpriv")
@unittest.skipIf(harness.SANITIZER_PRELOAD, "sanitizers need files that other users cannot read")
class WhoMayAsk(Attach):
    """Whoever may read the process, by the kernel's own judgement."""

    def setUp(self):
        super().setUp()
        self.folder.chmod(0o777)
        if as_user(USER, lambda: 0 if os.access(LAUNCHES[0], os.X_OK) else 1):
            self.skipTest(f"another user cannot reach {harness.BUILD}")

    def target(self, *before):
        return self.start([*before, *LAUNCHES])

    def check_refused(self, pid, user):
        address, _ = mark(pid)
        self.assertEqual(as_user(user, lambda: tries_all(pid, address)), 0)
        done = harness.run([*setpriv(user), harness.FLOPINJ, "attach", "--never-enter", pid],
                           harness.clean_environment())
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn("may not be asked by this user", done.stderr)
        self.assertEqual(ask(pid, "status")["recordings"], "0")  # root may

    def may_ask(self, pid, user):
        done = harness.run([*setpriv(user), harness.FLOPINJ, "status", "--json", pid],
                           harness.clean_environment())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(json.loads(done.stdout)["state"], "dormant")

    def test_its_user(self):
        client = self.target(*setpriv(USER))
        self.may_ask(client.pid, USER)
        self.check_refused(client.pid, STRANGER)

    @unittest.skipUnless(works("unshare", "-U"), "this system makes no user namespaces")
    def test_no_other_user_where_users_have_no_mapping(self):
        """All of them read as one user there."""
        client = self.target(*setpriv(USER), "unshare", "-U")
        self.check_refused(client.pid, STRANGER)
        self.may_ask(client.pid, USER)

    @unittest.skipUnless(works("unshare", "-U"), "this system makes no user namespaces")
    def test_no_user_of_another_namespace_without_a_mapping(self):
        client = self.target(*setpriv(USER), "unshare", "-U")
        inside = [*setpriv(STRANGER), "unshare", "-U", harness.FLOPINJ, "status", client.pid]
        done = harness.run(inside, harness.clean_environment())
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("may not be asked by this user", done.stderr)

    @unittest.skipUnless(works(*setpriv(USER, "--inh-caps=+net_raw", "--ambient-caps=+net_raw")),
                         "no ambient capabilities")
    def test_nobody_with_fewer_capabilities(self):
        extra = ("--inh-caps=+net_raw", "--ambient-caps=+net_raw")
        client = self.target(*setpriv(USER, *extra))
        self.check_refused(client.pid, USER)

    def test_not_its_user_where_it_is_not_dumpable(self):
        client = self.start([*setpriv(USER), CLIENTS / "attach_client", "hidden"],
                            stdout=subprocess.PIPE)
        client.stdout.readline()
        self.check_refused(client.pid, USER)

    def test_where_ptrace_is_closed(self):
        """A dormant program is asked, as ever: Yama says who may enter a process."""
        scope = Path("/proc/sys/kernel/yama/ptrace_scope")
        if not scope.exists() or scope.read_text().strip() == "0":
            self.skipTest("kernel.yama.ptrace_scope is 0 or not there")
        self.may_ask(self.target(*setpriv(USER)).pid, USER)

    @unittest.skipIf(harness.SANITIZER_PRELOAD, "sanitizers' locks are no more free in a child")
    def test_a_forked_child_has_no_secret_of_its_parent(self):
        client = self.start([CLIENTS / "attach_client", "forks"], stdout=subprocess.PIPE)
        child = int(client.stdout.readline())
        self.addCleanup(os.kill, child, 9)
        self.wait_for(lambda: not self.has_secret(child))  # the child closes what it inherited

    @staticmethod
    def has_secret(pid):
        try:
            return mark(pid)
        except ConnectionRefusedError:
            return None

    @unittest.skipUnless(works("unshare", "-n"), "this system makes no network namespaces")
    def test_another_network_is_named(self):
        client = self.target()
        done = harness.run(["unshare", "-n", harness.FLOPINJ, "status", client.pid],
                           harness.clean_environment())
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(f"nsenter -t {client.pid} -n flopinj", done.stderr)


class Crowds(Attach):
    """Anybody can connect. Who has shown the secret is served all the same."""

    def test_silent_strangers_keep_nobody_waiting(self):
        """An answer comes before those who came earlier, and say nothing, have been given up."""
        client = self.endless()
        address, _ = mark(client.pid)
        before = len(os.listdir(f"/proc/{client.pid}/fd"))

        def answered_first():
            silent = [connected_to(address) for _ in range(40)]
            self.assertEqual(ask(client.pid, "status")["state"], "dormant")
            waiting = sum(self.is_open(one) for one in silent)
            self.assertLessEqual(len(os.listdir(f"/proc/{client.pid}/fd")), before + 8)
            for one in silent:
                one.close()
            return waiting > 0

        self.wait_for(answered_first)

    @staticmethod
    def is_open(client):
        client.setblocking(False)
        try:
            return client.recv(1) != b""
        except BlockingIOError:
            return True
        except ConnectionResetError:
            return False

    @unittest.skipIf(os.geteuid() != 0, "only root can be two users")
    def test_a_flood_of_strangers_keeps_nobody_waiting(self):
        client = self.endless()
        address, _ = mark(client.pid)

        def flood():
            held = collections.deque()
            while True:
                with contextlib.suppress(OSError):
                    held.append(connected_to(address))
                if len(held) > 100:
                    held.popleft().close()

        flooding = os.fork()
        if flooding == 0:
            os.setuid(STRANGER)
            flood()
        try:
            for _ in range(50):
                self.assertEqual(ask(client.pid, "status")["state"], "dormant")
        finally:
            os.kill(flooding, 9)
            os.waitpid(flooding, 0)

    def test_a_stranger_is_not_read(self):
        client = self.endless()
        address, secret = mark(client.pid)
        wrong = ("0" if secret[0] != "0" else "1") + secret[1:]
        for first in (wrong, secret[:-1] + "\n", secret.upper() + "\n"):
            with connected_to(address) as stranger, self.assertRaises(OSError):
                stranger.sendall(first.encode() + b"\n")
                while True:
                    stranger.sendall(b"x" * 65536)
        self.assertEqual(ask(client.pid, "status")["recordings"], "0")


class Settings(Attach):
    def test_a_request_loads_no_code_and_changes_no_file(self):
        """What the start has is the start's."""
        theirs = self.folder / "theirs"
        theirs.write_text("precious")
        client = self.endless(FLOPINJ_FORCE=1)
        for setting in (f"FLOPINJ_CUPTI={theirs}", "FLOPINJ_FORCE=1", "FLOPINJ_LOG=debug",
                        "FLOPINJ_RUN=0:1:x", "FLOPINJ_QUIET=0", "FLOPINJ_DORMANT=1",
                        "FLOPINJ_NO_CONTROL=0", "FLOPINJ_CAPTURE_RANGE=none"):
            with self.subTest(setting), self.assertRaisesRegex(Refused, "in a program that runs"):
                ask(client.pid, "start", setting)
        for setting, words in (("LD_PRELOAD=/x.so", "is no setting"), ("x", "is no setting"),
                               ("FLOPINJ_LEVEL", "is no setting"),
                               ("FLOPINJ_OUTPUT=-", "standard output is the program's own")):
            with self.subTest(setting), self.assertRaisesRegex(Refused, words):
                ask(client.pid, "start", setting)
        self.assertEqual(ask(client.pid, "status")["recordings"], "0")
        output = ask(client.pid, "start", f"FLOPINJ_OUTPUT={theirs}")["output"]
        self.assertNotEqual(output, str(theirs))
        ask(client.pid, "stop")
        self.assertEqual(theirs.read_text(), "precious")

    def test_the_command_says_what_to_do_instead(self):
        client = self.endless()
        for option, words in ((("--cupti", "/x.so"), "flopinj run --dormant"),
                              (("--dormant",), "flopinj run --dormant"),
                              (("-q",), "flopinj run --dormant"),
                              (("--force",), "name a file that is not there yet"),
                              (("-o", "-"), "standard output is the program's own")):
            with self.subTest(option):
                done = harness.run([harness.FLOPINJ, "attach", client.pid, *option],
                                   harness.clean_environment(), cwd=self.folder)
                self.assertIn(done.returncode, (1, 2))
                self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1), done.stderr)
                self.assertIn(words, done.stderr)
        text = harness.run([harness.FLOPINJ, "attach", "--help"], harness.clean_environment())
        self.assertNotIn("--cupti", text.stdout)


class Hostile(harness.TestCase):
    """The tests' own process answers `flopinj`: anything."""

    COMMANDS = (("attach", "--never-enter"), ("detach",), ("status",), ("status", "--json"),
                ("top", "--once"), ("top", "--json"), ("metrics",))

    @contextlib.contextmanager
    def answering(self, answer, name="flopinj-control-1-{address}-{secret}"):
        """`answer`: bytes, or a function of the connection. Yields the secrets that have come."""
        address, secret = (os.urandom(n).hex() for n in (8, 16))
        came = []
        self.descriptor = os.memfd_create(name.format(address=address, secret=secret))
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(f"\0flopinj-{address}")
            listening.listen(8)

            def serve():
                with contextlib.suppress(OSError):
                    while True:
                        one, _ = listening.accept()
                        with one, contextlib.suppress(OSError):
                            came.append(one.recv(4096).decode().partition("\n")[0])
                            one.sendall(answer) if isinstance(answer, bytes) else answer(one)
            server = threading.Thread(target=serve)
            server.start()
            try:
                yield secret, came
            finally:
                listening.shutdown(socket.SHUT_RDWR)
                server.join()
                os.close(self.descriptor)

    def ask(self, *command):
        done = subprocess.run([harness.FLOPINJ, *command, str(os.getpid())], cwd=self.folder,
                              env=harness.clean_environment(), stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=PATIENCE_S, check=False)
        self.assertIn(done.returncode, (0, 1))
        self.assertEqual(done.stderr.count(b"\n"), 0 if done.returncode == 0 else 1, done.stderr)
        for text in (done.stdout.decode(), done.stderr.decode()):
            self.assertEqual(re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text), [], text)
            self.assertNotRegex(text, r"\bsto(d|ull)\b|std::|json\.exception")
        return done

    def test_no_answer_reaches_the_terminal_as_it_is(self):
        status = ("ok\npid 1\nstate {0}\nrecordings 1\noutput /tmp/{0}\nmode {0}\nseconds 1\n"
                  "launches 5\ndropped 0\ntrace_bytes 9\ncovered 0.5\ncallback_ns 1\n"
                  "measuring_ns 1\nstartup_ns 1\n")
        evil = ("\x1b[2J\x1b]52;c;eA==\x07", "\x9b31m", "\r\x08\x7f\x0b", "\u202e", "\x00")
        hostile = [status.format(text).encode() for text in evil]
        hostile += [f"error {text}\n".encode() for text in evil]
        hostile += [f"{text}\n".encode() for text in evil]
        hostile += [status.format("\\").encode().replace(b"\\", b"\xff\xfe\x9b")]
        for answer in hostile:
            for command in self.COMMANDS:
                with self.subTest(command=command, answer=answer), self.answering(answer):
                    self.ask(*command)

    def test_a_number_that_is_none_is_one_clear_line(self):
        good = {"pid": 1, "state": "recording", "recordings": 1, "output": "/tmp/x", "mode": "full",
                "seconds": 1, "launches": 1, "dropped": 0, "trace_bytes": 1, "covered": 1,
                "callback_ns": 1, "measuring_ns": 1, "startup_ns": 1}
        for key in ("seconds", "launches", "dropped", "trace_bytes", "covered", "callback_ns"):
            for value in ("abc", "", "nan", "inf", "1e999", "[[[[", "1 2", "0x10"):
                answer = "ok\n" + "".join(f"{k} {v}\n" for k, v in {**good, key: value}.items())
                with self.subTest(key=key, value=value), self.answering(answer.encode()):
                    done = self.ask("status")
                    self.assertEqual((done.returncode, done.stdout), (1, b""))
                    self.assertIn(b"does not understand: " + key.encode(), done.stderr)

    def test_random_answers(self):
        draw = random.Random(1)
        words = (b"ok", b"error", b"\n", b" ", b"state", b"output", b"/", b"seconds", b"launches",
                 b"recording", b"-1", b"9" * 30, b"\x1b", b"\xc2\x9b", b"\xff", b"\0", b"0.5")
        for _ in range(40):
            answer = draw.choice((b"", b"ok\n")) + b"".join(
                draw.choice(words) for _ in range(draw.randrange(60)))
            with self.subTest(answer=answer), self.answering(answer):
                self.ask(*draw.choice(self.COMMANDS))

    def test_an_answer_without_end_is_not_taken(self):
        def endless(one):
            while True:
                one.sendall(b"ok\n" + b"x" * 65536)
        with self.answering(endless):
            done = self.ask("status")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"answers without end", done.stderr)

    def test_an_answer_that_drips_is_not_waited_for(self):
        def dripping(one):
            while True:
                one.sendall(b"o")
                time.sleep(1)
        with self.answering(dripping):
            done = self.ask("status")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"does not answer", done.stderr)

    def test_other_versions_are_named(self):
        for version, words in (("0", b"an older flopinj"), ("2-x", b"a newer flopinj")):
            name = f"flopinj-control-{version}-{{address}}-{{secret}}"
            with self.subTest(version), self.answering(b"ok\n", name) as (_, came):
                done = self.ask("attach")
                self.assertEqual((done.returncode, came), (1, []))
                self.assertIn(words, done.stderr)

    def test_only_a_whole_mark_counts(self):
        for name in ("flopinj-control-1-{address}", "flopinj-control-1-{address}-{secret}0",
                     "flopinj-control--{address}-{secret}",
                     "x-flopinj-control-1-{address}-{secret}",
                     "flopinj-control-1-{secret}-{address}"):
            with self.subTest(name), self.answering(b"ok\n", name) as (_, came):
                done = self.ask("status")
                self.assertEqual((done.returncode, came), (1, []))
                self.assertIn(b"does not listen", done.stderr)

    def test_the_secret_goes_to_the_process_that_is_meant_only(self):
        """Here another one listens in its place."""
        with self.answering(b"ok\nstate dormant\n") as (secret, came):
            self.assertEqual(self.ask("status").returncode, 0)
            self.assertEqual(came, [secret])
            program = subprocess.Popen(["sleep", "60"], pass_fds=[self.descriptor])
            self.addCleanup(program.wait)
            self.addCleanup(program.kill)
            done = harness.run([harness.FLOPINJ, "status", program.pid],
                               harness.clean_environment())
            self.assertEqual(done.returncode, 1)
            self.assertIn("does not listen", done.stderr)
            self.assertEqual([text for text in came if text], [secret])


if __name__ == "__main__":
    harness.main()
