"""Equal FLOP, unequal time: one product of two matrices, and the same work as products with single
vectors. A product of matrices is limited by arithmetic, one with a vector by memory.

    flopinj run -o matvec.pb -- python examples/matvec.py
    flopinj report --sections ranges,roofline matvec.pb
"""

import argparse

import closing
import flopinj
import torch


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=4096, help="rows and columns of the matrices")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    size = options.size
    a, b = torch.randn(2, size, size, device=device)
    for _ in range(options.repeat):
        with flopinj.range("matrix"):
            whole = a @ b
        with flopinj.range("vectors"):
            columns = torch.stack([torch.mv(a, b[:, i]) for i in range(size)], dim=1)
    torch.testing.assert_close(whole, columns, rtol=1e-3, atol=1e-2 * size**0.5)
    print(f"each way {2 * size**3 * options.repeat:,} FLOP on {device}")
    closing.say_next()


if __name__ == "__main__":
    main()
