"""Programs under random faults, in which recordings begin and end at random moments, and which are
asked for their status, killed, and entered. Some get signals all the time, fork, handle signals on
a small stack, or load and close libraries with NVTX; the commands that enter are ended at any
moment. Each program has to end as it does without the profiler and leave no process behind, and
every trace has to be whole up to the program's last second. Without --rounds, 1,000 recordings in
one program come first, in each mode, after which it may have hardly more memory.

Use: FLOPINJ_BUILD=build/dev soak.py [--minutes 30] [--seed N] [--rounds N]

Every round prints its own seed first; `--seed N --rounds 1` repeats that round.
"""

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
import attach_enter_test  # noqa: E402
import attaching  # noqa: E402
import faults_test  # noqa: E402
import harness  # noqa: E402

LIMIT_S = 120
MODES = ("plain", "autograd-thread", "graph", "streams")
RESTLESS = ("forks", "alternate", "libraries")  # tests/integration/clients/restless.cpp
# To the program, which has handlers for all of them, and to commands, which have none.
TO_PROGRAM = [s for s in signal.valid_signals() if s not in (signal.SIGKILL, signal.SIGSTOP)]
TO_COMMANDS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


class Failure(Exception):
    pass


def expect(condition, text):
    if not condition:
        raise Failure(text)


class Plan:
    """What one round does, drawn from its seed."""

    def __init__(self, seed, faults):
        self.draw = draw = random.Random(seed)
        self.faults = draw.sample(faults, draw.choice((0, 0, 1, 1, 2)))
        self.arguments = ["--model", draw.choice(("mlp", "cnn")), "--mode", draw.choice(MODES),
                          "--steps", draw.choice((15, 30, 60, 200)), "--batch", 8,
                          "--sleep-ms", draw.choice((0, 5, 20)),
                          "--ranges", draw.choice(("off", "plain", "pytorch"))]
        self.settings = {"FLOPINJ_MODE": draw.choice(("multiplex", "multiplex", "timing", "count")),
                         "FLOPINJ_LEVEL": draw.choice(("launches", "tally")),
                         "FLOPINJ_PLAN_WAIT_MS": draw.choice((0, 20000))}
        self.way = draw.choice(("dormant", "dormant", "from the start", "after a while", "entered"))
        if self.way == "after a while":
            self.settings |= {"FLOPINJ_START_AFTER": f"{draw.randrange(1, 300)}ms",
                              "FLOPINJ_DURATION": f"{draw.randrange(1, 500)}ms"}
        if self.way == "dormant":
            self.settings["FLOPINJ_DORMANT"] = "1"
        self.killed_after_s = draw.uniform(0.05, 1.5) if draw.random() < 0.2 else None
        self.pause_s = draw.choice((0, 0.02, 0.2))
        self.restless = draw.sample(RESTLESS, draw.choice((0, 0, 1, 2)))
        self.signalled = draw.random() < 0.3
        self.commands_end = self.way == "entered" and draw.random() < 0.5

    def preloaded(self):
        """The program's own environment, with and without the profiler."""
        libraries = ["handled_signals.so"] * self.signalled + ["restless.so"] * bool(self.restless)
        return {"LD_PRELOAD": ":".join(str(harness.CLIENTS / name) for name in libraries),
                "RESTLESS": ",".join(self.restless)}

    def __str__(self):
        return (f"{self.way}, {' '.join(map(str, self.arguments))}, "
                f"{' '.join(f'{k}={v}' for k, v in self.settings.items())}, "
                f"faults {','.join(self.faults) or 'none'}, pause {self.pause_s}"
                + "".join(f", {word}" for word in self.restless)
                + (", signalled" if self.signalled else "")
                + (", commands end" if self.commands_end else "")
                + (f", killed after {self.killed_after_s:.2f} s" if self.killed_after_s else ""))


def fault_settings(plan):
    settings = {"SIMGPU_FAULT": ",".join(plan.faults)} if plan.faults else {}
    for fault in plan.faults:
        settings |= faults_test.SETTINGS.get(fault.split("=")[0], {})
    return settings


def weights(stderr):
    return re.findall(r"^weights ([0-9a-f]{16})$", stderr, re.MULTILINE)


def handles_signals(program):
    """Whether it has its handlers by now."""
    try:
        status = Path(f"/proc/{program.pid}/status").read_text()
    except OSError:
        return False
    return int(re.search(r"SigCgt:\s+(\w+)", status)[1], 16).bit_count() >= len(TO_PROGRAM)


def drive(plan, program):
    """Requests at random until the program has ended."""
    began = time.monotonic()
    done = 0
    while program.poll() is None:
        if plan.killed_after_s and time.monotonic() - began > plan.killed_after_s:
            program.send_signal(signal.SIGKILL if plan.signalled else
                                plan.draw.choice((signal.SIGKILL, signal.SIGTERM)))
            plan.killed_after_s = None
        expect(time.monotonic() - began < LIMIT_S, "the program does not end")
        if plan.signalled and handles_signals(program):
            program.send_signal(plan.draw.choice(TO_PROGRAM))
        try:
            attaching.ask(program.pid, plan.draw.choice(("start", "stop", "status")))
            done += 1
        except (attaching.Refused, OSError, ValueError):
            pass
        time.sleep(plan.draw.uniform(0, plan.pause_s) + 0.005)
    return done


