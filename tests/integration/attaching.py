"""Requests to a running program under the profiler, by a client of the tests' own, from the
description of the protocol in common/control_address.h.
"""

import os
import re
import socket
import subprocess
import time
from pathlib import Path

import harness
from harness import CLIENTS, injected_environment

PATIENCE_S = 60
MARK = re.compile(r"/memfd:flopinj-control-1-([0-9a-f]{16})-([0-9a-f]{32}) \(deleted\)")


class Refused(Exception):
    pass


def mark(pid):
    """The address at which the program listens, and its secret."""
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found = MARK.fullmatch(os.readlink(link))
        except FileNotFoundError:
            continue
        if found:
            return found.groups()
    raise ConnectionRefusedError("it does not listen")


def connected_to(address):
    client = socket.socket(socket.AF_UNIX)
    try:
        client.connect(f"\0flopinj-{address}")  # without a limit, which would not wait at all
        client.settimeout(PATIENCE_S)
        return client
    except OSError:
        client.close()
        raise


def connection(pid):
    """One that has shown the secret. The library waits for it for a second, which is not always
    enough for us on a busy machine: then we come again."""
    give_up = time.monotonic() + PATIENCE_S
    while True:
        address, secret = mark(pid)
        client = connected_to(address)
        try:
            client.sendall(secret.encode() + b"\n")
            return client
        except BrokenPipeError:
            client.close()
            if time.monotonic() > give_up:
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


def memory_kib(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1])


class Attach(harness.TestCase):
    def start(self, command, stdin=None, stdout=subprocess.DEVNULL, **settings):
        """The program, once it listens, or has ended before it was asked."""
        env = injected_environment(self.folder / "t-%p.pb", FLOPINJ_DORMANT=1, **settings)
        process = subprocess.Popen([str(c) for c in command], env=env, text=True, stdin=stdin,
                                   stdout=stdout, stderr=subprocess.PIPE, start_new_session=True)
        self.addCleanup(harness.kill_session, process)
        self.wait_for(lambda: self.listens(process.pid) or process.poll() is not None)
        return process

    @staticmethod
    def listens(pid):
        try:
            return ask(pid, "status")
        except (OSError, ValueError):  # it does not listen, or ends without an answer
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
