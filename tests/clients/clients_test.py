"""Programs of others, unmodified, on the simulated GPU: their results against NumPy on random
numbers, and FLOP by phase against theory."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ["FLOPINJ_BUILD"]).resolve()


def missing():
    """The first package that is not installed."""
    for name in ("cuda.core", "cuda.bindings", "numpy", "nvtx"):
        try:
            if importlib.util.find_spec(name) is None:
                return name
        except ModuleNotFoundError:
            return name
    return None


class CudaCore(unittest.TestCase):
    STEPS, SIZE = 30, 20

    def test_a_layer_that_nvrtc_compiled_learns(self):
        with tempfile.TemporaryDirectory(prefix="flopinj-clients-") as folder:
            trace = Path(folder) / "trace.pb"
            done = subprocess.run(
                [BUILD / "bin/flopinj", "run", "--simulate", "-o", trace, "--", sys.executable,
                 HERE / "cuda_core_training.py", str(self.STEPS), str(self.SIZE)],
                capture_output=True, text=True, timeout=240, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertLess(float(done.stdout.split()[-1]), 1e-4, done.stdout)
            report = json.loads(subprocess.run(
                [BUILD / "bin/flopreduce", "--format", "json", trace], capture_output=True,
                text=True, timeout=60, check=True).stdout)
        product, each = 2 * self.SIZE ** 3, self.SIZE ** 2
        theory = {"forward": product, "loss": each, "backward": 2 * product, "optimizer": 2 * each}
        self.assertEqual({row["phase"]: row["flop"] for row in report["phases"]},
                         {phase: self.STEPS * flop for phase, flop in theory.items()})
        self.assertEqual(report["figures"]["ratio"], 2)
        self.assertTrue(report["figures"]["simulated"])


if __name__ == "__main__":
    if name := missing():
        print(f"skipped: {name} is not installed; `tools/dev test-clients` brings it")
        sys.exit(77)
    unittest.main(verbosity=2)
