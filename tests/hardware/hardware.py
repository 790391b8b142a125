#!/usr/bin/env python3
"""FLOP of programs of others on the simulated GPU beside what a real one counted.

  hardware.py run FOLDER [PROGRAM...]   builds the programs of readings.csv from FOLDER/src, as the
                                        source of the readings has it, runs them, writes counts.csv
  hardware.py page [--check]            writes counts.md, or says whether it is so

FLOPINJ_BUILD is the build folder, else build/dev. A program's later launches do not run
(SIMGPU_COUNTS): the readings are of the first two of each kernel."""

import csv
import math
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = Path(os.environ.get("FLOPINJ_BUILD", ROOT / "build/dev")).resolve()
PAGE = HERE / "counts.md"
CHIP = "GA102"
BUILD_LIMIT, RUN_LIMIT = 300, 60  # seconds
# Device memory, and address space with the simulator's own: a program that wants more ends.
MEMORY_MIB, ADDRESS_KIB = 4500, 14 << 20
PRECISIONS = {"fp32": {"fadd": 1, "fmul": 1, "ffma": 2}, "fp64": {"dadd": 1, "dmul": 1, "dfma": 2}}
# The readings are made of instructions per cycle, printed to a hundredth, at this clock.
CYCLES_PER_NS, HALF_A_HUNDREDTH = 1.44, 0.005
# Kernels this short have readings that are exact to about 5 %: a rate times a time.
SHORT_NS = 20_000
KEY = ("program", "kernel", "grid", "block")


def table(name):
    with (HERE / name).open(newline="") as rows:
        return list(csv.DictReader(rows))


# --- Building and running

def build(folder, program):
    """The program's file, or why there is none."""
    makefile = folder / "Makefile"
    if not makefile.exists():
        return None, "no Makefile"
    text = makefile.read_text(errors="replace")
    named = re.search(r"^\s*program\s*[:?]?=\s*(\S+)", text, re.M)
    name = named[1] if named else program
    # The programs that were read are compiled without it (cuda-profiling/compile_commands.json).
    text = re.sub(r"--?use_fast_math", "", text)
    try:
        done = subprocess.run(
            ["make", "-s", "-B", "-f", "-", "CC=nvcc", "ARCH=compute_86",
             "EXTRA_CFLAGS=-cudart shared -w", name],
            cwd=folder, input=text, capture_output=True, text=True, timeout=BUILD_LIMIT,
            check=False,
            env=os.environ | {"NVCC_APPEND_FLAGS": "-std=c++17"})  # what CUDA 13's CCCL needs
    except subprocess.TimeoutExpired:
        return None, "not built in time"
    if done.returncode != 0:
        return None, "not built: " + (done.stderr.strip().splitlines() or ["?"])[0]
    return folder / name, ""


