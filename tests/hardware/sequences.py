#!/usr/bin/env python3
"""What ptxas makes of each PTX operation that counts nothing itself: FLOP of the fast path, read
from the machine code of one kernel for each. Writes sequences.csv anew, and of it flopreduce's
table of the operations that add anything.

Usage: sequences.py [--write]"""

import csv
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TABLE = HERE / "sequences.csv"
REDUCER = HERE.parents[1] / "tools/flopreduce/tables/machine_operations.def"
HEAD = """// MACHINE_OPERATION(key, name, fp32, fp64): FLOP of the fast path of an operation of PTX.
// Written by tests/hardware/sequences.py --write.
"""
CHIPS = {"GV100": 70, "TU102": 75, "GA100": 80, "GA102": 86, "AD102": 89, "GH100": 90, "GB100": 100}
# The count of SIMGPU_COUNTS, its instruction and its type.
OPERATIONS = {
    "div_f32": ("div.rn.f32", "f32"), "div_f64": ("div.rn.f64", "f64"),
    "rcp_f32": ("rcp.rn.f32", "f32"), "rcp_f64": ("rcp.rn.f64", "f64"),
    "sqrt_f32": ("sqrt.rn.f32", "f32"), "sqrt_f64": ("sqrt.rn.f64", "f64"),
    "approx_div_f32": ("div.approx.f32", "f32"), "full_div_f32": ("div.full.f32", "f32"),
    "approx_rcp_f32": ("rcp.approx.f32", "f32"), "approx_sqrt_f32": ("sqrt.approx.f32", "f32"),
    "approx_rsqrt_f32": ("rsqrt.approx.f32", "f32"), "approx_ex2_f32": ("ex2.approx.f32", "f32"),
    "shared_add_f32": ("atom.shared.add.f32", "f32"),
    "shared_add_f64": ("atom.shared.add.f64", "f64"),
    "approx_lg2_f32": ("lg2.approx.f32", "f32"), "approx_sin_cos_f32": ("sin.approx.f32", "f32"),
}
NAMES = {
    "div_f32": "fp32 division", "div_f64": "fp64 division", "rcp_f32": "fp32 reciprocal",
    "rcp_f64": "fp64 reciprocal", "sqrt_f32": "fp32 root", "sqrt_f64": "fp64 root",
    "approx_div_f32": "fp32 division, approximate", "full_div_f32": "fp32 division, full range",
    "approx_rcp_f32": "fp32 reciprocal, approximate",
    "approx_sin_cos_f32": "fp32 sine or cosine, approximate",
    "shared_add_f32": "fp32 atomic sum in shared memory",
    "shared_add_f64": "fp64 atomic sum in shared memory",
}
FLOP = {"FADD": ("fp32", 1), "FMUL": ("fp32", 1), "FFMA": ("fp32", 2), "DADD": ("fp64", 1),
        "DMUL": ("fp64", 1), "DFMA": ("fp64", 2)}


def tool(name):
    """CUDA's, or those of Python's wheels, in the environment of tools/dev."""
    wheels = Path(__file__).resolve().parents[2] / "build/venv/lib"
    folders = [*wheels.glob("python3*/site-packages/nvidia/cu1?/bin"),
               *wheels.glob("python3*/site-packages/triton/backends/nvidia/bin")]
    return (shutil.which(name) or
            shutil.which(name, path=":".join(map(str, ["/usr/local/cuda/bin", *folders]))))


def kernel(name, instruction, kind):
    size = 8 if kind == "f64" else 4
    operands = ("%a, %b" if instruction.startswith("div") else
                "[shared], %a" if instruction.startswith("atom") else "%a")
    return f""".visible .entry {name}(.param .u64 p)
{{
  .reg .u64 %p;
  .shared .align 8 .b8 shared[8];
  .reg .{kind} %a, %b, %d;
  ld.param.u64 %p, [p];
  cvta.to.global.u64 %p, %p;
  ld.global.{kind} %a, [%p];
  ld.global.{kind} %b, [%p+{size}];
  {instruction} %d, {operands};
  st.global.{kind} [%p], %d;
  ret;
}}
"""


def ptx(architecture):
    return (f".version 8.6\n.target sm_{architecture}\n.address_size 64\n" +
            "".join(kernel(name, *row) for name, row in OPERATIONS.items()))


def fast_path(sass):
    """FLOP by precision up to the first EXIT that all threads take: slow paths are behind it. What
    stands under a predicate is for denormal operands, and not counted either."""
    flop = {"fp32": 0, "fp64": 0}
    for line in sass.splitlines():
        found = re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(@!?U?P\d+ )?([A-Z0-9]+)", line)
        if not found:
            continue
        if found[2] == "EXIT" and not found[1]:
            return flop
        if found[2] in FLOP and not found[1]:
            precision, each = FLOP[found[2]]
            flop[precision] += each
    raise ValueError("no EXIT")


def rows():
    version = re.search(r"release ([\d.]+), V([\d.]+)", subprocess.run(
        [tool("ptxas"), "--version"], capture_output=True, text=True, check=True).stdout)[2]
    for chip, architecture in CHIPS.items():
        with tempfile.TemporaryDirectory(prefix="flopinj-sequences-") as folder:
            source, cubin = Path(folder) / "all.ptx", Path(folder) / "all.cubin"
            source.write_text(ptx(architecture))
            done = subprocess.run([tool("ptxas"), f"-arch=sm_{architecture}", source, "-o", cubin],
                                  capture_output=True, text=True, check=False)
            if done.returncode != 0:
                continue  # a chip that this ptxas does not know any more
            sass = subprocess.run([tool("nvdisasm"), cubin], capture_output=True, text=True,
                                  check=True).stdout
        kernels = dict(re.findall(r"^\.text\.(\w+):\n(.*?)(?=^\.text\.|\Z)", sass, re.M | re.S))
        for name, (instruction, _) in OPERATIONS.items():
            flop = fast_path(kernels[name])
            yield [chip, name, instruction, flop["fp32"], flop["fp64"], version]


def reducer_table(made):
    """Of the operations that add anything. All chips have the same sequences: one row for each."""
    rows = {}
    for _, name, _, fp32, fp64, _ in made:
        if rows.setdefault(name, (fp32, fp64)) != (fp32, fp64):
            raise ValueError(f"{name}: chips differ, and flopreduce has one row for all of them")
    return HEAD + "".join(f'MACHINE_OPERATION({name}, "{NAMES[name]}", {fp32}, {fp64})\n'
                          for name, (fp32, fp64) in rows.items() if fp32 or fp64)


if __name__ == "__main__":
    if tool("ptxas") is None or tool("nvdisasm") is None:
        print("skipped: there is no ptxas or nvdisasm; install CUDA's toolkit")
        sys.exit(77)
    made = [["chip", "count", "instruction", "fp32_flop", "fp64_flop", "ptxas"], *rows()]
    if "--write" in sys.argv[1:]:
        with TABLE.open("w", newline="") as out:
            csv.writer(out, lineterminator="\n").writerows(made)
        REDUCER.write_text(reducer_table(made[1:]))
        sys.exit(0)
    kept = list(csv.reader(TABLE.open()))
    if kept[1][-1] != made[1][-1]:
        print(f"skipped: ptxas is {made[1][-1]}; install that of {kept[1][-1]}")
        sys.exit(77)
    same = ([list(map(str, row)) for row in made] == kept and
            REDUCER.read_text() == reducer_table(made[1:]))
    sys.exit(0 if same else
             "not what ptxas makes of the operations; --write writes the table anew")
