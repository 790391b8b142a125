"""The profiler's cost for a launch and for cuInit of a program on the simulated GPU: medians over
runs in turn, with and without it. The simulated driver is faster than a real one: read the
difference, not the ratio. Use: launch_overhead.py BUILD [RUNS]"""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path


def run(build, client, settings):
    """What the client prints, by names."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("FLOPINJ_", "SIMGPU_"))}
    env["LD_LIBRARY_PATH"] = str(build / "lib/flopinj/simgpu")
    with tempfile.TemporaryDirectory() as folder:
        if settings is not None:
            env["CUDA_INJECTION64_PATH"] = str(build / "lib/libflopinj.so")
            env["NVTX_INJECTION64_PATH"] = env["CUDA_INJECTION64_PATH"]
            env["FLOPINJ_OUTPUT"] = f"{folder}/trace.pb"
            env.update(settings)
        done = subprocess.run([str(c) for c in client], env=env, check=True, text=True,
                              stdout=subprocess.PIPE)
    return {
        name: float(value) for name, value in (line.split() for line in done.stdout.splitlines())
    }


CASES = {"none": None, "count": {"FLOPINJ_MODE": "count"}, "timing": {"FLOPINJ_MODE": "timing"},
         "multiplex": {"FLOPINJ_MODE": "multiplex"},
         "tally": {"FLOPINJ_MODE": "count", "FLOPINJ_LEVEL": "tally"},
         # Before a recording, and after one of a single launch.
         "dormant": {"FLOPINJ_DORMANT": "1"},
         "after": {"FLOPINJ_MODE": "timing", "FLOPINJ_LAUNCH_COUNT": "1"}}


def main():
    build = Path(sys.argv[1]).resolve()
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    print(f"{'threads':>7} {'profiler':>10} {'launch ns':>10} {'added ns':>9} {'ratio':>6} "
          f"{'cuInit ms':>10} {'added ms':>9}")
    for threads in (1, 2, 4, 8):
        results = {name: [] for name in CASES}
        for _ in range(runs):
            for name, settings in CASES.items():
                client = [build / "tests/bench/launch_rate_client", "0.3", threads,
                          build / "tests/bench/client_kernels.ptx"]
                results[name].append(run(build, client, settings))
        medians = {name: {key: statistics.median(r[key] for r in all_runs) for key in all_runs[0]}
                   for name, all_runs in results.items()}
        plain = medians["none"]
        for name, m in medians.items():
            print(f"{threads:>7} {name:>10} {m['launch_ns']:>10.0f} "
                  f"{m['launch_ns'] - plain['launch_ns']:>9.0f} "
                  f"{m['launch_ns'] / plain['launch_ns']:>6.2f} {m['init_ns'] / 1e6:>10.2f} "
                  f"{(m['init_ns'] - plain['init_ns']) / 1e6:>9.2f}")


if __name__ == "__main__":
    main()
