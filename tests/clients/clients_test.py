"""Programs of others, unmodified, on the simulated GPU: their results against NumPy on random
numbers, and FLOP by phase against theory."""

import importlib.util
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
sys.path.insert(0, str(HERE.parent / "python"))
import staged  # noqa: E402

BUILD = Path(os.environ["FLOPINJ_BUILD"]).resolve()


def missing(*names):
    """The first package that is not installed."""
    for name in names:
        try:
            if importlib.util.find_spec(name) is None:
                return name
        except ModuleNotFoundError:
            return name
    return None


class Client(unittest.TestCase):
    packages = ()

    def setUp(self):
        if name := missing("cuda.core", "cuda.bindings", "numpy", "nvtx", *self.packages):
            self.skipTest(f"{name} is not installed; `tools/dev test-clients` brings it")

    def run_it(self, program, *arguments, options=(), **variables):
        """What it printed, its largest difference from NumPy, and its report."""
        with tempfile.TemporaryDirectory(prefix="flopinj-clients-") as folder:
            trace = Path(folder) / "trace.pb"
            done = subprocess.run(
                [BUILD / "bin/flopinj", "run", "--simulate", "-o", trace, "--", sys.executable,
                 HERE / program, *map(str, arguments)],
                env=os.environ | {"TRITON_CACHE_DIR": folder} | variables, capture_output=True,
                text=True, timeout=240, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            report = json.loads(subprocess.run(
                [BUILD / "bin/flopreduce", "--format", "json", *options, trace],
                capture_output=True, text=True, timeout=60, check=True).stdout)
        self.assertTrue(report["figures"]["simulated"])
        differences = re.findall(r"differs from NumPy by (\S+)", done.stdout)
        return done.stdout, [float(one) for one in differences], report

    def assert_phases(self, report, steps, theory):
        self.assertEqual({row["phase"]: row["flop"] for row in report["phases"]},
                         {phase: steps * flop for phase, flop in theory.items()})


class CudaCore(Client):
    STEPS, SIZE = 30, 20

    def test_a_layer_that_nvrtc_compiled_learns(self):
        printed, (worst,), report = self.run_it("cuda_core_training.py", self.STEPS, self.SIZE)
        self.assertLess(worst, 1e-4, printed)
        self.assert_learned(report, report["figures"]["ratio"])

    def assert_learned(self, report, ratio):
        product, each = 2 * self.SIZE ** 3, self.SIZE ** 2
        self.assert_phases(report, self.STEPS, {"forward": product, "loss": each,
                                                "backward": 2 * product, "optimizer": 2 * each})
        self.assertEqual(ratio, 2)


class FromInside(CudaCore):
    """The same program, recorded twice by one process, before and after CUDA has begun in it."""
    TWICE = """
import json, runpy, sys
import flopinj
del sys.argv[0]
for _ in range(2):
    with flopinj.record(simulate=True, budget=100, plan_wait_ms=60000) as run:
        runpy.run_path(sys.argv[0], run_name="__main__")
    print(json.dumps({key: run.report[key] for key in ("phases", "ratio")}))
"""

    def test_a_layer_that_nvrtc_compiled_learns(self):
        with tempfile.TemporaryDirectory(prefix="flopinj-clients-") as folder:
            staged.stage(folder, BUILD)
            program = Path(folder) / "twice.py"
            program.write_text(self.TWICE)
            done = subprocess.run(
                [sys.executable, program, HERE / "cuda_core_training.py", str(self.STEPS),
                 str(self.SIZE)],
                env=os.environ | {"PYTHONPATH": folder}, capture_output=True, text=True,
                timeout=240, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        reports = [json.loads(line) for line in done.stdout.splitlines() if line[0] == "{"]
        self.assertEqual(len(reports), 2)
        for report in reports:
            self.assert_learned(report, report["ratio"])


class Numba(Client):
    packages = ("numba", "numba_cuda", "llvmlite")
    STEPS = 20

    def test_a_network_learns(self):
        printed, (worst,), report = self.run_it("numba_training.py", self.STEPS)
        self.assertLess(worst, 1e-4, printed)
        first, last = map(float, re.search(r"loss from (\S+) to (\S+);", printed).groups())
        self.assertLess(last, first / 2)
        rows, inputs, hidden, outputs = 32, 24, 40, 16
        one, two = 2 * rows * inputs * hidden, 2 * rows * hidden * outputs
        # Of each output a difference and its square; of each weight a product that is subtracted.
        self.assert_phases(report, self.STEPS, {
            "forward": one + two, "backward": one + 2 * two, "loss": 2 * rows * outputs,
            "optimizer": 2 * (inputs * hidden + hidden * outputs)})

    def test_its_own_reductions(self):
        rounds, sizes = 40, (1, 31, 100, 129, 5000)
        printed, (worst,), report = self.run_it("numba_reduce.py", rounds, *sizes, options=[
            f"--phase={phase}={phase}" for phase in ("sum", "largest", "count")])
        self.assertLess(worst, 1e-6, printed)
        # The numbers and the 0 to begin with are one sum, however blocks and warps share them.
        self.assert_phases(report, rounds, {"sum": sum(sizes), "largest": 0, "count": 0})


class Triton(Client):
    packages = ("triton",)
    STEPS = 10

    def test_attention_by_products_of_warps(self):
        self.assert_attention(80)

    def test_attention_by_products_of_groups_of_warps(self):
        self.assert_attention(90)

    def assert_attention(self, capability):
        phases = ("scores", "softmax", "values")
        printed, worst, report = self.run_it(
            "triton_attention.py", self.STEPS, capability,
            options=[f"--phase={phase}={phase}" for phase in phases])
        for difference, most in zip(worst, (1e-6, 1e-3, 1e-3)):  # f32; f16 has 11 bits
            self.assertLess(difference, most, printed)
        self.assertEqual(len(worst), 3)
        tokens, width, block = 192, 64, 256
        product = 2 * tokens * tokens * width
        # A row's largest number counts nothing, its quotients neither. Of each element of a block a
        # difference and a product in the exponential; then the 32 lanes of a warp add up what each
        # has of the block, and among them in five steps.
        softmax = tokens * (2 * block + 32 * (block // 32 - 1 + 5))
        self.assert_phases(report, self.STEPS, {
            "scores": product + tokens * tokens, "softmax": softmax, "values": product})
        self.assertEqual(
            {row["precision"]: row["flop"] for row in report["precisions"]},
            {"tensor_bf16": self.STEPS * product, "tensor_fp16": self.STEPS * product,
             "fp32": self.STEPS * (tokens * tokens + softmax)})


class Tinygrad(Client):
    packages = ("tinygrad", "nvidia.cu13")
    STEPS = 20

    def test_weights_are_learned(self):
        libraries = importlib.util.find_spec("nvidia.cu13").submodule_search_locations[0] + "/lib"
        printed, (worst,), report = self.run_it("tinygrad_training.py", self.STEPS, DEV="CUDA",
                                                LD_LIBRARY_PATH=libraries)
        self.assertLess(worst, 1e-5, printed)
        rows, inputs, outputs = 64, 48, 32
        # Sixteen threads share each sum, and their parts are added up.
        self.assert_phases(report, self.STEPS, {
            "forward": rows * outputs * (2 * inputs + 16), "loss": rows * outputs,
            "backward": inputs * outputs * (2 * rows + 16), "optimizer": 2 * inputs * outputs})


class Taichi(Client):
    packages = ("taichi",)
    STEPS, SIZE = 20, 48

    def test_a_membrane_relaxes(self):
        printed, (worst,), report = self.run_it(
            "taichi_relaxation.py", self.STEPS, self.SIZE,
            options=["--phase=relax=relax", "--phase=take=take"])
        self.assertLess(worst, 1e-6, printed)
        # Three sums and a product of each inner point.
        phases = {row["phase"]: row["flop"] for row in report["phases"]}
        self.assertEqual((phases["relax"], phases["take"]),
                         (self.STEPS * 4 * (self.SIZE - 2) ** 2, 0))


class FatBinaries(Client):
    """Of nvcc: what of them can be read, and what is said of the rest."""
    LOAD = """
import sys
from cuda.bindings import driver
driver.cuInit(0)
driver.cuCtxSetCurrent(driver.cuDevicePrimaryCtxRetain(0)[1])
for path in sys.argv[1:]:
    error, module = driver.cuModuleLoadData(open(path, "rb").read())
    if error == 0:
        error, _ = driver.cuModuleGetFunction(module, b"nothing")
    print(error.name)
"""
    ALONE = "simgpu: this program carries machine code only: it needs a GPU\n"

    def setUp(self):
        super().setUp()
        self.nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
        if self.nvcc is None:
            self.skipTest("there is no nvcc; install CUDA's toolkit")
        folder = tempfile.TemporaryDirectory(prefix="flopinj-clients-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "k.cu").write_text('extern "C" __global__ void nothing() {}\n')

    def compiled(self, name, code, *options):
        subprocess.run(
            [self.nvcc, "-fatbin", *options, f"-gencode=arch=compute_80,code=[{code}]", "k.cu",
             "-o", name], cwd=self.folder, check=True, timeout=120)
        return self.folder / name

    def loaded(self, *images):
        done = subprocess.run(
            [BUILD / "bin/flopinj", "run", "--simulate", "-o", self.folder / "trace.pb", "--force",
             "--", sys.executable, "-c", self.LOAD, *images],
            capture_output=True, text=True, timeout=120, check=True)
        said = [line for line in done.stderr.splitlines(True) if line.startswith("simgpu")]
        return done.stdout.split(), "".join(said)

    def test_what_can_be_read(self):
        refused, fine = "CUDA_ERROR_NO_BINARY_FOR_GPU", "CUDA_SUCCESS"
        both = self.compiled("both", "compute_80,sm_80", "-no-compress")
        machine = self.compiled("machine", "sm_80", "-no-compress")
        small = self.compiled("small", "compute_80")
        self.assertEqual(self.loaded(both), ([fine], ""))
        self.assertEqual(self.loaded(machine, machine), ([refused, refused], self.ALONE))
        self.assertEqual(self.loaded(machine, both), ([refused, fine], ""))
        self.assertEqual(self.loaded(small), ([fine], ""))


if __name__ == "__main__":
    if name := missing("cuda.core", "cuda.bindings", "numpy", "nvtx"):
        print(f"skipped: {name} is not installed; `tools/dev test-clients` brings it")
        sys.exit(77)
    unittest.main(verbosity=2)
