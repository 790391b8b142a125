"""How fast flopreduce reads: generated traces of growing size, on one thread and on two, against
Python and SQLite on the same events. Every answer is checked against what the generator says. Files
go to BUILD/bench-traces and are removed again. Use: reduce_bench.py BUILD [LAUNCHES...]"""

import json
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

RUNS = 3
COMPARED = 1_000_000  # launches for Python and SQLite: 100 M events would be 20 GB of JSON


def generate(build, folder, launches, *options):
    trace = folder / f"{launches}.pb"
    command = [build / "tests/bench/training_trace", str(launches), trace, *options]
    expected = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    subprocess.run(["cat", trace], stdout=subprocess.DEVNULL, check=True)  # into the page cache
    return trace, expected


def reduce_once(build, trace, jobs, form="text"):
    """Wall and CPU seconds, peak resident MB, and the report."""
    out = trace.with_suffix(".report")
    began = time.perf_counter()
    process = subprocess.Popen(
        [build / "bin/flopreduce", "--format", form, "-j",
         str(jobs), "-o", out, trace])
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    if status != 0:
        sys.exit(f"flopreduce ended with {status}")
    report = out.read_text()
    out.unlink()
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, report


def check(report, expected):
    report = json.loads(report)
    figures = report["figures"]
    found = figures["launches"], figures["gpu_time_ns"], sum(
        device["kernel_sum_ns"] for device in report["device_time"])
    if found != (expected["launches"], expected["gpu_time_ns"], expected["gpu_time_ns"]):
        sys.exit(f"wrong answer: {found}, expected {expected}")


def throughput(build, folder, sizes):
    print(
        f"{'launches':>11} {'bytes each':>10} {'jobs':>4} {'wall s':>7} {'CPU s':>7} "
        f"{'M/s wall':>8} {'M/s CPU':>8} "
        f"{'speed-up':>8} {'peak MB':>7}")
    # Where ranges name operators a pass more is made, on one thread.
    for launches, options in [(size, ()) for size in sizes] + [(sizes[0], ("--operators",))]:
        if options:
            print("ranges that name operators:")
        trace, expected = generate(build, folder, launches, *options)
        reports = set()
        alone = None
        for jobs in (1, 2):
            runs = [reduce_once(build, trace, jobs) for _ in range(RUNS)]
            wall, cpu, memory = (min(r[i] for r in runs) for i in range(3))
            alone = alone or wall
            reports.update(r[3] for r in runs)
            print(
                f"{launches:>11,} {expected['bytes'] / launches:>10.2f} {jobs:>4} {wall:>7.3f} "
                f"{cpu:>7.3f} "
                f"{launches / wall / 1e6:>8.1f} {launches / cpu / 1e6:>8.1f} {alone / wall:>8.2f} "
                f"{memory:>7.0f}"
            )
        if len(reports) != 1:
            sys.exit("reports differ between runs")
        check(reduce_once(build, trace, 1, "json")[3], expected)
        trace.unlink()


def python_sums(events):
    sums = {}
    for event in json.loads(events.read_text())["traceEvents"]:
        key = event["name"], event["args"]["grid"], event["args"]["range"]
        row = sums.setdefault(key, [0, 0.0])
        row[0] += 1
        row[1] += event["dur"]
    return sums


def fill_database(events, path):
    database = sqlite3.connect(path)
    database.execute(
        "CREATE TABLE kernel (name TEXT, grid INT, range TEXT, stream INT, start_us REAL, "
        "duration_us REAL)"
    )
    database.executemany("INSERT INTO kernel VALUES (?, ?, ?, ?, ?, ?)", (
        (e["name"], e["args"]["grid"], e["args"]["range"], e["tid"], e["ts"], e["dur"])
        for e in json.loads(events.read_text())["traceEvents"]))
    database.commit()
    return database


def cpu_of(work):
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def comparison(build, folder):
    events = folder / "events.json"
    trace, expected = generate(build, folder, COMPARED, events)
    ours = min(reduce_once(build, trace, 1)[1] for _ in range(RUNS))
    python, sums = cpu_of(lambda: python_sums(events))
    if sum(row[0] for row in sums.values()) != expected["launches"]:
        sys.exit("Python lost events")
    path = folder / "events.sqlite"
    path.unlink(missing_ok=True)
    database = fill_database(events, path)
    query = ("SELECT name, grid, range, COUNT(*), SUM(duration_us) FROM kernel "
             "GROUP BY name, grid, range")
    sqlite, rows = cpu_of(lambda: database.execute(query).fetchall())
    if len(rows) != len(sums):
        sys.exit("SQLite has other rows than Python")
    database.close()
    print(f"\n{COMPARED:,} launches by kernel, grid and range, CPU time of one thread")
    print(f"{'':>28} {'MB':>6} {'s':>7} {'ratio':>6}")
    for name, file, seconds in (("flopreduce, whole report", trace, ours),
                                ("Python: json, dict", events, python), ("SQLite: GROUP BY, loaded",
                                                                         path, sqlite)):
        print(
            f"{name:>28} {file.stat().st_size / 1e6:>6.1f} {seconds:>7.3f} {seconds / ours:>6.1f}")
    for file in (trace, events, path):
        file.unlink()


def main():
    build = Path(sys.argv[1]).resolve()
    sizes = [int(s) for s in sys.argv[2:]] or [1_000_000, 10_000_000, 100_000_000]
    folder = build / "bench-traces"
    folder.mkdir(exist_ok=True)
    throughput(build, folder, sizes)
    comparison(build, folder)


if __name__ == "__main__":
    main()
