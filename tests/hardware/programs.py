#!/usr/bin/env python3
"""Programs of other projects, unmodified, on the simulated GPU: FLOP against theory, to the last
one. Of three kinds: of the CUDA runtime, of the driver API, and compiled while they run.

  programs.py FOLDER [PROGRAM...]   FOLDER has polybenchGpu (sgrauerg), cuda-samples (NVIDIA) and
                                    gpuFLOPBench (Scientific-Computing-Lab), as git clones them;
                                    Numba's examples are those of the numba-cuda that this Python
                                    has

FLOPINJ_BUILD is the build folder, else build/dev."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("FLOPINJ_BUILD", ROOT / "build/dev")).resolve()
NVCC = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
# cudaThreadSynchronize is gone since CUDA 13.
RUNTIME = ["-O3", "-cudart", "shared", "-arch=compute_80", "-w", "--extended-lambda",
           "--expt-relaxed-constexpr", "-DcudaThreadSynchronize=cudaDeviceSynchronize"]
LIMIT = 240  # seconds of a program, and of its compilation

# Program: kind, its sources (for the driver API, the second is its kernels), FLOP by format, and
# what it is given. A multiply-add counts 2.
#   gemm            512^2 elements: one product, and 512 times a product and a multiply-add
#   2DConvolution   4094^2 inner elements: 9 products and 8 sums
#   gesummv         4096 rows: 4096 times two multiply-adds; a product and a multiply-add
#   bicg            two products of a matrix of 4096^2 and a vector
#   vectorAdd       50,000 elements a + b + 0.0f: two sums
#   vectorAddDrv    50,000 sums
#   matrixMulDrv    blocks of 32: 192 x 128 elements, 128 multiply-adds each
#   vecadd          100,000 sums, launched twice
# Of HeCBench, programs that no reading is of:
#   lud             a matrix of 16 x 16 tiles, each 16 x 16. A tile on the diagonal: 560 + 680
#                   products and differences. Of what is left, k tiles a side: each of k tiles below
#                   and on the right has 16 times 120 of them, each of k x k inner elements 16 sums
#                   and a difference (the source has its products in a comment)
#   rotary          three launches for 5,120,000 elements: 4 products, a sum and a difference
POLYBENCH, SAMPLES = "polybenchGpu/CUDA", "cuda-samples/Samples/0_Introduction"
HECBENCH = "gpuFLOPBench/src"
PROGRAMS = {
    "gemm": ("runtime", [f"{POLYBENCH}/GEMM/gemm.cu"], {"fp32": 512 ** 2 * (1 + 512 * 3)}),
    "2DConvolution": ("runtime", [f"{POLYBENCH}/2DCONV/2DConvolution.cu"],
                      {"fp32": 4094 ** 2 * 17}),
    "gesummv": ("runtime", [f"{POLYBENCH}/GESUMMV/gesummv.cu"],
                {"fp32": 4096 * (4096 * 4 + 3)}),
    "bicg": ("runtime", [f"{POLYBENCH}/BICG/bicg.cu"], {"fp32": 2 * 2 * 4096 ** 2}),
    "vectorAdd": ("runtime", [f"{SAMPLES}/vectorAdd/vectorAdd.cu"], {"fp32": 2 * 50_000}),
    "vectorAddDrv": ("driver", [f"{SAMPLES}/vectorAddDrv/vectorAddDrv.cpp",
                                f"{SAMPLES}/vectorAddDrv/vectorAdd_kernel.cu"], {"fp32": 50_000}),
    "matrixMulDrv": ("driver", [f"{SAMPLES}/matrixMulDrv/matrixMulDrv.cpp",
                                f"{SAMPLES}/matrixMulDrv/matrixMul_kernel.cu"],
                     {"fp32": 192 * 128 * 128 * 2}),
    "lud": ("runtime", [f"{HECBENCH}/lud-cuda/lud.cu", f"{HECBENCH}/lud-cuda/common/common.cu"],
            {"fp32": 16 * 2 * (560 + 680) +
             sum(2 * k * 16 * 120 * 2 + k * k * 256 * 17 for k in range(16))}, ["-s", "256"]),
    "rotary": ("runtime", [f"{HECBENCH}/rotary-cuda/main.cu"], {"fp32": 3 * 5_120_000 * 6}, ["3"]),
    "vecadd": ("numba", ["test_vecadd"], {"fp64": 2 * 100_000}),
}


def command(kind, sources, folder, home):
    """The command that runs the program."""
    if kind == "numba":
        return [sys.executable, "-m", f"numba.cuda.tests.doc_examples.{sources[0]}"]
    compiled = [folder / source for source in sources]
    include = ["-I", folder / "cuda-samples/Common", "-I", compiled[0].parent / "common"]
    if kind == "driver":
        compiled.pop()
        kernels = folder / sources[1]
        subprocess.run([NVCC, "-arch=compute_80", "-fatbin", *include, kernels, "-o",
                        home / f"{kernels.stem}64.fatbin"], check=True, timeout=LIMIT)
        include += ["-lcuda", "-L", Path(NVCC).resolve().parents[1] / "lib64/stubs"]
    subprocess.run([NVCC, *RUNTIME, *compiled, *include, "-o", home / "program"], check=True,
                   timeout=LIMIT)
    return [home / "program"]


def flop(program, home):
    """By number format, as the report has it; and what the program ended with."""
    environment = {name: value for name, value in os.environ.items() if name != "FLOPINJ_BUILD"}
    done = subprocess.run(
        [BUILD / "bin/flopinj", "run", "-q", "--simulate", "--force", "-o", "trace.pb", "--",
         *program], cwd=home, env=environment, capture_output=True, text=True, timeout=LIMIT,
        check=False)
    report = subprocess.run([BUILD / "bin/flopreduce", "--format", "json", "trace.pb"], cwd=home,
                            capture_output=True, text=True, timeout=LIMIT, check=False)
    if report.returncode != 0:
        return {}, done.stderr or report.stderr
    rows = json.loads(report.stdout)["precisions"]
    return ({row["precision"]: row["flop"] for row in rows if row["flop"]},
            done.stderr if done.returncode != 0 else "")


def main(arguments):
    if not arguments:
        return __doc__
    folder, chosen = Path(arguments[0]).resolve(), arguments[1:]
    wrong = 0
    for name, (kind, sources, theory, *given) in PROGRAMS.items():
        if chosen and name not in chosen:
            continue
        if kind == "numba" and importlib.util.find_spec("numba_cuda") is None:
            print(f"{name}: left out, there is no numba-cuda", flush=True)
            continue
        with tempfile.TemporaryDirectory(prefix="flopinj-programs-") as home:
            program = command(kind, sources, folder, Path(home)) + sum(given, [])
            counted, failed = flop(program, Path(home))
        right = counted == theory and not failed
        wrong += not right
        print(f"{name} ({kind}): {'exact' if right else f'{counted}, not {theory}'} "
              f"{theory if right else failed.strip()[-300:]}", flush=True)
    return f"{wrong} programs differ" if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