def enter(plan, program, folder):
    """Until the library listens, or the program has ended. A command is ended at any moment, by
    signals to itself or to all its processes."""
    while program.poll() is None and not attaching.Attach.listens(program.pid):
        command = attach_enter_test.Command(program.pid, folder, "-o", folder / "t-%p.pb")
        end_at = time.monotonic() + plan.draw.uniform(0, 0.1) if plan.commands_end else None
        give_up = time.monotonic() + LIMIT_S
        while command.process.poll() is None:
            expect(time.monotonic() < give_up, "attach does not end")
            if plan.signalled and handles_signals(program):
                program.send_signal(plan.draw.choice(TO_PROGRAM))
            if end_at and time.monotonic() > end_at:
                everyone = command.everyone()
                for pid in plan.draw.choice((everyone, everyone[:1])):
                    try:
                        os.kill(pid, plan.draw.choice(TO_COMMANDS))
                    except ProcessLookupError:
                        continue
                end_at = None
            time.sleep(0.002)
        code, _, err = command.end()
        if code == 1 and "20 s" not in err:
            return  # it has ended, records already, or a fault keeps it from recording


def run_round(seed, faults, folder):
    plan = Plan(seed, faults)
    print(f"soak: --seed {seed} --rounds 1: {plan}", flush=True)
    killed = plan.killed_after_s is not None
    command = [str(word) for word in (harness.TRAINER, *plan.arguments)]
    own = fault_settings(plan) | plan.preloaded()
    plain = harness.run(command, harness.library_path(**own), timeout=LIMIT_S)
    trace = folder / "t-%p.pb"
    if plan.way == "entered":
        env = harness.library_path(**own)
    else:
        env = harness.injected_environment(trace, **plan.settings, **own)
    program = subprocess.Popen(command, env=env, text=True, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, start_new_session=True, cwd=folder)
    try:
        if plan.way == "entered":
            enter(plan, program, folder)
        requests = drive(plan, program)
        # A child of the program's own lives on for a moment.
        give_up = time.monotonic() + 5
        while members := [p for p in session_members(program.pid) if p != program.pid]:
            expect(time.monotonic() < give_up, f"processes are left behind: {members}")
            time.sleep(0.01)
        stderr = program.stderr.read()
    finally:
        harness.kill_session(program)
    if not killed:
        expect(program.returncode == plain.returncode,
               f"exit code {program.returncode}, without the profiler {plain.returncode}: {stderr}")
        expect(weights(stderr) == weights(plain.stderr), f"other weights: {stderr}")
    traces = sorted(folder.glob("*.pb"))
    may_lack = {"no_end"} if killed else set()
    # Where CUPTI has ended itself, a later recording cannot begin, and its trace says so.
    if any(fault.startswith("fatal_error") for fault in plan.faults):
        may_lack.add("stopped")
    for one in traces:
        check_trace(one, may_lack)
        one.unlink()
    return requests, len(traces)


def check_trace(trace, may_lack):
    done = harness.run([harness.FLOPREDUCE, "--format", "json", trace], harness.clean_environment())
    expect(done.returncode in (0, 3), f"flopreduce ended with {done.returncode}: {done.stderr}")
    if not done.stdout:
        return expect(trace.stat().st_size == 0, f"no report of {trace}: {done.stderr}")
    report = json.loads(done.stdout)
    expect(may_lack >= {damage["kind"] for damage in report["damage"]},
           f"{trace} is damaged: {report['damage']}")
    ledger = report["ledger"][-1]
    expect(ledger["launches"] == sum(ledger[k] for k in ("measured", "extrapolated", "unmeasured",
                                                         "dropped")), f"unbalanced: {ledger}")
    return None


def session_members(session):
    members = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit():
                fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
                if int(fields[3]) == session and fields[0] not in "ZX":
                    members.append(int(process.name))
        except OSError:
            continue
    return members


def many_recordings():
    """False where memory grew, or the last recording lacked times."""
    test = Path(harness.__file__).with_name("attach_harm_test.py")
    done = subprocess.run([sys.executable, str(test), "Memory"], check=False,
                          env={**os.environ, "FLOPINJ_ATTACH_ROUNDS": "1000"})
    return done.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--rounds", type=int, default=None)
    options = parser.parse_args()
    faults = faults_test.all_faults()
    if not attach_enter_test.may_trace():
        print("soak: no program can be entered here", file=sys.stderr)
    until = time.monotonic() + options.minutes * 60
    rounds = requests = traces = 0
    failed = []
    if options.rounds is None and not many_recordings():
        failed.append("recordings")
    seed = options.seed
    while time.monotonic() < until if options.rounds is None else rounds < options.rounds:
        with tempfile.TemporaryDirectory(prefix="flopinj-soak-") as folder:
            try:
                made, written = run_round(seed, faults, Path(folder))
                requests += made
                traces += written
            except (Failure, subprocess.TimeoutExpired) as failure:
                print(f"soak: FAILED, --seed {seed} --rounds 1: {failure}", flush=True)
                failed.append(seed)
        rounds += 1
        seed = random.Random(seed).randrange(1 << 32)
    print(f"soak: {rounds} rounds, {requests} requests answered, {traces} traces, "
          f"{len(failed)} failed{': seeds ' if failed else ''}{' '.join(map(str, failed))}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
