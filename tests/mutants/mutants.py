#!/usr/bin/env python3
"""Draws mutants of the sources by a seed and runs the tests of their subject.

    tools/dev mutants [--seed N] [--count N] [--subject NAME]

A mutant is one change that a test should notice: an operator, a constant, a condition or a call
that is left out. Each is built and tested alone in build/mutants, on a copy of the sources. A line
says what became of it: killed, SURVIVED, or no program (it does not compile; another one is drawn
in its place). Survivors are places to look at: some mutants mean the same as the original.

The same seed draws the same mutants of the same sources. Where files changed, the draw differs.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# With its build folder in the same place, so that the compiler's cache has all that is unchanged.
COPY = ROOT / "build/mutants"
BUILD = COPY / "build/dev"
# What mutants change is compiled quickly.
LAUNCHER = """#!/bin/sh
[ -z "$FLOPINJ_MUTANT" ] && exec $(command -v ccache) "$@"
exec "$@" -O0 -g0 -Wno-error
"""
_VENV = ROOT / "build/venv/bin/python"  # with the packages that tests use
PYTHON = _VENV if _VENV.exists() else sys.executable


@dataclass
class Subject:
    name: str
    sources: list[str]  # patterns of files
    tests: list[str]    # test programs that are built and run
    # For mutants that the programs do not notice. Of flopreduce as a program, below tests:
    of_flopreduce: list[str] = field(default_factory=list)
    # Of the real library on the simulated GPU, below tests/integration:
    on_simgpu: list[str] = field(default_factory=list)

    def every(self) -> list[str]:
        return [*self.tests, *self.of_flopreduce,
                *(f"integration/{test}" for test in self.on_simgpu)]


SUBJECTS = [
    Subject("reader", ["tools/flopreduce/reader/*.cpp", "tools/flopreduce/reader/*.h"],
            ["flopreduce_report_test", "flopreduce_damage_test", "flopreduce_time_test"],
            ["unit/flopreduce/commands/program_test.py"]),
    Subject("tables", ["tools/flopreduce/tables/*.cpp", "tools/flopreduce/tables/*.h"],
            ["flopreduce_report_test", "flopreduce_estimate_test", "flopreduce_formulas_test"]),
    Subject("passes", ["tools/flopreduce/passes/*.cpp", "tools/flopreduce/passes/*/*.cpp"],
            ["flopreduce_report_test", "flopreduce_time_test", "flopreduce_lost_test"]),
    Subject("report", ["tools/flopreduce/report/*.cpp", "tools/flopreduce/report/*/*.cpp"],
            ["flopreduce_report_test", "flopreduce_bounds_test", "flopreduce_time_test",
             "flopreduce_lost_test"]),
    Subject("phases", ["tools/flopreduce/phases/*.cpp"],
            ["flopreduce_report_test", "flopreduce_collectives_test"]),
    Subject("analytic", ["tools/flopreduce/analytic/*.cpp"],
            ["flopreduce_operators_test", "flopreduce_report_test"]),
    Subject("gates", ["tools/flopreduce/gates/*.cpp"],
            ["flopreduce_parts_test"]),
    Subject("sections", ["tools/flopreduce/sections/*.cpp", "tools/flopreduce/sections/*/*.cpp"],
            ["flopreduce_report_test", "flopreduce_bounds_test", "flopreduce_lost_test"],
            ["golden/golden_test.py", "unit/flopreduce/commands/questions_test.py",
             "unit/flopreduce/writers/agreement_test.py"]),
    Subject("schedule", ["collector/schedule/*"],
            ["collector_identity_test", "collector_kernels_test", "collector_sampling_test"],
            on_simgpu=["measuring/measuring_test.py", "tensor_test.py"]),
    Subject("writer", ["collector/*.cpp", "collector/writer/*", "collector/trace/*.cpp",
                       "collector/trace/*.h", "collector/trace/sink/*"],
            ["collector_identity_test", "collector_packets_test", "collector_allocation_test",
             "collector_writer_test"],
            on_simgpu=["facts_test.py", "trainer_test.py"]),
    Subject("identity", ["collector/identity/*", "collector/base/*", "collector/ranges/*",
                         "collector/options/*"],
            ["collector_identity_test", "collector_kernels_test", "injector_settings_test",
             "collector_allocation_test", "collector_writer_test"],
            on_simgpu=["steps_test.py", "measuring/choice_test.py"]),
    Subject("windows", ["injector/counters/*/*"], ["injector_cupti_test", "injector_calls_test"],
            on_simgpu=["measuring/windows_test.py", "measuring/verdicts_test.py",
                       "measuring/measuring_test.py", "measuring/waiting_test.py",
                       "measuring/lease_test.py"]),
    Subject("graphs", ["injector/graphs/*", "injector/vendor/graph_*"],
            ["injector_graph_nodes_test", "injector_calls_test"],
            on_simgpu=["injector/graph_calls_test.py"]),
    Subject("handles", ["injector/handles/*", "injector/vendor/driver_calls.*",
                        "injector/vendor/launch_calls.*", "injector/vendor/module_*"],
            ["injector_handles_test", "injector_calls_test"],
            on_simgpu=["injector/modules_test.py", "launches_test.py",
                       "injector/contexts_test.py"]),
    Subject("launches", ["injector/*.cpp", "injector/*.h"], ["injector_calls_test"],
            on_simgpu=["launches_test.py", "nvtx_test.py", "measuring/choice_test.py",
                       "injection_test.py", "live_commands_test.py", "attach_test.py"]),
    Subject("activity", ["injector/activity/*", "injector/vendor/cupti_*",
                         "injector/vendor/kernel_record.*"],
            ["injector_cupti_test", "injector_calls_test"],
            on_simgpu=["injection_test.py", "faults_test.py", "second_client_test.py"]),
    Subject("process", ["injector/process/*"],
            ["injector_settings_test", "injector_cupti_test", "injector_calls_test"],
            on_simgpu=["safety_test.py", "control_test.py", "fork_test.py"]),
]

# What is replaced by what. Of several a random one; spaces around operators are the formatter's.
SWAPS = [(" < ", [" <= ", " > "]), (" > ", [" >= ", " < "]), (" <= ", [" < "]), (" >= ", [" > "]),
         (" == ", [" != "]), (" != ", [" == "]), (" + ", [" - "]), (" - ", [" + "]),
         (" * ", [" / "]), (" / ", [" * "]), (" += ", [" -= "]), (" && ", [" || "]),
         (" || ", [" && "]), ("std::min(", ["std::max("]), ("std::max(", ["std::min("]),
         ("true", ["false"]), ("false", ["true"]), ("++", ["--"]), (" | ", [" & "])]
NUMBER = re.compile(r"(?<![\w.\"'x])(\d+)(?![\w.'])")
CONDITION = re.compile(r"\bif \((?!constexpr)")
CALL = re.compile(r"^\s*[A-Za-z_][\w:.>\-\[\]]*\([^{}]*\);\s*(//.*)?$")


@dataclass
class Mutant:
    file: Path  # from the root
    line: int   # from 0
    before: str
    after: str


def code_of(line: str) -> str:
    """The line with comments and texts blanked, at the same places."""
    line = re.sub(r'"(?:\\.|[^"\\])*"', lambda m: '"' * len(m.group()), line)
    cut = line.find("//")
    return line if cut < 0 else line[:cut] + " " * (len(line) - cut)


def mutants_of(line: str) -> list[str]:
    """Every change of one line."""
    code = code_of(line)
    if not code.strip() or code.lstrip().startswith(("#", "static_assert", "CHECK", "case ")):
        return []
    found = []
    for old, news in SWAPS:
        at = code.find(old)
        while at >= 0:
            word = old[0].isalpha() and (code[at - 1:at].isidentifier() or
                                         code[at + len(old):at + len(old) + 1].isidentifier())
            template = old in (" < ", " > ") and "template" in code
            if not word and not template:
                found += [line[:at] + new + line[at + len(old):] for new in news]
            at = code.find(old, at + 1)
    for match in NUMBER.finditer(code):
        number = int(match.group(1))
        found.append(line[:match.start()] + str(number + 1) + line[match.end():])
    for match in CONDITION.finditer(code):
        depth, end = 0, match.end() - 1
        while end < len(code):
            depth += {"(": 1, ")": -1}.get(code[end], 0)
            if depth == 0:
                break
            end += 1
        if depth == 0 and ";" not in code[match.end():end]:
            inner = line[match.end():end]
            found.append(line[:match.end()] + "!(" + inner + ")" + line[end:])
    if CALL.match(code) and not re.match(r"^\s*(return|throw|delete|REQUIRE|FLOPINJ)", code):
        found.append(re.match(r"\s*", line).group() + ";  // a call is left out")
    return found


def draw(subject: Subject, chance: random.Random) -> Mutant:
    files = sorted(path for pattern in subject.sources for path in ROOT.glob(pattern)
                   if path.suffix in (".cpp", ".h"))
    lines = [(path, i, text) for path in files
             for i, text in enumerate(path.read_text().split("\n"))]
    while True:
        path, i, text = chance.choice(lines)
        if changes := mutants_of(text):
            return Mutant(path.relative_to(ROOT), i, text, chance.choice(changes))


def run(command: list[str], seconds: float, **options) -> int:
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True, **options)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # what it has started, too
        return process.wait() or -1


def build(test: str, mutant: str = "") -> bool:
    """What the test needs and nothing else."""
    needs = (["injector/all", "tools/all", "tests/integration/all"]
             if test.startswith("integration/") else
             ["flopreduce", "make_traces"] if test.endswith(".py") else [test])
    return run(["ninja", "-C", BUILD, *needs], 3600,
               env=os.environ | {"FLOPINJ_MUTANT": mutant}) == 0


def passes(test: str) -> bool:
    """Until its first failure. An endless loop is one."""
    if not test.endswith(".py"):
        return run([BUILD / "test-bin" / test, "--abort"], 120) == 0
    arguments = (["--failfast"] if test.startswith("integration/") else
                 [BUILD / "bin/flopreduce", BUILD / "test-bin/make_traces"])
    environment = os.environ | {"FLOPINJ_BUILD": str(BUILD)}
    return run([PYTHON, COPY / "tests" / test, *arguments], 600,
               env=environment) == 0


def prepare() -> None:
    """A copy of the sources, configured as for development."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.split("\n")
    for name in filter(None, listed):
        source, copy = ROOT / name, COPY / name
        if not source.is_file():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not copy.exists() or copy.read_bytes() != source.read_bytes():
            shutil.copy2(source, copy)
    launcher = COPY / "launcher.sh"
    launcher.write_text(LAUNCHER)
    launcher.chmod(0o755)
    linker = ["-D", "CMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld",
              "-D", "CMAKE_SHARED_LINKER_FLAGS=-fuse-ld=lld"] if shutil.which("ld.lld") else []
    if run(["cmake", "--preset", "dev", "-S", COPY, "-D", f"Python3_EXECUTABLE={PYTHON}",
            "-D", f"CMAKE_CXX_COMPILER_LAUNCHER={launcher}", *linker], 600, cwd=COPY) != 0:
        sys.exit("mutants: the copy of the sources cannot be configured: " + str(COPY))


