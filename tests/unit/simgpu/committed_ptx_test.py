"""Each committed .ptx is what nvcc makes of the .cu beside it.

Usage: committed_ptx_test.py [--write]

Compared where nvcc of the same version is at hand: another one writes other registers. Before
nvcc's text come lines of comment with what ptxas says of each kernel, which simgpu reads."""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
# With -fmad=false each operation of the source is one of the text, and counts as it is written.
SOURCES = {
    "tests/data/cubins/shared.cu": ["-arch=compute_75"],
    "tests/integration/clients/client_kernels.cu": ["-arch=compute_80", "-fmad=false"],
    "tests/integration/clients/collective_kernels.cu": ["-arch=compute_80"],
    "tests/integration/injector/conditional_kernels.cu": ["-arch=compute_75", "-rdc=true"],
    "tests/integration/injector/other_kernels.cu": ["-arch=compute_75", "-fmad=false"],
    "tests/unit/simgpu/kernels.cu": ["-arch=compute_75", "-fmad=false"],
    "tests/unit/simgpu/ptx/hopper.cu": ["-arch=compute_90a"],
    "tests/unit/simgpu/ptx/kernels.cu": ["-arch=compute_80"],
    "tests/unit/simgpu/ptx/warps.cu": ["-arch=compute_80"],
    "tools/known_kernels/instructions.cu": ["-arch=compute_75", "-fmad=false"],
    "tools/known_kernels/products.cu": ["-arch=compute_80"],
    "tools/known_kernels/products_fp8.cu": ["-arch=compute_89"],
    "tools/known_kernels/warpgroups.cu": ["-arch=compute_90a", "-fmad=false"],
    "tools/trainer/gpt/gpt_kernels.cu": ["-arch=compute_80", "-fmad=false"],
    "tools/trainer/gpu/trainer_kernels.cu": ["-arch=compute_75", "-fmad=false"],
}
# For drivers of CUDA 12.4 and later, and for Volta: nvcc writes its own version, and names no older
# target. That the text needs no more ptxas says.
FOR_OLDER = {
    "tools/known_kernels": [(".version 9.0\n", ".version 8.4\n"),
                            (".target sm_75\n", ".target sm_70\n")],
}
VERSION = re.compile(r"^// Cuda compilation tools, (.+)$", re.M)
KERNEL = re.compile(r"Compiling entry function '(\w+)'.*?Used (\d+) registers([^\n]*)", re.S)
SHARED = re.compile(r"(\d+) bytes smem")


def tool(name):
    return shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")


def compile_ptx(source, flags):
    with tempfile.TemporaryDirectory() as folder:
        ptx = Path(folder, "out.ptx")
        subprocess.run([tool("nvcc"), "-ptx", "-O3", *flags, source.name, "-o", ptx],
                       cwd=source.parent, check=True)
        text = ptx.read_text()
        for new, old in FOR_OLDER.get(str(source.parent.relative_to(ROOT)), []):
            text = text.replace(new, old)
        ptx.write_text(text)
        chip = "sm_90a" if "-arch=compute_90a" in flags else "sm_90"
        said = subprocess.run([tool("ptxas"), "-v", "-c", f"-arch={chip}", ptx, "-o", "/dev/null"],
                              capture_output=True, text=True, check=True).stderr
        lines = []
        for name, registers, rest in sorted(KERNEL.findall(said)):
            shared = SHARED.search(rest)
            lines.append(f"// ptxas {chip}: {name}: {registers} registers, "
                         f"{shared[1] if shared else 0} bytes shared\n")
        return "".join(lines) + text


def main():
    if tool("nvcc") is None or tool("ptxas") is None:
        print("skipped: there is no nvcc; install CUDA's toolkit")
        return 77
    different = []
    for name, flags in SOURCES.items():
        source = ROOT / name
        made, ptx = compile_ptx(source, flags), source.with_suffix(".ptx")
        if "_INTERNAL_" in made:
            sys.exit(f"{name}: nvcc gives a name a hash of the folder; memory of a function that "
                     "is static, or in an unnamed namespace, has such a name")
        if sys.argv[1:] == ["--write"]:
            ptx.write_text(made)
            continue
        here, there = (VERSION.search(text)[1] for text in (made, ptx.read_text()))
        if here != there:
            print(f"skipped: nvcc is {here}; install that of {there}")
            return 77
        if made != ptx.read_text():
            different.append(str(ptx.relative_to(ROOT)))
    if different:
        print(f"not what nvcc makes of the source: {', '.join(different)}; "
              "committed_ptx_test.py --write")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
