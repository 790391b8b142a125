"""The start of a Python program that launches kernels by the driver: begin(), then launch(n)."""

DRIVER = """
import ctypes, sys
import flopinj
from cuda.bindings import driver

def ok(result):
    assert result[0] == driver.CUresult.CUDA_SUCCESS, result[0]
    return result[1] if len(result) == 2 else result[1:]

def begin():
    global axpy, x, y
    ok(driver.cuInit(0))
    ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(ok(driver.cuDeviceGet(0))))))
    module = ok(driver.cuModuleLoadData(open(sys.argv[1], 'rb').read()))
    axpy = ok(driver.cuModuleGetFunction(module, b'axpy'))
    x, y = (ok(driver.cuMemAlloc(4096)) for _ in range(2))
    ok(driver.cuMemsetD32(x, 0, 1024)), ok(driver.cuMemsetD32(y, 0, 1024))

def launch(n):  # 2 n FLOP
    ok(driver.cuLaunchKernel(axpy, (n + 31) // 32, 1, 1, 32, 1, 1, 0, 0,
                             ((n, 2.0, x, y), (ctypes.c_int, ctypes.c_float, None, None)), 0))
"""
