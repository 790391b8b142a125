"""kernels.ptx is what nvcc makes of kernels.cu. Usage: kernels_test.py [--write]

Compared where nvcc of the same version is at hand: another one writes other registers."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PTX = HERE / "kernels.ptx"
VERSION = re.compile(r"^// Cuda compilation tools, (.+)$", re.M)


def main():
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if nvcc is None:
        print("skipped: there is no nvcc; install CUDA's toolkit")
        return 77
    made = subprocess.run([nvcc, "-ptx", "-arch=compute_80", "-O3", "kernels.cu", "-o", "-"],
                          cwd=HERE, capture_output=True, text=True, check=True).stdout
    if sys.argv[1:] == ["--write"]:
        PTX.write_text(made)
        return 0
    here, there = (VERSION.search(text)[1] for text in (made, PTX.read_text()))
    if here != there:
        print(f"skipped: nvcc is {here}; install that of {there}")
        return 77
    if made == PTX.read_text():
        return 0
    print("kernels.ptx is not what nvcc makes of kernels.cu: kernels_test.py --write")
    return 1


if __name__ == "__main__":
    sys.exit(main())