def run(program, arguments, folder):
    """Lines of SIMGPU_COUNTS. A program may end by its own check of results that mean nothing."""
    with tempfile.TemporaryDirectory(prefix="flopinj-hardware-") as scratch:
        counts = Path(scratch) / "counts"
        environment = os.environ | {
            "LD_LIBRARY_PATH": str(BUILD / "lib/flopinj/simgpu"), "SIMGPU_CHIP": CHIP,
            "SIMGPU_COUNTS": str(counts), "SIMGPU_MEMORY": str(MEMORY_MIB)}
        environment.pop("FLOPINJ_BUILD", None)
        try:
            subprocess.run(
                f"ulimit -v {ADDRESS_KIB}; exec ./{program.name} {arguments}", shell=True,
                cwd=folder, env=environment, timeout=RUN_LIMIT, check=False,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            pass
        return counts.read_text().splitlines() if counts.exists() else []


def kernel_names(symbols):
    """The kernels' names without scopes, parameters and results, as the readings have them."""
    plain = subprocess.run(["c++filt", *symbols], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    names = {}
    for symbol, text in zip(symbols, plain):
        text = re.split(r"[<(]", text.replace("(anonymous namespace)::", ""))[0]
        names[symbol] = text.split("::")[-1].split(" ")[-1]
    return names


def means(program, lines):
    """Rows of counts.csv: each kernel's mean of the launches that ran."""
    split = [line.split(";") for line in lines]
    names = kernel_names(sorted({one[0] for one in split})) if split else {}
    groups = defaultdict(list)
    for symbol, grid, block, counts in split:
        groups[names[symbol], grid, block].append(
            {name: int(value) for name, value in (one.split("=") for one in counts.split())})
    for (kernel, grid, block), launches in sorted(groups.items()):
        kept = sorted({name for one in launches for name in one} - {"threads", "dram_read",
                                                                    "dram_write"})
        mean = {name: sum(one.get(name, 0) for one in launches) / len(launches) for name in kept}
        yield [program, kernel, grid, block, len(launches),
               " ".join(f"{name}={value:.10g}" for name, value in mean.items())]


def run_all(folder, chosen):
    readings, made = {}, []
    for row in table("readings.csv"):
        readings.setdefault(row["program"], row["arguments"])
    kept = [list(row.values()) for row in table("counts.csv")] if chosen else []
    for program, arguments in readings.items():
        if chosen and program not in chosen:
            continue
        home = Path(folder).resolve() / "src" / f"{program}-cuda"
        built, why = build(home, program)
        rows = list(means(program, run(built, arguments, home))) if built else []
        print(f"{program}: {why or f'{len(rows)} kernels'}", flush=True)
        made += rows
    known = {tuple(row[key] for key in KEY) for row in table("readings.csv")}
    made = [row for row in made if tuple(row[:4]) in known]
    made = sorted([row for row in kept if row[0] not in chosen] + made)
    with (HERE / "counts.csv").open("w", newline="") as out:
        csv.writer(out, lineterminator="\n").writerows([[*KEY, "launches", "counts"], *made])


# --- Comparing

def flop(counts, precision):
    return sum(weight * counts.get(name, 0) for name, weight in PRECISIONS[precision].items())


def within(ratio, percent):
    return abs(ratio - 1) <= percent / 100


def cause(one, without_roots, retries, known):
    """`retries`: FLOP that atomic sums in shared memory may take besides."""
    whole, read = one["whole"], one["read"]
    if within(one["ratio"], 1):
        return "agrees"
    if within(whole, 1):
        return "sequence"
    if within(without_roots, 1):
        return "roots"
    if known:
        return known
    if retries and whole <= 1.01 and (whole * read + retries) / read >= 0.99:
        return "atomics"
    if abs(whole - 1) * read <= HALF_A_HUNDREDTH * CYCLES_PER_NS * one["time_ns"]:
        return "resolution"
    return "short" if one["time_ns"] < SHORT_NS and within(whole, 6) else "not explained"


def comparison():
    sequences = {row["count"]: row for row in table("sequences.csv") if row["chip"] == CHIP}
    # What was found in a program's source: the number that the difference is, and why.
    causes = {(row["program"], row["kernel"]): row["cause"] for row in table("causes.csv")}
    ours = {tuple(row[key] for key in KEY): row["counts"] for row in table("counts.csv")}
    for row in table("readings.csv"):
        key = tuple(row[one] for one in KEY)
        if key not in ours:
            continue
        counts = {name: float(value) for name, value in
                  (one.split("=") for one in ours[key].split())}
        special = {name: n for name, n in counts.items() if name in sequences}
        for precision in PRECISIONS:
            read, counted = float(row[f"{precision}_flop"]), flop(counts, precision)
            added = sum(n * int(sequences[name][f"{precision}_flop"])
                        for name, n in special.items())
            if read < 1000 or (counted == 0 and added == 0):
                continue
            ratio, whole = counted / read, (counted + added) / read
            roots = special.get("sqrt_f32", 0) * int(sequences["sqrt_f32"][f"{precision}_flop"])
            # All threads of a block that add to one place take turns: the last of n tries n times.
            atomics = special.get(f"shared_add_f{precision[2:]}", 0)
            threads = math.prod(map(int, row["block"].split("x")))
            one = {"row": row, "precision": precision, "read": read, "counted": counted,
                   "ratio": ratio, "added": added, "whole": whole, "special": special,
                   "time_ns": float(row["time_ns"])}
            one["cause"] = cause(one, whole - roots / read, atomics * (threads - 1) / 2,
                                 causes.get((row["program"], row["kernel"])))
            yield one


def summary(rows):
    lines = ["| Kernels | rows | within 0.2 % | 1 % | 5 % |", "|---|---:|---:|---:|---:|"]
    long = [one for one in rows if one["time_ns"] >= SHORT_NS]
    for text, group, which in (
            ("nothing that machine code makes several instructions of, 20 us or longer",
             [one for one in long if not one["special"]], "ratio"),
            ("the same, shorter",
             [one for one in rows if not one["special"] and one not in long], "ratio"),
            ("with such operations, PTX alone", [one for one in rows if one["special"]], "ratio"),
            ("with such operations, and machine code's sequences",
             [one for one in rows if one["special"]], "whole"),
            ("all, and machine code's sequences", rows, "whole")):
        near = [sum(within(one[which], percent) for one in group) for percent in (0.2, 1, 5)]
        lines.append(f"| {text} | {len(group)} | {near[0]} | {near[1]} | {near[2]} |")
    return lines


def page():
    rows = list(comparison())
    kernels = {tuple(one["row"][key] for key in KEY) for one in rows}
    programs = {one["row"]["program"] for one in rows}
    tally = defaultdict(int)
    for one in rows:
        tally[one["cause"]] += 1
    text = (HERE / "page.md").read_text().split("TABLES\n")
    lines = [f"{len(kernels)} kernels of {len(programs)} programs, {len(rows)} rows: fp32 and fp64 "
             "of a kernel are one each.", "", *summary(rows), "", "| Cause | rows |", "|---|---:|"]
    lines += [f"| {name} | {count} |" for name, count in
              sorted(tally.items(), key=lambda one: (-one[1], one[0]))]
    lines += ["", "## Row by row", "",
              "| Program | Kernel | | RTX 3080 | PTX | ratio | machine code adds | ratio | cause |",
              "|---|---|---|---:|---:|---:|---:|---:|---|"]
    for one in sorted(rows, key=lambda one: (one["row"]["program"], one["row"]["kernel"],
                                             one["row"]["grid"], one["precision"])):
        row = one["row"]
        added = f"~{one['added']:.4g}" if one["added"] else ""
        lines.append(f"| {row['program']} | `{row['kernel'][:28]}` | {one['precision']} | "
                     f"{one['read']:.5g} | {one['counted']:.5g} | {one['ratio']:.4f} | {added} | "
                     f"{one['whole']:.4f} | {one['cause']} |")
    return text[0] + "\n".join(lines) + "\n" + text[1]


def main(arguments):
    if arguments[:1] == ["run"] and len(arguments) > 1:
        return run_all(arguments[1], arguments[2:])
    if arguments == ["page"]:
        PAGE.write_text(page())
        return 0
    if arguments == ["page", "--check"]:
        same = PAGE.read_text() == page()
        return 0 if same else f"{PAGE.name}: `hardware.py page` writes it anew"
    return __doc__


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
