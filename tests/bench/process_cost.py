"""What ranges, short threads and forks cost a program on the simulated GPU, with and without the
profiler: medians over runs in turn. On a busy machine read the rows of one run against one another.
Use: process_cost.py BUILD [RUNS]"""

import statistics
import sys
from pathlib import Path

import launch_overhead

CASES = ("none", "count", "timing", "multiplex", "dormant", "after")


def main():
    build = Path(sys.argv[1]).resolve()
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    client = [build / "tests/bench/process_cost_client", build / "tests/bench/client_kernels.ptx"]
    results = {case: [] for case in CASES}
    for _ in range(runs):
        for case in CASES:
            results[case].append(launch_overhead.run(build, client, launch_overhead.CASES[case]))
    columns = list(results["none"][0])
    print(f"{'profiler':>10}" + "".join(f"{column:>15} {'added':>8}" for column in columns))
    plain = {c: statistics.median(r[c] for r in results["none"]) for c in columns}
    for case, rows in results.items():
        medians = {c: statistics.median(r[c] for r in rows) for c in columns}
        print(f"{case:>10}" + "".join(f"{medians[c]:>15.1f} {medians[c] - plain[c]:>8.1f}"
                                      for c in columns))


if __name__ == "__main__":
    main()
