"""Frameworks of the CUDA runtime, unmodified, where there is no GPU: with and without the simulated
one they end as without the profiler, and one line says why nothing was recorded."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ["FLOPINJ_BUILD"]).resolve()
FLOPINJ = BUILD / "bin/flopinj"
HAS_DRIVER = subprocess.run([sys.executable, "-c", "import ctypes; ctypes.CDLL('libcuda.so.1')"],
                            capture_output=True, check=False).returncode == 0
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if not name.endswith("_INJECTION64_PATH") and name != "FLOPINJ_BUILD"}

# What each prints on its last line depends on the GPU only.
PROGRAMS = {
    "torch": """
import torch
print(torch.cuda.is_available(), torch.ones(4).sum().item())
""",
    "jax": """
import jax, jax.numpy
print(jax.devices()[0].platform, jax.numpy.ones(4).sum().item())
""",
    "cupy": """
import cupy
try:
    print(cupy.arange(4).sum())
except cupy.cuda.runtime.CUDARuntimeError:
    print("no GPU")
""",
    "warp": """
import warp
warp.init()
try:
    print(warp.ones(4, dtype=float, device="cuda").numpy().sum())
except RuntimeError:
    print("no GPU")
""",
}


class Runtime(unittest.TestCase):
    def setUp(self):
        if HAS_DRIVER:
            self.skipTest("there is a driver here")
        folder = tempfile.TemporaryDirectory(prefix="flopinj-runtime-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_it(self, package, *before):
        """Its last line, and what is said around it."""
        done = subprocess.run([*before, sys.executable, "-c", PROGRAMS[package]], cwd=self.folder,
                              env=ENVIRONMENT, capture_output=True, text=True, timeout=300,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        ours = [line for line in done.stderr.splitlines()
                if line.startswith(("flopinj:", "simgpu:"))]
        return done.stdout.splitlines()[-1], ours

    def check(self, package):
        if importlib.util.find_spec(package) is None:
            self.skipTest(f"{package} is not installed; `tools/dev test-frameworks` brings it")
        alone, _ = self.run_it(package)
        without, lines = self.run_it(package, FLOPINJ, "run", "-o", "none.pb", "--")
        self.assertEqual(without, alone)
        self.assertEqual(len(lines), 1, lines)
        self.assertRegex(lines[0], "^flopinj: no NVIDIA driver on this machine")
        simulated, lines = self.run_it(package, FLOPINJ, "run", "--simulate", "-o", "sim.pb", "--")
        self.assertEqual(simulated, alone)
        self.assertEqual(len(lines), 1, lines)
        self.assertRegex(lines[0], "CUDA runtime.* need.* a GPU")
        self.assertNotRegex(lines[0], "environment|Next:")

    def test_torch(self):
        self.check("torch")

    def test_jax(self):
        self.check("jax")

    def test_cupy(self):
        self.check("cupy")

    def test_warp(self):
        self.check("warp")


if __name__ == "__main__":
    if not any(map(importlib.util.find_spec, PROGRAMS)):
        print("skipped: no framework is installed; `tools/dev test-frameworks` brings them")
        sys.exit(77)
    unittest.main(verbosity=2)
