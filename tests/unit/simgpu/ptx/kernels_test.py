"""Each .ptx is what nvcc makes of the .cu beside it. Usage: kernels_test.py [--write]

Compared where nvcc of the same version is at hand: another one writes other registers."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = {"kernels": "compute_80", "hopper": "compute_90a"}
VERSION = re.compile(r"^// Cuda compilation tools, (.+)$", re.M)


def main():
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if nvcc is None:
        print("skipped: there is no nvcc; install CUDA's toolkit")
        return 77
    wrong = []
    for name, architecture in SOURCES.items():
        made = subprocess.run([nvcc, "-ptx", f"-arch={architecture}", "-O3", f"{name}.cu", "-o",
                               "-"], cwd=HERE, capture_output=True, text=True, check=True).stdout
        ptx = HERE / f"{name}.ptx"
        if sys.argv[1:] == ["--write"]:
            ptx.write_text(made)
            continue
        here, there = (VERSION.search(text)[1] for text in (made, ptx.read_text()))
        if here != there:
            print(f"skipped: nvcc is {here}; install that of {there}")
            return 77
        if made != ptx.read_text():
            wrong.append(name)
    for name in wrong:
        print(f"{name}.ptx is not what nvcc makes of {name}.cu: kernels_test.py --write")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
