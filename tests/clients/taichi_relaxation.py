"""A membrane relaxes by Jacobi's method, in kernels that Taichi compiles, as its documentation
writes them. Usage: taichi_relaxation.py STEPS SIZE"""

import sys

import numpy as np
import nvtx
import taichi as ti


def main(steps, size):
    ti.init(arch=ti.cuda, offline_cache=False)
    assert ti.cfg.arch == ti.cuda, "Taichi fell back to another architecture"
    u, new = ti.field(ti.f32), ti.field(ti.f32)
    ti.root.dense(ti.ij, (size, size)).place(u, new)

    @ti.kernel
    def relax():
        for i, j in ti.ndrange((1, size - 1), (1, size - 1)):
            new[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])

    @ti.kernel
    def take():
        for i, j in ti.ndrange((1, size - 1), (1, size - 1)):
            u[i, j] = new[i, j]

    start = np.random.default_rng(2026).random((size, size), dtype=np.float32)
    u.from_numpy(start)
    right = start.astype(np.float64)
    for _ in range(steps):
        with nvtx.annotate("relax"):
            relax()
        with nvtx.annotate("take"):
            take()
        right[1:-1, 1:-1] = 0.25 * (right[:-2, 1:-1] + right[2:, 1:-1] + right[1:-1, :-2]
                                    + right[1:-1, 2:])
    print(f"differs from NumPy by {abs(u.to_numpy() - right).max():.1e}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
