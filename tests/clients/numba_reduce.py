"""Reductions by Numba's own cuda.reduce, as its documentation writes them: threads of a warp leave
its steps at different times. Usage: numba_reduce.py ROUNDS SIZE..."""

import sys

import numpy as np
import nvtx
from numba import cuda


@cuda.reduce
def total(a, b):
    return a + b


@cuda.reduce
def largest(a, b):
    return max(a, b)


def main(rounds, *sizes):
    random = np.random.default_rng(2026)
    worst = 0
    for size in rounds * sizes:
        numbers = random.random(size, dtype=np.float32)
        device = cuda.to_device(numbers)
        with nvtx.annotate("sum"):
            got = total(device)
        right = numbers.astype(np.float64).sum()
        worst = max(worst, abs(got - right) / right)
        with nvtx.annotate("largest"):
            assert largest(device) == numbers.max()
        counts = random.integers(-1000, 1000, size)
        with nvtx.annotate("count"):
            assert total(cuda.to_device(counts)) == counts.sum()
    print(f"differs from NumPy by {worst:.1e}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
