"""A layer y = x w that learns by gradient descent, in kernels that NVRTC compiles: a program of
cuda-core as its documentation writes them. Usage: cuda_core_training.py STEPS SIZE"""

import sys

import numpy as np
import nvtx
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

SOURCE = r"""
// c (n x n) = a b, of which either may be read by columns.
extern "C" __global__ void product(int n, const float* a, bool a_by_columns, const float* b,
                                   bool b_by_columns, float* c) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n || column >= n) return;
  float sum = 0;
  for (int k = 0; k < n; ++k)
    sum = fmaf(a_by_columns ? a[k * n + row] : a[row * n + k],
               b_by_columns ? b[column * n + k] : b[k * n + column], sum);
  c[row * n + column] = sum;
}
// dy = y - target
extern "C" __global__ void difference(int n, const float* y, const float* target, float* dy) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n * n) dy[i] = y[i] - target[i];
}
extern "C" __global__ void descend(int n, float rate, const float* dw, float* w) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n * n) w[i] = fmaf(-rate, dw[i], w[i]);
}
"""


def checked(answer):
    error, *values = answer
    assert error == driver.CUresult.CUDA_SUCCESS, error
    return values[0] if values else None


def on_device(array):
    address = checked(driver.cuMemAlloc(array.nbytes))
    checked(driver.cuMemcpyHtoD(address, array.ctypes.data, array.nbytes))
    return address


def on_host(address, like):
    array = np.empty_like(like)
    checked(driver.cuMemcpyDtoH(array.ctypes.data, address, array.nbytes))
    return array


def main(steps, n):
    device = Device()
    device.set_current()
    stream = device.create_stream()
    options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}")
    module = Program(SOURCE, code_type="c++", options=options).compile("ptx")
    product, difference, descend = map(module.get_kernel, ("product", "difference", "descend"))
    random = np.random.default_rng(2025)
    x, w, target = (random.standard_normal((n, n), dtype=np.float32) for _ in range(3))
    rate = np.float32(0.1 / n)
    at = {name: np.uint64(int(on_device(array))) for name, array in
          {"x": x, "w": w, "target": target, "y": x, "dy": x, "dw": x, "dx": x}.items()}
    tiles, threads = LaunchConfig(grid=((n + 7) // 8,) * 2, block=(8, 8)), np.int32(n)
    elements = LaunchConfig(grid=(n * n + 127) // 128, block=128)
    yes, no = np.bool_(True), np.bool_(False)
    for _ in range(steps):
        with nvtx.annotate("forward"):
            launch(stream, tiles, product, threads, at["x"], no, at["w"], no, at["y"])
        with nvtx.annotate("loss"):
            launch(stream, elements, difference, threads, at["y"], at["target"], at["dy"])
        with nvtx.annotate("backward"):
            launch(stream, tiles, product, threads, at["x"], yes, at["dy"], no, at["dw"])
            launch(stream, tiles, product, threads, at["dy"], no, at["w"], yes, at["dx"])
        with nvtx.annotate("optimizer"):
            launch(stream, elements, descend, threads, rate, at["dw"], at["w"])
        stream.sync()

    expected = w.astype(np.float64)
    for _ in range(steps):
        dy = x @ expected - target
        dx = dy @ expected.T
        expected = expected - np.float64(rate) * (x.T.astype(np.float64) @ dy)
    worst = max(abs(on_host(int(at[name]), x) - right).max() / abs(right).max()
                for name, right in {"w": expected, "dx": dx}.items())
    print(f"differs from NumPy by {worst:.1e}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
