"""What the collector counts in machine code is what nvdisasm's text says of it.

Usage: sass_test.py CUBIN_READER CUBINS [--all] [--seed N] [--made-up N] [--record]

nvdisasm's text of an instruction is judged here by its operands' names, without a look at its bits:
an independent account of collector/identity/sass.h. It is taken of the recorded cubins in CUBINS,
of made-up instructions (operands, signs and forms by chance), and, where nvcc is, of kernels that
are made by chance and compiled for two architectures (--all: for each that nvcc knows). What it
says of the recorded cubins is kept in CUBINS/instructions.json (--record), for machines without it.
"""

import argparse
import collections
import json
import random
import re
import shutil
import struct
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

RECORDED = "instructions.json"
OPERATIONS = {
    "FADD": "fadd", "FHADD": "fadd", "UFADD": "fadd", "FMUL": "fmul", "UFMUL": "fmul",
    "FFMA": "ffma", "FHFMA": "ffma", "UFFMA": "ffma", "FADD2": "fadd2", "FMUL2": "fmul2",
    "FFMA2": "ffma2", "DADD": "dadd", "DMUL": "dmul", "DFMA": "dfma", "HADD2": "hadd",
    "HMUL2": "hmul", "HFMA2": "hfma", "USETMAXREG": "setmaxnreg"}
# A mnemonic that looks like one of them and is none would be missed.
LIKE_THEM = re.compile(r"U?[BDFHQ][A-Z]?(ADD|MUL|FMA)\d?(_32I)?$")
INSTRUCTION = re.compile(
    r"^\s+/\*[0-9a-f]{4,6}\*/\s+(?:@!?U?P\w+\s+)?([A-Z]\w*)\S*\s*(.*?)\s*;"
    r"\s+/\* 0x[0-9a-f]{16} \*/")


def find_tool(name):
    """A CUDA tool: of the tests' Python packages, the toolkit, or PATH; else nothing."""
    packages = Path(sysconfig.get_path("purelib"))
    places = [*packages.glob(f"nvidia/*/bin/{name}"), Path("/usr/local/cuda/bin") / name]
    return next((str(place) for place in places if place.exists()), shutil.which(name))


def operations_of(mnemonic, operands):
    """How many operations each lane computes, as 0 ("none"), 1 ("one") or 2 ("all")."""
    sources = [operand.replace(".reuse", "").strip() for operand in operands.split(", ")[1:]]
    zero = [re.match(r"[-|]*RZ\b", source) is not None for source in sources]
    minus_zero = [source.startswith("-") and is_zero for source, is_zero in zip(sources, zero)]
    if mnemonic in ("FADD", "FHADD", "DADD", "HADD2"):
        return 0 if any(minus_zero) else 2
    if mnemonic not in ("FFMA", "FHFMA", "DFMA", "HFMA2"):
        return 2
    if zero[0] and zero[1]:
        return 0
    if minus_zero[-1]:
        return 1
    pair = 2 if mnemonic == "HFMA2" else 1  # an immediate is two numbers there
    factor = sources[1:1 + pair]
    return 1 if len(sources) == 2 + pair and all(f in ("1", "-1") for f in factor) else 2


def judge(text):
    """The instruction in nvdisasm's line: its operation and how much of it; else nothing."""
    match = INSTRUCTION.match(text)
    if not match:
        return None
    mnemonic, operands = match.groups()
    if mnemonic not in OPERATIONS:
        assert not LIKE_THEM.match(mnemonic), f"an unknown instruction: {text}"
        return None
    return OPERATIONS[mnemonic], operations_of(mnemonic, operands)


def counts_of(words):
    """'hfma 1 0 2 ...' as a dictionary."""
    return {words[i]: [int(n) for n in words[i + 1:i + 4]] for i in range(0, len(words), 4)}


