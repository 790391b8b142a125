"""Weights that tinygrad learns, in kernels that it writes and NVRTC compiles: with DEV=CUDA.
Usage: tinygrad_training.py STEPS"""

import sys

import numpy as np
import nvtx
from tinygrad import Tensor, TinyJit

ROWS, INPUTS, OUTPUTS, RATE = 64, 48, 32, 0.01


@TinyJit
def forward(x, w):
    return (x @ w).realize()


@TinyJit
def difference(y, target):
    return (y - target).realize()


@TinyJit
def gradient(x, dy):
    return (x.T @ dy).realize()


@TinyJit
def descend(w, dw):
    return w.assign(w - RATE * dw).realize()


def main(steps):
    random = np.random.default_rng(2025)
    shapes = ((ROWS, INPUTS), (ROWS, OUTPUTS), (INPUTS, OUTPUTS))
    host = [random.standard_normal(shape, dtype=np.float32) for shape in shapes]
    x, target, w = (Tensor(array).realize() for array in host)
    for _ in range(steps):
        with nvtx.annotate("forward"):
            y = forward(x, w)
        with nvtx.annotate("loss"):
            dy = difference(y, target)
        with nvtx.annotate("backward"):
            dw = gradient(x, dy)
        with nvtx.annotate("optimizer"):
            descend(w, dw)

    x64, target64, w64 = (array.astype(np.float64) for array in host)
    for _ in range(steps):
        w64 = w64 - RATE * (x64.T @ (x64 @ w64 - target64))
    print(f"differs from NumPy by {abs(w.numpy() - w64).max() / abs(w64).max():.1e}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
