"""A fleet without a GPU: eight jobs of 250 simulated ranks, in each of them one that is slower than
the others. flopinj fleet takes the traces in and has to name exactly these.

Usage: demo.py BUILD FOLDER"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python")]
import simulated_fleet  # noqa: E402
import staged  # noqa: E402


def check(right, what):
    print(f"{'right' if right else 'WRONG'}: {what}")
    return right


def main(build, folder):
    shutil.rmtree(folder, ignore_errors=True)
    packages = staged.stage(folder / "packages", build)
    jobs = simulated_fleet.make(build, folder / "runs")
    environment = {**os.environ, "PYTHONPATH": str(packages)}

    def fleet(*words, shown=True):
        if shown:
            print("$ flopinj fleet", *words, flush=True)
        done = subprocess.run([sys.executable, "-m", "flopinj", "fleet", *words], cwd=folder,
                              env=environment, text=True, check=True, stdout=subprocess.PIPE)
        if shown:
            print(done.stdout)
        return done.stdout

    def asked(*words):
        return json.loads(fleet(*words, "--lake", "lake", "--format", "json", shown=False))

    fleet("ingest", "runs", "--out", "lake")
    for words in (("jobs", "--price", "2.5"), ("lost",), ("models", "--electricity", "0.3"),
                  ("days",), ("stragglers",), ("hosts",), ("kernels",), ("measured",)):
        fleet(*words, "--lake", "lake")

    reports = {job.name: json.loads(subprocess.run(
        [build / "bin/flopreduce", "--format", "json", "--table", "figures", job.folder],
        check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)["figures"]
        for job in jobs}
    by_utilization = sorted(reports, key=lambda name: -reports[name]["hfu_kernel_time"])
    flop = {row["job"]: int(row["flop"])
            for row in asked("sql", "SELECT job, sum(flop) AS flop FROM rows GROUP BY job")}
    return all([
        check({(row["job"], row["rank"]) for row in asked("stragglers", "--top", "100")} ==
              {(job.name, job.slow_rank) for job in jobs},
              "the stragglers are the planted ranks, and no others"),
        check([row["job"] for row in asked("jobs")] == by_utilization,
              "jobs are in the order of their utilization, as flopreduce reports it"),
        check(flop == {name: int(report["flop_exact"]) for name, report in reports.items()},
              "FLOP by SQL are those of flopreduce to the last digit"),
    ])


if __name__ == "__main__":
    sys.exit(0 if main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()) else 1)