class Tools:
    def __init__(self, reader, nvdisasm):
        self.reader, self.nvdisasm = reader, nvdisasm

    def run(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stderr[:2000]}"
        return done.stdout

    def told(self, cubin):
        """By function: nvdisasm's counts, of the function and of those that it names."""
        own, calls, name = {}, collections.defaultdict(set), None
        for line in self.run(self.nvdisasm, "-hex", cubin).splitlines():
            if line.startswith(".text."):
                name = line.strip()[len(".text."):-1]
                own[name] = collections.defaultdict(lambda: [0, 0, 0])
            elif (found := judge(line)) is not None:
                own[name][found[0]][found[1]] += 1
            elif called := re.search(r"\bCALL\S* `\((\S+)\)|fun@fdesc\((\S+?)\)", line):
                calls[name].add(called.group(1) or called.group(2))
        sums = {}
        for name in own:
            reached, todo = set(), [name]
            while todo:
                if (at := todo.pop()) in own and at not in reached:
                    reached.add(at)
                    todo += calls[at]
            total = collections.defaultdict(lambda: [0, 0, 0])
            for at in reached:
                for operation, counts in own[at].items():
                    total[operation] = [a + b for a, b in zip(total[operation], counts)]
            if "setmaxnreg" in total:  # the reader says only that it is there
                total["setmaxnreg"] = [0, 0, 1]
            sums[name] = dict(total)
        return sums

    def compare(self, cubin, told):
        read = {}
        for line in self.run(self.reader, cubin).splitlines():
            name, known, *rest = line.split()
            read[name] = (known, counts_of(rest))
        assert set(told) == set(read), f"{cubin}: {set(told) ^ set(read)}"
        for name, counts in told.items():
            known, got = read[name]
            if known == "known":
                assert got == counts, f"{cubin}: {name}: read {got}, nvdisasm says {counts}"
        assert not read or any(known == "known" for known, _ in read.values()), f"{cubin}: not read"

    def compare_made_up(self, architecture, rng, count, folder):
        """Instructions whose operands, signs and forms are chance."""
        code = folder / "code"
        instructions = [made_up(rng, architecture) for _ in range(count)]
        code.write_bytes(b"".join(struct.pack("<QQ", *words) for words in instructions))
        lines = [line for line in
                 self.run(self.nvdisasm, "-b", architecture, "-hex", code).splitlines()
                 if INSTRUCTION.match(line)]
        told = [judge(line) for line in lines]
        read = [counts_of(line.split()[2:]) for line in
                self.run(self.reader, architecture.removeprefix("SM"), code).splitlines()]
        assert len(told) == len(read) == count, f"{architecture}: {len(told)} lines for {count}"
        for line, found, got in zip(lines, told, read):
            expected = {found[0]: [int(found[1] == n) for n in range(3)]} if found else {}
            assert got == expected, f"{architecture}: read {got}: {line}"
        return collections.Counter(found for found in told if found)


# Operation numbers, and their forms: 1 registers, 2 and 4 an immediate, 3 and 5 a constant.
SUMS, PRODUCTS, MULTIPLY_ADDS = (0x21, 0x30, 0x29), (0x20, 0x32, 0x28), (0x23, 0x31, 0x35, 0x2b)
IMMEDIATES = (0x3C003C00, 0xBC00BC00, 0x3F803F80, 0x3F800000, 0xBF800000, 0x3FF00000, 0x3C003F80,
              0x40004000, 0, 0x3C000000)


def made_up(rng, architecture):
    """One instruction of 128 bits."""
    def register():
        return rng.choice((255, 255, 2 * rng.randrange(100)))

    operation = rng.choice(SUMS + PRODUCTS + MULTIPLY_ADDS)
    if operation == 0x35 and architecture not in ("SM80", "SM90"):
        operation = 0x31  # the number of something else there
    forms = (1, 2, 3, 4, 5)
    if operation in SUMS + PRODUCTS:
        forms = (1, 2, 3) if operation in SUMS else (1, 4, 5)
    if architecture in ("SM100", "SM120"):  # constants come in uniform registers there
        forms = tuple(form for form in forms if form not in (3, 5))
    form = rng.choice(forms)
    low = operation | form << 9 | 7 << 12 | 4 << 16 | register() << 24
    high = rng.randrange(2) << 8  # A is negated
    if form == 1:
        low |= (0 if operation == 0x29 else register()) << 32 | rng.randrange(2) << 63
        if operation == 0x29:
            low &= ~(1 << 63)
    elif form in (2, 4):
        low |= (rng.choice(IMMEDIATES) if rng.randrange(4) else rng.getrandbits(32)) << 32
    else:
        low |= (0x5A00 + 4 * rng.randrange(64)) << 32 & ~(1 << 63)
    if operation in MULTIPLY_ADDS or operation == 0x29 and form == 1:
        high |= register()
        half = operation in (0x31, 0x35)
        high |= rng.randrange(2) << (20 if half else 11)
        if half and architecture != "SM75" and (operation == 0x31 or architecture == "SM90"):
            high |= rng.randrange(2) << 21  # bf16
    return low, high | 0x000FE2 << 40


