"""Runs programs under the profiler with time limits, and keeps what happened: log, traces,
stacks."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import facts
import machine

LOG_LIMIT = 256 << 10  # characters of one step's output that are kept
SKIPPED = 77           # exit code of a program that lacks its requirements
STACK_SECONDS = 20     # longest time for the stacks of a program that did not end


class Skip(Exception):
    """A step cannot run here; says why."""


class Fail(Exception):
    """A step could not be judged; says why."""


def processes_of(group):
    """Ids of the processes of a process group, oldest first."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group:
            found.append((int(fields[19]), int(folder.name)))
    return [pid for _, pid in sorted(found)]


def stacks(pid):
    """Stacks of all threads of a process, by the first debugger that is here."""
    for debugger in ("cuda-gdb", "gdb"):
        program = shutil.which(debugger)
        if program is None:
            continue
        command = [program, "-batch", "-p", str(pid), "-ex", "thread apply all bt 40"]
        try:
            done = subprocess.run(command, text=True, capture_output=True, errors="replace",
                                  stdin=subprocess.DEVNULL, timeout=STACK_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return f"{debugger} did not end within {STACK_SECONDS} s"
        if "Thread " in done.stdout or "#0" in done.stdout:
            return done.stdout
    return "no debugger here shows stacks"


class Runner:
    """The tree under test, the folder that programs run in, and the log."""

    def __init__(self, options, folder):
        self.options, self.folder, self.tree = options, folder, options.tree
        self.deadline = time.monotonic() + options.seconds
        self.toolkit = machine.Toolkit()
        self.log, self.traces = [], []
        self.driver_errors = set(facts.driver_errors())  # of before are not news
        self.help = subprocess.run([self.tree / "bin/flopinj", "run", "--help"], text=True,
                                   timeout=20, capture_output=True, check=False).stdout

    def execute(self, command, seconds, log_stdout=True, environment=None, stop_after=None):
        """Exit code and stdout. A program that does not end in time leaves its stacks in the log.

        `stop_after`: seconds until the program gets SIGTERM, as from a job scheduler."""
        seconds = min(seconds, self.deadline - time.monotonic())
        if seconds < 2:
            raise Skip("no time left")
        variables = {k: v for k, v in os.environ.items() if not k.startswith("FLOPINJ_")}
        variables.update(environment or {})
        shown = [f"{k}={v}" for k, v in (environment or {}).items()]
        self.log.append("$ " + " ".join([*shown, *map(str, command)]) + "\n")
        text = {"mode": "w+", "encoding": "utf-8", "errors": "replace"}
        with tempfile.TemporaryFile(**text) as out, tempfile.TemporaryFile(**text) as err:
            program = subprocess.Popen([str(c) for c in command], cwd=self.folder, env=variables,
                                       stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                       start_new_session=True)
            hung, code = "", self.wait(program, seconds, stop_after)
            if code is None:
                hung = "".join(f"-- stacks of process {pid}\n{stacks(pid)}\n"
                               for pid in processes_of(program.pid)[:4])
                os.killpg(program.pid, signal.SIGKILL)
                program.wait()
            for file in (out, err):
                file.seek(0)
            stdout = out.read()
            self.log += [stdout[:LOG_LIMIT] if log_stdout else "", err.read()[-LOG_LIMIT:],
                         f"[exit {code}]\n" if code is not None else
                         f"{hung}[killed after {seconds:.0f} s]\n"]
        if code != 0:
            errors = facts.driver_errors()
            self.log += [line + "\n" for line in errors if line not in self.driver_errors]
            self.driver_errors.update(errors)
        return code, stdout

    @staticmethod
    def wait(program, seconds, stop_after):
        """Exit code, or None when the program did not end in time."""
        if stop_after is not None:
            try:
                return program.wait(stop_after)
            except subprocess.TimeoutExpired:
                program.terminate()
        try:
            return program.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def profile(self, name, command, seconds, mode="multiplex", options=(), environment=None,
                defaults=False, cupti=None, **rest):
        """Runs the command under the profiler; its stdout, and the name of its trace.

        `defaults`: as users run it, else so that a short run is measured whole. `cupti`: path of
        the library, else the toolkit's."""
        trace = f"{name}.pb"
        arguments = [self.tree / "bin/flopinj", "run", "--force", "-o", trace, "--mode", mode]
        if not defaults:
            arguments += ["--plan-wait-ms", "20000", *self.option("--budget", "100")]
        arguments += ["--simulate"] if self.options.simulate else self.cupti(cupti)
        arguments += self.option("--log-level", "debug" if "debug" in self.help else "info")
        arguments += options
        code, stdout = self.execute([*arguments, "--", *command], seconds,
                                    environment=environment, **rest)
        if code == SKIPPED:
            raise Skip("the program lacks its requirements here")
        ends = (0,) if "stop_after" not in rest else (0, -signal.SIGTERM, 128 + signal.SIGTERM)
        if code not in ends:
            raise Fail(f"the program ended with {code}" if code is not None else
                       "the program did not end in time")
        return stdout, trace

    def cupti(self, given=None):
        library = self.toolkit.library("cupti")
        library = given or library
        return ["--cupti", library] if library else []

    def option(self, name, value):
        """An option where this flopinj has it."""
        return [name, value] if name in self.help else []

    def knows_mode(self, mode):
        """Asks the program: `flopinj run --print-env` checks its options and starts nothing."""
        command = [self.tree / "bin/flopinj", "run", "--print-env", "--mode", mode]
        return subprocess.run(command, timeout=20, capture_output=True, check=False).returncode == 0

    def reduce(self, trace, phases=()):
        """The report of a trace. `phases`: names of ranges that are phases of their own."""
        rules = [word for name in phases
                 for word in ("--phase", f"{name}=^{re.escape(name)}$")]
        code, stdout = self.execute([self.tree / "bin/flopreduce", "--format", "json", *rules,
                                     trace], 60, log_stdout=False)
        if code not in (0, 3):
            raise Fail(f"flopreduce ended with {code}")
        self.traces.append(trace)
        return json.loads(stdout)
