"""Requests to a running program under the profiler, by a client of the tests' own, from the
description of the protocol in common/control_address.h.
"""

import os
import socket
import subprocess
import time

import harness
from harness import CLIENTS, injected_environment

PATIENCE_S = 60
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
