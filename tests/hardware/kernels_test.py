"""kernels.cu on the simulated GPU: FLOP of each element, with what machine code adds, are those
that a real GPU counted of the program that has the same arithmetic."""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import hardware

NVCC = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
ELEMENTS = 1 << 12
# Kernel: program and kernel of readings.csv, and its elements.
READ = {
    "swish": ("swish", "SwishKernel", 10_000_000),
    "swish_gradient": ("swish", "SwishGradientKernel", 10_000_000),
    "triad": ("triad", "triad", 16_384),
}


class Kernels(unittest.TestCase):
    def test_each_element_has_the_readings_flop(self):
        with tempfile.TemporaryDirectory(prefix="flopinj-hardware-") as scratch:
            program = Path(scratch) / "kernels"
            subprocess.run([NVCC, "-cudart", "shared", "-O3", "-std=c++17", "-arch=compute_86",
                            hardware.HERE / "kernels.cu", "-o", program], check=True, timeout=240)
            lines = hardware.run(program, "", Path(scratch))
        counts = {row[1]: row[5] for row in hardware.means("ours", lines)}
        self.assertEqual(set(counts), set(READ))
        sequences = {row["count"]: row for row in hardware.table("sequences.csv")
                     if row["chip"] == hardware.CHIP}
        readings = {(row["program"], row["kernel"]): row for row in hardware.table("readings.csv")}
        for kernel, (program, name, elements) in READ.items():
            each = {one: float(value) for one, value in
                    (word.split("=") for word in counts[kernel].split())}
            flop = hardware.flop(each, "fp32") + sum(
                n * int(sequences[one]["fp32_flop"]) for one, n in each.items()
                if one in sequences)
            read = float(readings[program, name]["fp32_flop"]) / elements
            self.assertAlmostEqual(flop / ELEMENTS / read, 1, delta=0.002, msg=kernel)


if __name__ == "__main__":
    if NVCC is None or not (hardware.BUILD / "lib/flopinj/simgpu/libcudart.so.13").exists():
        print("skipped: there is no nvcc, or no stand-in for the CUDA runtime")
        sys.exit(77)
    unittest.main(verbosity=2)
