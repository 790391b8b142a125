"""NVTX in all its forms: the client launches axpy(i) in its i-th situation, so FLOP tell where a
launch was counted."""

import glob
import os
import sys
import unittest

import harness
from harness import CLIENTS, injected_environment, run


def exclusive_flop(report):
    """Path (names joined) to FLOP of launches made right there, not below."""
    return {row["range"]: row["flop"] for row in report["ranges_exclusive"]
            if row["range"] is not None and row["flop"]}


class Ranges(harness.TestCase):

    def test_every_kind_of_range(self):
        self.run_profiled([CLIENTS / "nvtx_client"])
        report = harness.reduce(self.trace)
        self.assert_all_counted(report, 40 + 10 + 3 + 2 + 5000)
        flop = exclusive_flop(report)
        expected = {
            "before cuInit": 2 * 1,
            "measured": 4 * 2 * 55,
            "outer/gr\u00fc\u00df": 2 * 2,
            "outer": 2 * 3,
            "library:registered": 2 * 5,
            "library:registered/inside": 2 * 6,
            "inside": 2 * 7,
            "process/worker": 2 * 8,
            "process": 2 * 9,
            "aten::mm, sizes = [[4, 4], [4, 4]]": 3 * 2 * 11,
        }
        for path, figure in expected.items():
            self.assertEqual(flop.get(path), figure, (path, sorted(flop)[:40]))
        # All of those sizes are in the formula. Per element three multiply-adds, and six others:
        # Kingma and Ba, algorithm 1.
        adam = next(o for o in report["operators"] if o["operator"] == "aten::_fused_adam_")
        self.assertEqual(int(adam["formula_flop"]), 200 * 1024 * 512 * (3 * 2 + 6), adam)
        self.assertEqual(int(adam["flop"]), 2 * 10, adam)
        self.assertEqual([row["names_cut"] for row in report["recorders"]], [1])
        # 5,000 names with a counter: at most 256 by name, all others together under their pattern.
        iterations = {p: f for p, f in flop.items() if p.startswith("iteration ")}
        self.assertLessEqual(len(iterations), 257)
        self.assertIn("iteration #", iterations)
        self.assertEqual(sum(iterations.values()), 5000 * 24)
        # Launches without a range: in no path, but in the totals.
        total = sum(harness.precisions(report).values())
        self.assertEqual(total - sum(flop.values()), 2 * (4 + 10))


V2_CLIENT = """
import ctypes, sys
from cuda.bindings import driver
v2 = ctypes.CDLL(sys.argv[1])
v2.nvtxRangePushA(b'version two')
err, = driver.cuInit(0)
err, device = driver.cuDeviceGet(0)
err, context = driver.cuDevicePrimaryCtxRetain(device)
driver.cuCtxSetCurrent(context)
err, module = driver.cuModuleLoad(sys.argv[2].encode())
assert err == 0, err
err, dot = driver.cuModuleGetFunction(module, b'dot')
err, x = driver.cuMemAlloc(64)
driver.cuMemsetD8(x, 0, 64)
for i in range(3):
    err, = driver.cuLaunchKernel(dot, 1, 1, 1, 1, 1, 1, 0, 0,
                                 ((21, x, x), (ctypes.c_int, None, None)), 0)
    assert err == 0, err
v2.nvtxRangePop()
"""


class VersionTwo(harness.TestCase):
    def test_library_of_nvtx_two(self):
        """libnvToolsExt.so.1, which older PyTorch and many programs link."""
        found = [
            f for p in sys.path
            for f in glob.glob(os.path.join(p, "nvidia/nvtx/lib/libnvToolsExt.so.1"))
        ]
        if not found:
            self.skipTest("the wheel nvidia-nvtx-cu12 is not installed")
        done = run([sys.executable, "-c", V2_CLIENT, found[0], CLIENTS / "client_kernels.ptx"],
                   injected_environment(self.trace))
        self.assertEqual(done.returncode, 0, done.stderr)
        report = harness.reduce(self.trace)
        self.assert_all_counted(report, 3)
        self.assertEqual(exclusive_flop(report), {"version two": 3 * 2 * 21})


class EntryPointOfVersionTwo(harness.TestCase):
    def test_it_refuses_what_it_does_not_know(self):
        """InitializeInjectionNvtx is handed a table function; a null table is answered with 0, not
        with a crash."""
        code = ("import ctypes, sys; lib = ctypes.CDLL(sys.argv[1]);"
                "table = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)(lambda i: None);"
                "print(lib.InitializeInjectionNvtx(table), lib.InitializeInjectionNvtx2(table),"
                "lib.InitializeInjectionNvtx2(None))")
        done = run([sys.executable, "-c", code, harness.LIBRARY],
                   injected_environment(self.trace, by=()))
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "0 0 0"), done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
