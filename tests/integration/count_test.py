"""flopinj doctor --count: kernels whose counts are known, on every simulated chip."""

import getpass
import json
import os
import re

import harness
from harness import BUILD, FLOPINJ

CHIPS = ("GV100", "TU102", "GA100", "GA102", "AD102", "GH100", "GB100", "SG4")
# By theory, of a launch of 256 threads with 8 steps each: 8 warps, 2 groups of warps.
THREADS, STEPS = 256, 8
WARPS, GROUPS = THREADS // 32 * STEPS, THREADS // 128 * STEPS
EVERYWHERE = {
    ("graph", "fp32"): THREADS * STEPS * 2,
    ("beside one that waits", "fp32"): THREADS * STEPS * 2,
    ("1,024 x 64", "fp32"): 2 * 1024 * STEPS * 48,
    ("1,024 x 64, counted", "fp32"): 2 * 1024 * STEPS * 48,
    ("FADD", "fp32"): THREADS * STEPS,
    ("FMUL", "fp32"): THREADS * STEPS,
    ("FFMA", "fp32"): THREADS * STEPS * 2,
    ("DFMA", "fp64"): THREADS * STEPS * 2,
    ("HFMA2", "fp16"): THREADS * STEPS * 4,
}
FP16 = {("wmma fp16", "tensor_fp16"): WARPS * 2 * 16 * 16 * 16}
AMPERE = {
    **FP16,
    ("mma bf16", "tensor_bf16"): WARPS * 2 * 16 * 8 * 16,
    ("mma tf32", "tensor_tf32"): WARPS * 2 * 16 * 8 * 8,
    ("mma fp64", "tensor_fp64"): WARPS * 2 * 8 * 8 * 4,
    ("mma int8", "tensor_int8"): WARPS * 2 * 16 * 8 * 32,
}
ADA = {**AMPERE, ("mma fp8", "tensor_fp8"): WARPS * 2 * 16 * 8 * 32}
GROUP = 2 * STEPS * 2 * 64 * 64 * 16  # of each group of warps in a block
HOPPER = {
    **AMPERE,
    ("384 x 168", "tensor_fp16"): 3 * GROUP,
    ("384 x 168", "fp32"): 2 * 384 * 80,
    ("384 x 168, counted", "tensor_fp16"): 3 * GROUP,
    ("384 x 168, counted", "fp32"): 2 * 384 * 80,
    ("setmaxnreg", "tensor_fp16"): 2 * GROUP,
    ("setmaxnreg", "fp32"): 2 * 256 * 80,
    ("setmaxnreg, counted", "tensor_fp16"): 2 * GROUP,
    ("setmaxnreg, counted", "fp32"): 2 * 256 * 80,
    ("wgmma fp16", "tensor_fp16"): GROUPS * 2 * 64 * 16 * 16,
    ("wgmma bf16", "tensor_bf16"): GROUPS * 2 * 64 * 16 * 16,
    ("wgmma tf32", "tensor_tf32"): GROUPS * 2 * 64 * 16 * 8,
    ("wgmma fp8", "tensor_fp8"): GROUPS * 2 * 64 * 16 * 32,
    ("wgmma int8", "tensor_int8"): GROUPS * 2 * 64 * 16 * 32,
}
OF_CHIP = {
    "GV100": FP16,
    "TU102": {("wmma fp16", "tensor_fp16_bf16_tf32"): WARPS * 2 * 16 * 16 * 16},
    "GA100": AMPERE, "GA102": AMPERE, "AD102": ADA, "GH100": HOPPER, "GB100": AMPERE,
    "SG4": HOPPER,
}

