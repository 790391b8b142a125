"""flopinj doctor --count: kernels whose counts are known, on every simulated chip."""

import json
import re

import harness
from harness import FLOPINJ

CHIPS = ("GV100", "TU102", "GA100", "GA102", "AD102", "GH100", "GB100", "SG4")
# By theory, of a launch of 256 threads with 8 steps each: 8 warps, 2 groups of warps.
THREADS, STEPS = 256, 8
WARPS, GROUPS = THREADS // 32 * STEPS, THREADS // 128 * STEPS
EVERYWHERE = {
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
HOPPER = {
    **AMPERE,
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


class Count(harness.TestCase):
    def count(self, chip, expect=0, **settings):
        """The table's lines and the findings."""
        env = harness.library_path(SIMGPU_CHIP=chip, XDG_STATE_HOME=self.folder, **settings)
        done = harness.run([FLOPINJ, "doctor", "--count"], env)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        found = re.search(r"^findings: (.*)$", done.stdout, re.M)
        findings = json.loads(open(found[1]).read()) if found else None
        return done.stdout, findings

    def test_every_simulated_chip_agrees_with_theory(self):
        for chip in CHIPS:
            with self.subTest(chip):
                _, findings = self.count(chip)
                counted = {(row["name"], row["precision"]): row["counted"]
                           for row in findings["rows"] if row["verdict"] == "agrees"}
                self.assertEqual(counted, {**EVERYWHERE, **OF_CHIP[chip]})
                self.assertEqual({row["verdict"] for row in findings["rows"]} - {"agrees"},
                                 {"not on this chip"})
                self.assertEqual(findings["leave_out"], [])


if __name__ == "__main__":
    harness.main()
