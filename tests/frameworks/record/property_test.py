#!/usr/bin/env python3
"""Random networks from real PyTorch: recorded, reduced, compared with the oracle. A network that
differs is made as small as it can be while the same kind of figure still differs. `tools/dev
frameworks --seed N` runs it.

What the report says it does not know is no difference here; how much that is, is printed."""

import argparse
import json
import os
import re
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
import random_networks  # noqa: E402
import record  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import as_gpu  # noqa: E402
import compare  # noqa: E402

STREAMS, FOUND = Path(__file__).resolve().parents[1] / "streams", Path(
    __file__).resolve().parent / "found.json"


def check(build, description, keep=None):
    """(figures that differ without a mark, figures with one); None where PyTorch cannot train the
    network at all."""
    with tempfile.TemporaryDirectory(prefix="flopinj-frameworks-") as folder:
        out = Path(folder)
        code = record.in_child(lambda: record.record(
            "random", random_networks.program(description), out, quiet=keep is None))
        if code == record.REFUSED:
            return None
        if code != 0:
            sys.exit(f"not recorded: {json.dumps(description)}")
        stream = out / "random.jsonl.xz"
        # The observer of flopinj.torch names operators' settings, too.
        by_torch = description.get("names", "emit_nvtx") != "emit_nvtx"
        differ = compare.differences(build, as_gpu.convert(stream, by_torch), out / "trace.pb")
        if keep:
            stream.replace(keep)
        return [d for d in differ if d[3] is None], [d for d in differ if d[3] is not None]


def kinds(differ):
    return {re.sub(r"(operator|formula of) \S+:", r"\1:", figure) for figure, *_ in differ}


def shrink(build, description, wanted):
    changed = True
    while changed:
        changed = False
        for fewer in random_networks.smaller(description):
            result = check(build, fewer)
            if result is not None and kinds(result[0]) & wanted:
                description, changed = fewer, True
                break
    return description


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path, help="build folder, with flopreduce and write_trace")
    parser.add_argument("--seed", type=int, required=True, help="the first seed")
    parser.add_argument("--count", type=int, default=1, help="how many seeds, one after the other")
    parser.add_argument("--no-shrink", action="store_true", help="only say what differs")
    parser.add_argument("--add", action="store_true",
                        help="add what is found, made small, to the recorded streams")
    options = parser.parse_args()
    if "NVTX_INJECTION64_PATH" not in os.environ:
        parser.error("run it by tools/dev frameworks, which builds the recorder of NVTX")
    failed = passed = marked = 0
    # What differs of any network at all tells nothing of this one.
    always = kinds(check(options.build, random_networks.PLAIN)[0])
    for seed in range(options.seed, options.seed + options.count):
        description = random_networks.describe(seed)
        result = check(options.build, description)
        if result is None:
            print(f"seed {seed}: PyTorch itself refuses it")
            continue
        differ, with_mark = result
        marked += len(with_mark)
        if not differ:
            passed += 1
            print(f"seed {seed}: right" +
                  (f", {len(with_mark)} figures with a mark" if with_mark else ""))
            continue
        failed += 1
        print(f"seed {seed}: {len(differ)} figures differ")
        if not options.no_shrink:
            description = shrink(options.build, description, kinds(differ) - always or always)
            differ, _ = check(options.build, description)
            print(f"  as small as it gets: {json.dumps(description)}")
        for figure, value, right, _ in differ:
            print(f"  {figure}: reported {value}, is {right}")
        sys.stdout.flush()
        if options.add:
            name = f"random_{seed}"
            check(options.build, description, keep=STREAMS / f"{name}.jsonl.xz")
            found = json.loads(FOUND.read_text()) if FOUND.exists() else {}
            FOUND.write_text(json.dumps(found | {name: description}, indent=1) + "\n")
            print(f"  added as {name}: mend the figure, or mark it and run "
                  "frameworks_test.py BUILD --renew")
    print(f"{marked} figures differ and have a mark")
    print(f"{passed} passed, {failed} failed, {options.count - passed - failed} skipped")
    sys.exit(0 if passed and not failed else 1)


if __name__ == "__main__":
    main()
