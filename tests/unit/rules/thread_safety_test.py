"""Locks as clang sees them: what a lock guards is only touched while it is held.
Use: thread_safety_test.py COMPILE_COMMANDS. Exits with 77, skipped, where there is no clang.

Sources with the same options are read as one, which takes a tenth of the time. Where that does not
compile, each of them is read by itself.
"""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
ROOMS = ("collector/", "injector/")
KEPT = ("-D", "-I", "-isystem", "-std=")


def arguments(command):
    """What of a compiler's command line says how a source is to be read."""
    words = iter(shlex.split(command))
    for word in words:
        if word == "-isystem":
            yield from (word, next(words))
        elif word.startswith(KEPT):
            yield word


def sources_of(entry):
    """What is compiled: a source, or those that CMake has put together in one."""
    source = Path(entry["directory"], entry["file"]).resolve()
    if "Unity" not in source.parts:
        return [source]
    return [Path(name) for name in re.findall(r'#include "(/[^"]*)"', source.read_text())]


def sources_with_locks(compile_commands):
    """By the folder and the options that they are compiled with."""
    groups, seen = {}, set()
    for entry in json.loads(compile_commands.read_text()):
        for source in sources_of(entry):
            if source in seen or not source.is_relative_to(ROOT):
                continue
            if (not str(source.relative_to(ROOT)).startswith(ROOMS)
                    or "Lock" not in source.read_text()):
                continue
            seen.add(source)
            how = (entry["directory"], *arguments(entry["command"]))
            groups.setdefault(how, []).append(source)
    return groups


def read(clang, how, sources):
    """What clang says of them; empty where it has nothing to say."""
    folder, *options = how
    command = [clang, "-fsyntax-only", "-Wthread-safety", "-Werror=thread-safety", *options,
               "-x", "c++", "-"]
    text = "".join(f'#include "{source}"\n' for source in sources)
    done = subprocess.run(command, cwd=folder, input=text, capture_output=True, text=True)
    return done.stderr if done.returncode != 0 else ""


def main():
    clang = shutil.which("clang++")
    if clang is None:
        print("skipped: no clang++; `apt-get install clang` brings it")
        return 77
    groups = sources_with_locks(Path(sys.argv[1]))
    failed = []
    for how, sources in groups.items():
        if not read(clang, how, sources):
            continue
        for source in sources:
            if said := read(clang, how, [source]):
                failed.append(str(source.relative_to(ROOT)))
                print(said)
    count = sum(map(len, groups.values()))
    assert count > 10, "the sources with locks were not found"
    print(f"{count} sources, {len(failed)} failed: {' '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