# Faults that change a count, or take it away: the chip, what the lines say, and which kernels'.
INSTRUCTIONS = ["FADD", "FMUL", "FFMA", "DFMA", "HFMA2", "graph", "beside one that waits"]
VOLTA = [*INSTRUCTIONS, "wmma fp16", "copy", "1,024 x 64"]
FULL = ["1,024 x 64", "384 x 168", "setmaxnreg"]  # blocks that take all registers
TENSOR = [name for name, of in HOPPER if of.startswith("tensor_") and "counted" not in name]
TRIED = "does not work here"
FAULTS = {
    "operations_halved": ("GH100", "DIFFERS", TENSOR),
    "instructions_doubled": ("GV100", "DIFFERS", [*INSTRUCTIONS, "1,024 x 64"]),
    "dram_halved": ("GV100", "DIFFERS", ["copy"]),
    "instrumented_registers=64": ("GV100", TRIED, ["1,024 x 64, counted"]),
    "invalid_times=20": ("GV100", "NOT COUNTED", ["copy"]),
    "drop_activity=2": ("GV100", "NOT COUNTED", ["copy"]),
    "take_activity=20": ("GV100", "NOT COUNTED", ["copy"]),
    "keep_buffers=1": ("GV100", "NOT COUNTED", ["copy"]),
    "decode_fails": ("GV100", "NOT COUNTED", VOLTA),
    "enable_fails": ("GV100", "NOT COUNTED", VOLTA),
    "hardware_busy": ("GV100", "NOT COUNTED", VOLTA),
    "no_privileges": ("GV100", "NOT COUNTED", VOLTA),
    "unsupported_device": ("GV100", "NOT COUNTED", VOLTA),
    "launch_failure=20": ("GV100", "FAILED", VOLTA),
    "second_subscriber": ("GV100", "FAILED", VOLTA),
}


class CountCase(harness.TestCase):
    def count(self, chip, expect=0, **settings):
        """The table's lines and the findings."""
        env = harness.library_path(SIMGPU_CHIP=chip, XDG_STATE_HOME=self.folder, **settings)
        done = harness.run([FLOPINJ, "doctor", "--count"], env)
        if expect is not None:
            self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        found = re.search(r"^findings: (.*)$", done.stdout, re.M)
        findings = json.loads(open(found[1]).read()) if found else None
        return done.stdout, findings

    def named(self, stdout, verdict):
        return [line[:24].strip() for line in stdout.splitlines() if line.endswith("  " + verdict)]


class Count(CountCase):
    def test_every_simulated_chip_agrees_with_theory(self):
        for chip in CHIPS:
            with self.subTest(chip):
                _, findings = self.count(chip)
                counted = {(row["name"], row["of"]): row["counted"]
                           for row in findings["rows"]
                           if row["verdict"] == "agrees" and row["name"] != "copy"}
                self.assertEqual(counted, {**EVERYWHERE, **OF_CHIP[chip]})
                self.assertEqual({row["verdict"] for row in findings["rows"]},
                                 {"agrees", "not on this chip"})
                self.assertEqual(findings["leave_out"], [])
                shown = {"registers"}
                if OF_CHIP[chip] is HOPPER:
                    shown.add("setmaxnreg")
                self.assertEqual(set(findings["use"]), shown)

    def test_full_blocks_have_a_bound_where_instrumented_code_may_take_room(self):
        """As on hardware. Whether it takes registers is not known before the lines `counted`."""
        stdout, findings = self.count("GH100", SIMGPU_FAULT="instrumented_memory=1")
        self.assertEqual(self.named(stdout, "within its bound"), FULL)
        theory = {**EVERYWHERE, **HOPPER}
        for row in findings["rows"]:
            if row["verdict"] == "within its bound":
                self.assertGreater(row["counted"], theory[row["name"], row["of"]])
        self.assertEqual(set(findings["use"]), {"registers", "setmaxnreg"})

    def test_every_fault_that_changes_a_count_is_found(self):
        for fault, (chip, verdict, names) in FAULTS.items():
            with self.subTest(fault):
                expect = 4 if fault == "no_privileges" else 0 if verdict == TRIED else 1
                stdout, _ = self.count(chip, expect=expect, SIMGPU_FAULT=fault)
                self.assertEqual(sorted(self.named(stdout, verdict)), sorted(names), stdout)

    def test_a_jobs_environment_does_not_matter(self):
        self.count("GV100", FLOPINJ_MODE="timing", FLOPINJ_OUTPUT="-", RANK=3, WORLD_SIZE=8,
                   FLOPINJ_LAUNCH_COUNT=1)

    def test_findings_name_nothing_of_the_machine(self):
        for fault in ("", "operations_halved", "hardware_busy"):
            _, findings = self.count("GV100", expect=None, SIMGPU_FAULT=fault)
            text = json.dumps(findings)
            for own in (os.uname().nodename, "/", getpass.getuser(), str(os.getpid())):
                self.assertNotIn(own, text)


