"""Running programs under the profiler and reading what it says. Paths come from FLOPINJ_BUILD, the
build folder."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ["FLOPINJ_BUILD"]).resolve()
SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests" / "support"))
from report_tables import by, exact, figure, known  # noqa: E402, F401
LIBRARY = BUILD / "lib" / "libflopinj.so"
SIMGPU = BUILD / "lib" / "flopinj" / "simgpu"
TRAINER = BUILD / "lib" / "flopinj" / "trainer" / "trainer"
FLOPINJ = BUILD / "bin" / "flopinj"
FLOPREDUCE = BUILD / "bin" / "flopreduce"
CLIENTS = BUILD / "tests" / "integration"

# What a sanitized library needs in a program that is not sanitized (Python); empty in ordinary
# builds.
SANITIZER_PRELOAD = os.environ.get("FLOPINJ_SANITIZER_PRELOAD", "")
INJECTION = ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "LD_PRELOAD")

# Programs under test end by these, where the tests' own starter ignores them too (nohup, a shell's
# background).
for _number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)


def works(*command):
    """Whether a program can be run by way of this one, such as unshare, here."""
    return shutil.which(command[0]) and subprocess.run(
        [*command, "true"], capture_output=True, check=False).returncode == 0


def clean_environment():
    """This process's environment without anything of ours or of an outer profiler."""
    return {k: v for k, v in os.environ.items()
            if not k.startswith(("FLOPINJ_", "SIMGPU_")) and k not in INJECTION
            } | {"XDG_STATE_HOME": "/nonexistent"}  # no findings of an earlier flopinj doctor


def library_path(**settings):
    """The environment of a program on simgpu without a profiler."""
    env = clean_environment()
    env["LD_LIBRARY_PATH"] = f"{SIMGPU}:{env.get('LD_LIBRARY_PATH', '')}"
    env.update({k: str(v) for k, v in settings.items()})
    return strict(env)


def strict(env):
    """The environment in which a call of the driver inside a callback ends the program."""
    if env.get("SIMGPU_FAULT") != "list":
        env["SIMGPU_FAULT"] = f"strict_callbacks,{env.get('SIMGPU_FAULT', '')}".rstrip(",")
    return env


def injected_environment(output, by=("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"), **settings):
    """The environment of a program under the profiler on simgpu. Settings are FLOPINJ_ and SIMGPU_
    variables."""
    env = library_path(**{k: v for k, v in settings.items() if k == "SIMGPU_FAULT"})
    env["FLOPINJ_OUTPUT"] = str(output)
    env["FLOPINJ_PLAN_WAIT_MS"] = "60000"  # the first launches of a short program are measured too
    env["FLOPINJ_BUDGET"] = "none"  # a machine that stalls inside a window would spend it
    for name in by:
        env[name] = str(LIBRARY)
    env.update({k: str(v) for k, v in settings.items() if k != "SIMGPU_FAULT"})
    return sanitizer_first(env)


def sanitizer_first(env):
    """The environment with the sanitizer's library before all others that it preloads."""
    if SANITIZER_PRELOAD:
        env["LD_PRELOAD"] = f"{SANITIZER_PRELOAD}:{env.get('LD_PRELOAD', '')}".rstrip(":")
    return env


def run(command, env, timeout=240, **kwargs):
    return subprocess.run([str(c) for c in command], env=env, timeout=timeout, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, **kwargs)


def kill_session(process):
    """Ends the process, which began a session, and all that it has started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.communicate()


def read_varint(data, at):
    """A varint of protobuf, and the offset after it."""
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value, at


def reduce(*traces, options=(), check=0):
    """flopreduce's JSON. `check` is the exit code that is expected; None takes any."""
    done = run([FLOPREDUCE, "--format", "json", *options, *traces], clean_environment())
    if check is not None and done.returncode != check:
        raise AssertionError(f"flopreduce ended with {done.returncode}, not {check}: {done.stderr}")
    if not done.stdout:
        raise AssertionError(f"flopreduce ended with {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def precisions(report):
    """Precision to FLOP, those that occur."""
    return {name: known(row) for name, row in by(report, "precisions").items() if known(row)}


def reasons(report, fate):
    """Launches of this fate by the reason."""
    return {row["reason"]: row["launches"] for row in report["ledger_reasons"]
            if row["fate"] == fate}


def codes(report):
    """Of diagnostics, in the order of the traces."""
    return [row["code"] for row in report["diagnostics"]]


class TestCase(unittest.TestCase):
    """With a folder of its own and checks that hold for every report."""

    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="flopinj-test-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.trace = self.folder / "trace.pb"

    def run_profiled(self, command, expect=0, output=None, **settings):
        done = run(command, injected_environment(output or self.trace, **settings))
        self.assertEqual(done.returncode, expect, done.stderr)
        return done

    def assert_balanced(self, report):
        ledger = report["ledger"][-1]
        self.assertEqual(
            ledger["launches"],
            sum(ledger[k] for k in ("measured", "extrapolated", "unmeasured", "dropped")), ledger)

    def assert_all_counted(self, report, launches):
        """Every launch is there once and has a FLOP count."""
        self.assert_balanced(report)
        ledger = report["ledger"][-1]
        self.assertEqual(ledger["launches"], launches, ledger)
        self.assertEqual(ledger["unmeasured"], 0, ledger)
        self.assertEqual(ledger["dropped"], 0, ledger)
        self.assertGreater(ledger["measured"], 0, ledger)


def main():
    unittest.main(verbosity=2, argv=[sys.argv[0], *sys.argv[1:]])
