"""Locks as clang sees them: what a lock guards is only touched while it is held.
Use: thread_safety_test.py COMPILE_COMMANDS. Exits with 77, skipped, where there is no clang."""

import json
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


def main():
    clang = shutil.which("clang++")
    if clang is None:
        print("skipped: no clang++")
        return 77
    seen, failed = set(), []
    for entry in json.loads(Path(sys.argv[1]).read_text()):
        source = Path(entry["directory"], entry["file"]).resolve()
        if source in seen or not source.is_relative_to(ROOT):
            continue
        name = str(source.relative_to(ROOT))
        if not name.startswith(ROOMS) or "Lock" not in source.read_text():
            continue
        seen.add(source)
        command = [clang, "-fsyntax-only", "-Wthread-safety", "-Werror=thread-safety",
                   *arguments(entry["command"]), str(source)]
        done = subprocess.run(command, cwd=entry["directory"], capture_output=True, text=True)
        if done.returncode != 0:
            failed.append(name)
            print(done.stderr)
    assert len(seen) > 10, "the sources with locks were not found"
    print(f"{len(seen)} sources, {len(failed)} failed: {' '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
