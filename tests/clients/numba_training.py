"""A network of two layers that learns by gradient descent, in kernels that Numba compiles, as its
documentation writes them. Usage: numba_training.py STEPS"""

import sys

import numpy as np
import nvtx
from numba import cuda, float32

TILE = 8
ROWS, INPUTS, HIDDEN, OUTPUTS = 32, 24, 40, 16


@cuda.jit(device=True)
def multiply(a, b, c):
    """c = a b, of multiples of TILE, in tiles that a block shares."""
    left = cuda.shared.array((TILE, TILE), float32)
    right = cuda.shared.array((TILE, TILE), float32)
    column, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for tile in range(a.shape[1] // TILE):
        left[y, x] = a[row, tile * TILE + x]
        right[y, x] = b[tile * TILE + y, column]
        cuda.syncthreads()
        for k in range(TILE):
            total += left[y, k] * right[k, x]
        cuda.syncthreads()
    c[row, column] = total


@cuda.jit
def product(a, b, c):
    multiply(a, b, c)


@cuda.jit
def product_of_transposed(a, b, c):
    multiply(a.T, b, c)


@cuda.jit
def product_with_transposed(a, b, c):
    multiply(a, b.T, c)


@cuda.jit
def rectify(h):
    i, j = cuda.grid(2)
    if i < h.shape[0] and j < h.shape[1]:
        h[i, j] = max(h[i, j], float32(0))


@cuda.jit
def where_positive(dh, h):
    i, j = cuda.grid(2)
    if i < h.shape[0] and j < h.shape[1] and h[i, j] <= 0:
        dh[i, j] = 0


@cuda.jit
def squared_error(y, target, dy, loss):
    i, j = cuda.grid(2)
    if i < y.shape[0] and j < y.shape[1]:
        difference = y[i, j] - target[i, j]
        dy[i, j] = difference
        cuda.atomic.add(loss, 0, difference * difference)


@cuda.jit
def descend(w, dw, rate):
    i, j = cuda.grid(2)
    if i < w.shape[0] and j < w.shape[1]:
        w[i, j] -= rate * dw[i, j]


def matmul(kernel, a, b, c):
    rows, columns = c.shape
    kernel[(columns // TILE, rows // TILE), (TILE, TILE)](a, b, c)


def each(kernel, array, *others):
    grid = tuple((n + 15) // 16 for n in array.shape)
    kernel[grid, (16, 16)](array, *others)


def expected(steps, rate, x, target, w1, w2):
    losses = []
    for _ in range(steps):
        h = np.maximum(x @ w1, 0)
        dy = h @ w2 - target
        losses.append((dy * dy).sum())
        dh = np.where(h > 0, dy @ w2.T, 0)
        w1, w2 = w1 - rate * (x.T @ dh), w2 - rate * (h.T @ dy)
    return w1, w2, losses


def main(steps):
    random = np.random.default_rng(2025)
    rate = np.float32(1e-3)
    shapes = ((ROWS, INPUTS), (ROWS, OUTPUTS), (INPUTS, HIDDEN), (HIDDEN, OUTPUTS))
    host = [random.standard_normal(shape, dtype=np.float32) for shape in shapes]
    host[2:] = [w / np.float32(np.sqrt(len(w))) for w in host[2:]]
    x, target, w1, w2 = map(cuda.to_device, host)
    h, dh = (cuda.device_array((ROWS, HIDDEN), np.float32) for _ in range(2))
    y, dy = (cuda.device_array((ROWS, OUTPUTS), np.float32) for _ in range(2))
    dw1, dw2 = cuda.device_array_like(w1), cuda.device_array_like(w2)
    losses = []
    for _ in range(steps):
        with nvtx.annotate("forward"):
            matmul(product, x, w1, h)
            each(rectify, h)
            matmul(product, h, w2, y)
        with nvtx.annotate("loss"):
            loss = cuda.to_device(np.zeros(1, np.float32))
            each(squared_error, y, target, dy, loss)
        with nvtx.annotate("backward"):
            matmul(product_of_transposed, h, dy, dw2)
            matmul(product_with_transposed, dy, w2, dh)
            each(where_positive, dh, h)
            matmul(product_of_transposed, x, dh, dw1)
        with nvtx.annotate("optimizer"):
            each(descend, w1, dw1, rate)
            each(descend, w2, dw2, rate)
        losses.append(loss.copy_to_host()[0])

    got = w1.copy_to_host(), w2.copy_to_host(), losses
    right = expected(steps, float(rate), *(array.astype(np.float64) for array in host))
    worst = max(abs(np.subtract(a, b)).max() / abs(np.asarray(b)).max() for a, b in zip(got, right))
    print(f"loss from {losses[0]:.1f} to {losses[-1]:.1f}; differs from NumPy by {worst:.1e}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