def source_of(rng, kernels):
    """Kernels of chance: sums and products of constants, negated, converted, in loops."""
    types = {"float": ("float", "f"), "double": ("double", ""), "half2": ("__half2", None),
             "half": ("__half", None), "bf16": ("__nv_bfloat162", None)}
    text = ["#include <cuda_fp16.h>", "#include <cuda_bf16.h>", "#include <cassert>"]
    for k in range(kernels):
        kind = rng.choice(list(types))
        name = types[kind][0]
        text.append(f"extern \"C\" __global__ void kernel_{k}({name}* p, const float* q, int n) {{")
        text.append("  int i = threadIdx.x; float c = 0;")
        text.append(f"  {name} a = p[i], b = p[i + 32], d = p[i + 64];")
        for _ in range(rng.randrange(1, 12)):
            line = rng.choice((
                "a = a * b;", "a = a + b;", "b = a * b + d;", "d = -d;", "d = a - b;",
                "for (int j = 0; j < n; ++j) b = b * p[j] + d;", "p[i + 96] = -a;",
                "c = q[i] * 1.5f + c;", "c += q[i] > 1 ? 3.25f : 0.5f;", "c = fabsf(c) - q[n];",
                "if (n > 7) { c = expf(c); d = d + a; }", "c = q[n] / c;", "assert(n != 5);",
                "for (int j = 0; j < 9; ++j) c += q[j] * q[j + n];", "a = p[n]; p[n + 1] = d;",
                "c = -c; p[i + 128] = b;", f"c = c + (float)(__half)q[{rng.randrange(99)}];"))
            text.append("  " + line)
        text.append(f"  p[i] = a; p[i + 1] = b + d; ((float*)p)[i + 999] = c; }}")
    return "\n".join(text) + "\n"


# Groups of warps that share registers out, as the large products of Hopper do: one function itself,
# one by a function that it calls, one not.
SPECIALISED = """
__device__ __noinline__ void shrink() { asm volatile("setmaxnreg.dec.sync.aligned.u32 40;"); }
extern "C" __global__ void __launch_bounds__(384, 1) itself(float* p) {
  if (threadIdx.x < 128) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
  else asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  p[threadIdx.x] *= 2;
}
extern "C" __global__ void __launch_bounds__(384, 1) by_call(float* p) {
  shrink();
  p[threadIdx.x] *= 2;
}
extern "C" __global__ void not_at_all(float* p) { p[threadIdx.x] *= 2; }
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("reader")
    parser.add_argument("cubins", type=Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--made-up", type=int, default=4000)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    nvdisasm, nvcc = find_tool("nvdisasm"), find_tool("nvcc")
    tools = Tools(options.reader, nvdisasm)
    kept = options.cubins / RECORDED
    recorded = json.loads(kept.read_text()) if kept.exists() else {}
    cubins = sorted(options.cubins.glob("*.cubin"))
    if nvdisasm is not None:
        told = {cubin.name: tools.told(cubin) for cubin in cubins}
        if options.record:
            lines = [f" {json.dumps(name)}: {json.dumps(of)}" for name, of in told.items()]
            kept.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        else:
            assert not recorded or told == recorded, f"{kept} is not what nvdisasm says: --record"
        recorded = told
    assert recorded, f"no nvdisasm, and no {kept}"
    for cubin in cubins:
        tools.compare(cubin, recorded[cubin.name])
        print(f"{cubin.name}: {len(recorded[cubin.name])} functions as nvdisasm says")
    if nvdisasm is None:
        print("no nvdisasm: recorded cubins alone")
        return 0
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for architecture in ("SM75", "SM80", "SM86", "SM89", "SM90", "SM100", "SM120"):
            seen = tools.compare_made_up(architecture, rng, options.made_up, folder)
            for operation in ("fadd", "dadd", "hadd", "ffma", "dfma", "hfma"):
                assert seen[operation, 0] > 10 and seen[operation, 2] > 10, (operation, seen)
            print(f"{architecture}: {options.made_up} made-up instructions as nvdisasm says")
        if nvcc is None:
            print("no nvcc: no kernels are compiled")
            return 0
        known = re.findall(r"sm_(\d+)$", tools.run(nvcc, "--list-gpu-code"), re.MULTILINE)
        (folder / "specialised.cu").write_text(SPECIALISED)
        for capability in ("90a", "100a"):
            cubin = folder / f"specialised_sm{capability}.cubin"
            tools.run(nvcc, "-cubin", f"-arch=sm_{capability}", "-o", cubin,
                      folder / "specialised.cu")
            counts = tools.told(cubin)
            tools.compare(cubin, counts)
            having = {name for name, of in counts.items() if "setmaxnreg" in of}
            assert {"itself", "by_call"} <= having and "not_at_all" not in having, having
        for capability in known if options.all else rng.sample(known, 2):
            source, cubin = folder / "kernels.cu", folder / f"kernels_sm{capability}.cubin"
            source.write_text(source_of(rng, 20))
            tools.run(nvcc, "-cubin", f"-arch=sm_{capability}", "-o", cubin, source)
            counts = tools.told(cubin)
            tools.compare(cubin, counts)
            total = sum(sum(n) for of in counts.values() for n in of.values())
            print(f"sm_{capability}: {len(counts)} kernels, {total} instructions as nvdisasm says")
    return 0


if __name__ == "__main__":
    sys.exit(main())