class Recordings(CountCase):
    """What the library makes of findings."""

    def report(self, *rows, **settings):
        rows = rows or ("FFMA", "mma bf16")
        program = [BUILD / "lib/flopinj/known_kernels/known_kernels", *rows]
        self.run_profiled(program, FLOPINJ_FORCE=1, XDG_STATE_HOME=self.folder, **settings)
        return harness.reduce(self.trace)

    def test_counters_that_were_wrong_are_left_out(self):
        self.count("GH100", expect=1, SIMGPU_FAULT="operations_halved")
        report = self.report(SIMGPU_FAULT="operations_halved")
        self.assertEqual(harness.precisions(report), {"fp32": 100 * EVERYWHERE["FFMA", "fp32"]})
        self.assertEqual(harness.reasons(report, "unmeasured"), {"unavailable:tensor_bf16": 100})
        self.assertIn("counters.wrong.tensor_bf16", harness.codes(report))
        self.assertIn("counters.checked", harness.codes(report))
        done = harness.run([harness.FLOPINJ, "run", "--simulate", "--force", "-o", self.trace, "--",
                            BUILD / "lib/flopinj/known_kernels/known_kernels", "FFMA", "mma bf16"],
                           harness.library_path(XDG_STATE_HOME=self.folder, FLOPINJ_BUDGET="none",
                                                FLOPINJ_PLAN_WAIT_MS=60_000,
                                                SIMGPU_FAULT="operations_halved"))
        self.assertRegex(done.stderr, r"recorded 200 launches, counters read for kernels of \S+ %")

    def test_instructions_that_were_wrong_are_bounded(self):
        self.count("GH100", expect=1, SIMGPU_FAULT="instructions_doubled")
        report = self.report(SIMGPU_FAULT="instructions_doubled")
        self.assertEqual(report["figures"]["bounded_launches"], 200)

    def test_findings_are_of_one_chip_driver_and_cupti(self):
        self.count("GH100", expect=1, SIMGPU_FAULT="operations_halved")
        for other in ({"SIMGPU_CHIP": "GA100"}, {"SIMGPU_CUPTI_VERSION": "13.1"},
                      {"SIMGPU_DRIVER_VERSION": "13.1"}):
            with self.subTest(other):
                report = self.report(**other)
                self.assert_all_counted(report, 200)
                self.assertEqual(harness.codes(report), [])

    def test_a_file_that_is_not_understood_is_said_once_and_ignored(self):
        self.count("GH100", expect=1, SIMGPU_FAULT="operations_halved")
        file = next((self.folder / "flopinj").glob("*.json"))
        whole = file.read_text()
        for name, text in (("cut", whole[:200]), ("empty", ""), ("large", whole + " " * 300_000)):
            with self.subTest(name):
                file.write_text(text)
                done = self.run_profiled(
                    [BUILD / "lib/flopinj/known_kernels/known_kernels", "FFMA"], FLOPINJ_FORCE=1,
                    XDG_STATE_HOME=self.folder)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertIn(f"{file.name} is not understood", done.stderr)
                self.assert_all_counted(harness.reduce(self.trace), 100)


if __name__ == "__main__":
    harness.main()
