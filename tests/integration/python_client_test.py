"""A CUDA program in Python on packages that none of us wrote: cuda-bindings for the driver, nvtx
for ranges."""

import sys
import unittest

import harness
from harness import CLIENTS, injected_environment, run

CLIENT = """
import ctypes, sys, threading
import nvtx
from cuda.bindings import driver

def ok(result):
    assert result[0] == driver.CUresult.CUDA_SUCCESS, result[0]
    return result[1] if len(result) == 2 else result[1:]

ok(driver.cuInit(0))
device = ok(driver.cuDeviceGet(0))
context = ok(driver.cuDevicePrimaryCtxRetain(device))
ok(driver.cuCtxSetCurrent(context))
module = ok(driver.cuModuleLoadData(open(sys.argv[1], 'rb').read()))
axpy, dot = (ok(driver.cuModuleGetFunction(module, name)) for name in (b'axpy', b'dot'))
x, y = (ok(driver.cuMemAlloc(4096)) for _ in range(2))
ok(driver.cuMemsetD32(x, 0, 1024)), ok(driver.cuMemsetD32(y, 0, 1024))
stream = ok(driver.cuStreamCreate(0))
P = None  # a handle of the bindings themselves

def launch_axpy(n):
    ok(driver.cuLaunchKernel(axpy, (n + 31) // 32, 1, 1, 32, 1, 1, 0, stream,
                             ((n, 2.0, x, y), (ctypes.c_int, ctypes.c_float, P, P)), 0))
def launch_dot(k):
    ok(driver.cuLaunchKernel(dot, 1, 1, 1, 1, 1, 1, 0, stream,
                             ((k, x, y), (ctypes.c_int, P, P)), 0))

@nvtx.annotate('backward', domain='framework')
def backward():
    for k in (7, 70): launch_dot(k)

for step in range(6):
    with nvtx.annotate('forward', color='blue'):
        launch_axpy(100)
        with nvtx.annotate('layer:one'):
            launch_dot(40)
    backward()
    worker = threading.Thread(target=lambda: (ok(driver.cuCtxSetCurrent(context)), launch_axpy(9)))
    worker.start(); worker.join()
ok(driver.cuStreamSynchronize(stream))
value = (ctypes.c_float * 1024)()
ok(driver.cuMemcpyDtoH(value, y, 4096))
print('done', value[0])
"""


class PythonClient(harness.TestCase):
    def test_driver_bindings_and_nvtx_package(self):
        done = run([sys.executable, "-c", CLIENT, CLIENTS / "client_kernels.ptx"],
                   injected_environment(self.trace))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("done"))
        report = harness.reduce(self.trace)
        self.assert_all_counted(report, 6 * 5)
        self.assertEqual(
            {name: int(p["flop"])
             for name, p in harness.by(report, "phases").items()},
            {"forward": 6 * 2 * (100 + 40), "backward": 6 * 2 * (7 + 70), "other": 6 * 2 * 9})
        self.assertEqual(report["figures"]["ratio"], (7 + 70) / (100 + 40))

    def test_the_client_runs_the_same_without_us(self):
        env = injected_environment(self.trace, by=())
        done = run([sys.executable, "-c", CLIENT, CLIENTS / "client_kernels.ptx"], env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(self.trace.exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
