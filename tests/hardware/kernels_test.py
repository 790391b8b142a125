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
# Kernel: program and kernel of readings.csv, its elements, and how many one thread of ours has.
READ = {
    "swish": ("swish", "SwishKernel", 10_000_000, 1),
    "swish_gradient": ("swish", "SwishGradientKernel", 10_000_000, 1),
    "sigmoid": ("pitch", "parallelSimple2DAccess", 227 * 227, 1),
    "triad": ("triad", "triad", 16_384, 1),
    "filter_row": ("convolutionSeparable", "conv_rows", 8192 * 8192, 1),
    "matrix_times_vector": ("tensorAccessor", "raw_accessor_kernel", 8192 * 8192, 64),
    "move": ("nbody", "update_particles", 16_000, 1),
    "complex_product": ("su3", "k_mat_nn", 32 ** 4 * 36, 1),
    "ranking_gradient": ("mrc", "MRCGradient2", 10_000_000, 1),
    "relax": ("laplace", "black_kernel", 1024 * 1024 // 2, 1),
    "add_carry": ("scan2", "blockAddition", 512 * 256, 1),
    "push": ("sheath", "pushParticle", 500_000, 1),
    "rewind": ("sheath", "rewindParticle", 500_000, 1),
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
        readings = {(row["program"], row["kernel"]): row for row in hardware.table("readings.csv")
                    if (row["kernel"], row["grid"]) != ("blockAddition", "2x1x1")}
        for kernel, (program, name, elements, each_thread) in READ.items():
            counts_of = {one: float(value) for one, value in
                         (word.split("=") for word in counts[kernel].split())}
            for precision in hardware.PRECISIONS:
                flop = hardware.flop(counts_of, precision) + sum(
                    n * int(sequences[one][f"{precision}_flop"]) for one, n in counts_of.items()
                    if one in sequences)
                read = float(readings[program, name][f"{precision}_flop"]) / elements
                with self.subTest(kernel, precision=precision):
                    self.assertAlmostEqual(flop / (ELEMENTS * each_thread), read,
                                           delta=0.002 * read)


if __name__ == "__main__":
    if NVCC is None or not (hardware.BUILD / "lib/flopinj/simgpu/libcudart.so.13").exists():
        print("skipped: there is no nvcc, or no stand-in for the CUDA runtime")
        sys.exit(77)
    unittest.main(verbosity=2)
