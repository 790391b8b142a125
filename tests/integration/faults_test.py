"""The promise to the program under every fault of the simulated GPU, and under pairs of them: the
trainer's final weights and its exit code are those of a run without the profiler, it ends in time,
and the trace says what was lost and why.

FLOPINJ_FAULT_SEED chooses the pairs, FLOPINJ_FAULT_PAIRS their number.
"""

import os
import random
import re
import subprocess

import harness

# Arguments of the faults that take one, such that a short run meets them.
ARGUMENTS_OF_FAULTS = {
    "launch_failure": 200, "out_of_memory": 12, "instrumented_memory": 512,
    "instrumented_registers": 64, "drop_activity": 3, "repeat_activity": 3, "invalid_times": 20,
    "windowed_records": "zero",
    "take_activity": 20, "keep_buffers": 2, "fatal_error": 20, "slow_enable": 300, "slow_host": 300,
    "hardware_busy_for": 300, "taken_when_free": 300, "drop_ranges": 2, "host_objects": 4,
    "one_group_refused": "dram__", "start_refused": "op_hmma_src_bf16", "slice_lacks": "dram__",
    "lose_ranges": 5, "slow_windows": 100, "slow_patching": 10_000, "nvml_hang": 6,
    "nvml_slow": 300,
}
# What a fault needs beside itself: environment, and arguments of the trainer.
SETTINGS = {"instrumented_memory": {"SIMGPU_MEMORY": 64}}
# Closing windows of an idle program is the helper thread's business.
ARGUMENTS = {"stop_elsewhere": ["--sleep-ms", "250"]}

# Versions of CUPTI, and each where it cannot start.
VERSIONS = ("12.6", "12.8", "12.9", "12.9.1", "13.0", "13.1", "13.2", "13.3", "13.4", "13.5")

LIMIT_S = 60  # each run takes a second or two
SEED = int(os.environ.get("FLOPINJ_FAULT_SEED", 1))


def all_faults():
    done = harness.run([harness.TRAINER, "--steps", 1], harness.library_path(SIMGPU_FAULT="list"))
    names = [line.split()[0].split("=") for line in done.stdout.splitlines()]
    return [f"{name}={ARGUMENTS_OF_FAULTS[name]}" if unit else name for name, *unit in names]


class Run:
    """One run of the trainer; the weights are None where it did not come so far."""

    def __init__(self, env, arguments):
        command = [harness.TRAINER, "--steps", 12, "--batch", 8, *arguments]
        try:
            done = harness.run(command, env, timeout=LIMIT_S)
            self.code, self.stderr, self.hung = done.returncode, done.stderr, False
        except subprocess.TimeoutExpired as late:
            self.code, self.hung = None, True
            self.stderr = bytes(late.stderr or b"").decode()
        hashes = re.findall(r"^weights ([0-9a-f]{16})$", self.stderr, re.MULTILINE)
        self.weights = hashes[0] if hashes else None


class UnderFaults(harness.TestCase):
    def settings(self, faults):
        settings = {"SIMGPU_FAULT": ",".join(faults)}
        arguments = []
        for fault in faults:
            settings.update(SETTINGS.get(fault.split("=")[0], {}))
            arguments += ARGUMENTS.get(fault.split("=")[0], [])
        return settings, arguments

    def check(self, settings, arguments):
        self.trace.unlink(missing_ok=True)
        plain = Run(harness.library_path(**settings), arguments)
        self.assertFalse(plain.hung)
        env = harness.injected_environment(self.trace, FLOPINJ_FORCE=1, **settings)
        profiled = Run(env, arguments)
        self.assertFalse(profiled.hung, "it hangs")
        self.assertEqual(profiled.code, plain.code, profiled.stderr)
        self.assertEqual(profiled.weights, plain.weights, profiled.stderr)
        if self.trace.exists():
            self.check_trace(harness.reduce(self.trace, check=None), profiled.stderr)
        elif plain.code == 0:
            self.assertIn("flopinj", profiled.stderr, "no trace, and not a word")

    def check_trace(self, report, stderr):
        """Whatever is missing has a reason in the report."""
        self.assert_balanced(report)
        ledger, recorder = report["ledger"][-1], report["recorders"][0]
        for lost in ("unmeasured", "dropped"):
            reasons = harness.reasons(report, lost)
            self.assertEqual(sum(reasons.values()), ledger[lost], reasons)
        if ledger["unmeasured"] + ledger["dropped"] > 0:
            self.assertTrue(report["diagnostics"] or recorder["windows_discarded"],
                            f"launches have no count, and nothing says why: {ledger}; {stderr}")
        untimed = sum(device["launches_unplaced"] for device in report["device_time"])
        if untimed > recorder["activity_lost"]:
            self.assertTrue(report["diagnostics"],
                            f"{untimed} launches have no time, and nothing says why: {recorder}")

    def in_turn(self, cases):
        """`cases`: name to settings and arguments of the trainer."""
        for name, (settings, arguments) in cases.items():
            with self.subTest(name):
                self.check(settings, arguments)

    def test_every_fault(self):
        self.in_turn({fault.split("=")[0]: self.settings([fault]) for fault in all_faults()})

    def test_every_version_of_cupti(self):
        """Of the driver's major version; with a newer one CUPTI cannot start."""
        cases = {}
        for version in VERSIONS:
            major = version.split(".")[0]
            for driver in ("12.8", "13.0") if major == "12" else ("13.0", "12.8"):
                cases[f"CUPTI {version}, driver {driver}"] = (
                    {"SIMGPU_CUPTI_VERSION": version, "SIMGPU_DRIVER_VERSION": driver}, [])
            cases[f"CUPTI {version} cannot start"] = (
                {"SIMGPU_CUPTI_VERSION": version, "SIMGPU_FAULT": "cannot_start"}, [])
        self.in_turn(cases)

    def test_random_pairs(self):
        chance = random.Random(SEED)
        faults = all_faults()
        count = int(os.environ.get("FLOPINJ_FAULT_PAIRS", 12))
        pairs = [chance.sample(faults, 2) for _ in range(count)]
        for pair in pairs:
            with self.subTest(f"{pair[0]},{pair[1]}, seed {SEED}"):
                self.check(*self.settings(pair))


if __name__ == "__main__":
    harness.main()