def verdict(mutant: Mutant, subject: Subject, sound: set[str]) -> tuple[str, str]:
    """What became of it, and the test that noticed. Tests are built one by one: the first that
    notices spares the others."""
    copy = COPY / mutant.file
    original = copy.read_text()
    lines = original.split("\n")
    lines[mutant.line] = mutant.after
    copy.write_text("\n".join(lines))
    result, noticed = "SURVIVED", ""
    for test in subject.every():
        if not build(test, "1"):
            result = "no program"
        elif not passes(test):
            result, noticed = "killed", test
        else:
            sound.add(test)
            continue
        break
    copy.write_text(original)
    if not build(test):
        sys.exit(f"mutants: {test} does not build without a change")
    if noticed and noticed not in sound:
        if not passes(noticed):
            sys.exit(f"mutants: {noticed} fails without a change")
        sound.add(noticed)
    return result, noticed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--subject", default="*", help="a pattern of subjects: " +
                        ", ".join(s.name for s in SUBJECTS))
    arguments = parser.parse_args()
    subjects = [s for s in SUBJECTS if fnmatch.fnmatch(s.name, arguments.subject)]
    if not subjects:
        parser.error(f"no subject is called {arguments.subject}")
    prepare()
    chance = random.Random(arguments.seed)
    chosen = [subjects[i % len(subjects)] for i in range(arguments.count)]
    for test in {test for subject in chosen for test in subject.every()}:
        if not build(test):
            sys.exit(f"mutants: {test} does not build without a change")
    sound: set[str] = set()  # tests that have passed
    counts = {"killed": 0, "SURVIVED": 0}
    for subject in chosen:
        began, result = time.monotonic(), "no program"
        while result == "no program":
            mutant = draw(subject, chance)
            result, noticed = verdict(mutant, subject, sound)
        counts[result] += 1
        print(f"{result:9} {subject.name}: {mutant.file}:{mutant.line + 1}: "
              f"{mutant.before.strip()}  ->  {mutant.after.strip()}  [{noticed} "
              f"{time.monotonic() - began:.0f} s]", flush=True)
    print(f"{counts['killed']} killed, {counts['SURVIVED']} survived"
          f" (seed {arguments.seed}, {arguments.count} mutants)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
