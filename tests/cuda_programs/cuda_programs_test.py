"""Programs that nvcc compiled, with the CUDA runtime as a shared library, on the simulated GPU:
they check their own results, and their FLOP are held against theory to the last one."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ["FLOPINJ_BUILD"]).resolve()
NVCC = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")

ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "FLOPINJ_BUILD"}

# What machine code adds, by ptxas's sequences: times, and FLOP of all of them.
MACHINE_CODE = {
    "fp32 division": (99, 99 * 10),
    "fp64 root": (99, 99 * 13),
    "fp32 sine or cosine, approximate": (99, 99),
    "fp32 atomic sum in shared memory": (99, 99),
}

# By number format, from the sources: a multiply-add counts 2, a sum of n values n - 1.
THEORY = {
    "basics": {"fp32": 2 * 1000 + (256 - 1), "fp64": 2 * 777},
    "memory": {"fp32": 500 + 30 * 7},
    "streams": {"fp64": 2 * 2 * 6 * 300},
    "graphs": {"fp32": 256 * (2 + 4 * 3 + 2 + 2)},
    "halves": {"fp16": 201 * (2 + 4 + 2)},
    "divisions": {"fp32": 99},
    "cooperative": {"fp32": 6 * 1000 + 4 * 16},
    "matrix": {"fp32": 2 * 64 ** 3, "tensor_fp16": 2 * 64 ** 3},
}


class Programs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="flopinj-cuda-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def build(self, name, *options):
        subprocess.run([NVCC, "-cudart", "shared", "-std=c++17", HERE / f"{name}.cu",
                        *(options or ("-arch=compute_80",)), "-o", self.folder / name], check=True,
                       timeout=240)

    def run_it(self, name):
        return subprocess.run(
            [BUILD / "bin/flopinj", "run", "-q", "--simulate", "--force", "-o", "trace.pb", "--",
             self.folder / name],
            cwd=self.folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=120,
            check=False)

    def check(self, name, *options):
        self.build(name, *options)
        done = self.run_it(name)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        report = json.loads(subprocess.run(
            [BUILD / "bin/flopreduce", "--format", "json", "trace.pb"], cwd=self.folder,
            capture_output=True, text=True, timeout=60, check=True).stdout)
        self.assertEqual({row["precision"]: row["flop"] for row in report["precisions"]},
                         THEORY[name])
        self.assertEqual(report["figures"]["coverage"], 1)
        return report

    def test_basics(self):
        self.check("basics")

    def test_every_way_in_which_nvcc_compresses(self):
        for mode in ("none", "speed", "size"):
            with self.subTest(mode):
                self.check("basics", "-arch=compute_75", f"--compress-mode={mode}")

    def test_machine_code_and_PTX_in_one_file(self):
        self.check("basics", "-arch=sm_80")

    def test_memory(self):
        self.check("memory")

    def test_streams(self):
        self.check("streams")

    def test_each_thread_has_a_default_stream(self):
        self.check("streams", "-arch=compute_80", "--default-stream", "per-thread")

    def test_graphs(self):
        self.check("graphs")

    def test_cooperative(self):
        """Five blocks of 64 threads that meet; instrumented code takes no room of theirs here."""
        self.check("cooperative")

    def test_one_half_counts_half_of_two(self):
        self.check("halves", "-arch=compute_90")

    def test_what_machine_code_adds_is_told_apart(self):
        report = self.check("divisions")
        self.assertEqual({row["operation"]: (row["operations"], row["flop"])
                          for row in report["machine_code"]}, MACHINE_CODE)
        total = sum(flop for _, flop in MACHINE_CODE.values())
        text = subprocess.run([BUILD / "bin/flopreduce", "trace.pb"], cwd=self.folder,
                              capture_output=True, text=True, timeout=60, check=True).stdout
        self.assertIn(f"machine code adds ~{total / 1000:.3f} kFLOP", text)

    def test_matrix(self):
        self.check("matrix")

    def test_what_is_not_simulated_is_said_once_by_name(self):
        self.build("refused")
        done = self.run_it("refused")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line for line in done.stderr.splitlines() if line.startswith("simgpu")],
                         ["simgpu: cudaMallocArray: arrays are not simulated",
                          "simgpu: cudaCreateTextureObject: textures are not simulated"])

    def test_a_kernel_without_PTX_is_named(self):
        self.build("matrix", "-gencode", "arch=compute_80,code=sm_80")
        done = self.run_it("matrix")
        self.assertEqual(done.returncode, 1)
        lines = [line for line in done.stderr.splitlines() if "without PTX" in line]
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertRegex(lines[0],
                         "^simgpu: kernel _Z7productiPKfS0_Pf .* capability 9.0: .*compute_90")


class Exports(unittest.TestCase):
    """Both libraries have every name that the headers declare, with its version."""

    def test_names(self):
        header = Path(NVCC).resolve().parents[1] / "include/cuda_runtime_api.h"
        if not header.exists():
            header = Path("/usr/local/cuda/include/cuda_runtime_api.h")
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", header.read_text(), flags=re.DOTALL)
        declared = set(re.findall(r"CUDARTAPI(?:_CDECL)?\s+(cuda\w+)\s*\(", text))
        declared -= {"cudaGetDeviceProperties"}  # of CUDA 12: with _v2
        self.assertGreater(len(declared), 250)
        for major in (12, 13):
            library = BUILD / f"lib/flopinj/simgpu/libcudart.so.{major}"
            listed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True,
                                    text=True, check=True).stdout
            exported = dict(line.split()[2].split("@@") for line in listed.splitlines()
                            if "@@" in line)
            self.assertEqual(declared - set(exported), set())
            self.assertEqual(set(exported.values()), {f"libcudart.so.{major}"})


if __name__ == "__main__":
    if NVCC is None:
        print("skipped: there is no nvcc; install CUDA's toolkit")
        sys.exit(77)
    if not (BUILD / "lib/flopinj/simgpu/libcudart.so.13").exists():
        print("skipped: the build has no stand-in for the CUDA runtime")
        sys.exit(77)
    unittest.main(verbosity=2)
