"""Traces recorded on GPUs still reduce to the reports that were checked against theory when they
were recorded.

Usage: data_test.py FLOPREDUCE [--update]. Ends with 77 (skipped) while no trace has been recorded.
"""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SKIPPED = 77


def reduce(flopreduce, trace):
    """Exit code, and standard output or what went wrong."""
    done = subprocess.run([flopreduce, "--format", "json", trace.name], cwd=trace.parent, text=True,
                          timeout=60, capture_output=True, check=False)
    return (done.returncode, done.stdout) if done.stdout else (done.returncode, done.stderr)


def problem(flopreduce, trace):
    """What is wrong with this trace's report, or an empty string."""
    expected = trace.with_suffix(".json")
    for file in (expected, trace.with_suffix(".about.json")):
        if not file.exists():
            return f"{file.name} is missing"
    code, output = reduce(flopreduce, trace)
    if code not in (0, 3):
        return f"flopreduce ended with {code}: {output.strip()}"
    wanted, got = json.loads(expected.read_text()), json.loads(output)
    return "" if got == wanted else "differs in " + ", ".join(
        sorted(key for key in wanted.keys() | got.keys() if wanted.get(key) != got.get(key)))


def main(flopreduce, *options, folder=HERE):
    traces = sorted(folder.glob("*.pb"))
    failed = 0
    for trace in traces:
        if "--update" in options:
            trace.with_suffix(".json").write_text(reduce(flopreduce, trace)[1])
        why = problem(flopreduce, trace)
        failed += bool(why)
        print(f"{trace.name}: {why or 'as recorded'}")
    orphans = [file.name for file in sorted(folder.glob("*.json"))
               if not (folder / (file.stem.removesuffix(".about") + ".pb")).exists()]
    for name in orphans:
        print(f"{name}: its trace is missing")
    print(f"{len(traces)} traces, {failed + len(orphans)} problems")
    if failed or orphans:
        return 1
    if not traces:
        print("skipped: no trace of a GPU is here; `tests/gpu/run` records them")
    return 0 if traces else SKIPPED


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), *sys.argv[2:]))
