"""The ratios that README.md here prints, each said once in this file: measured in processor time,
that of threads in wall time, and held against the page. Absolute times depend on the machine,
ratios of one run hardly do.

Use: ratios.py BUILD [--write]. It fails where a ratio is off by more than its tolerance; with
--write it puts what it has measured into the page."""

import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
import ranks  # noqa: E402

PAGE = ROOT / "tests/bench/README.md"
LAUNCHES = 10_000_000
RANKS = 2_000
RUNS = 3


class Bench:
    """Files and programs; every measurement is made once."""

    def __init__(self, build, folder):
        self.build, self.folder = build, folder

    def run(self, *command):
        """CPU seconds, MB and seconds of the least of some runs."""
        best = []
        for _ in range(RUNS):
            began = time.perf_counter()
            process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            if status != 0:
                sys.exit(f"{' '.join(map(str, command))}: ended with {status}")
            best.append((usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024,
                         time.perf_counter() - began))
        return tuple(min(figures) for figures in zip(*best))

    @cache
    def trace(self, *options):
        path = self.folder / f"trace{'-'.join(options)}.pb"
        subprocess.run([self.build / "tests/bench/training_trace", str(LAUNCHES), path, *options],
                       check=True, stdout=subprocess.DEVNULL)
        return path

    @cache
    def summary(self):
        self.reduce("merge", "--force", "-o", self.folder / "trace.sum", self.trace())
        return self.folder / "trace.sum"

    @cache
    def job(self):
        """A summary of many ranks of a small recording."""
        small, traces = self.folder / "small.pb", self.folder / "ranks"
        subprocess.run([self.build / "tests/bench/training_trace", "624", small], check=True,
                       stdout=subprocess.DEVNULL)
        trace = ranks.Trace(small.read_bytes())
        traces.mkdir()
        for rank in range(RANKS):
            (traces / f"{rank}.pb").write_bytes(trace.of_rank(
                rank, RANKS, host=f"node{rank // 8}", session=rank + 1, job="job"))
        subprocess.run([self.build / "bin/flopreduce", "merge", "-o", self.folder / "job.sum",
                        traces], check=True, stderr=subprocess.DEVNULL)
        return self.folder / "job.sum"

    @cache
    def reduce(self, *words):
        return self.run(self.build / "bin/flopreduce", *words)

    def report(self, trace, *words, jobs=1):
        return self.reduce("-q", f"-j{jobs}", *words, trace)


def time_of(words, options=()):
    """A report in another form, against the first screen of the same trace."""
    return lambda b: (b.report(b.trace(*options), *words)[0] / b.report(b.trace(*options))[0])


def merged(b, *options):
    return b.reduce("merge", "--force", "-o", b.folder / "merged.sum", b.trace(*options))[0]


def merging(*options):
    return lambda b: merged(b, *options) / b.report(b.trace(*options))[0]


def on_two_threads(*options):
    """Wall time on one thread against that on two."""
    return lambda b: (b.report(b.trace(*options))[2] / b.report(b.trace(*options), jobs=2)[2])


def totals(b, *options):
    """A report of sums alone: no ledger and no list of kernels."""
    return b.report(b.trace(*options), "--sections", "phases")[0]


@dataclass(frozen=True)
class Ratio:
    row: str  # of the page
    measure: object  # of a Bench
    tolerance: float = 1.4  # a factor, upwards and downwards


RATIOS = (
    Ratio("the first screen / totals alone (`--sections phases`)",
          lambda b: b.report(b.trace())[0] / totals(b)),
    Ratio("a merge of one trace / totals alone", lambda b: merged(b) / totals(b)),
    Ratio("the first screen where ranges name operators / totals alone there",
          lambda b: b.report(b.trace("--operators"))[0] / totals(b, "--operators")),
    Ratio("wall time of the first screen on one thread / on two", on_two_threads(), 2),
    Ratio("wall time where ranges name operators on one thread / on two",
          on_two_threads("--operators"), 2),
    Ratio("all sections (`--all`) / the first screen", time_of(["--all"])),
    Ratio("JSON / the first screen", time_of(["--format=json"])),
    Ratio("HTML / the first screen", time_of(["--format=html"])),
    Ratio("SQLite / the first screen", time_of(["--format=sqlite"])),
    Ratio("the first screen / stacks alone (`--format folded`), which need no ledger",
          lambda b: b.report(b.trace())[0] / b.report(b.trace(), "--format=folded")[0]),
    Ratio("the first screen where ranges name operators / where not",
          lambda b: b.report(b.trace("--operators"))[0] / b.report(b.trace())[0]),
    Ratio("a merge of one trace / its first screen", merging()),
    Ratio("a merge where ranges name operators / its first screen", merging("--operators")),
    Ratio("the first screen of a trace / of its summary",
          lambda b: b.report(b.trace())[0] / b.report(b.summary())[0], 1.6),
    Ratio("the JSON form of a summary of 2,000 ranks / the text",
          lambda b: b.report(b.job(), "--format=json")[0] / b.report(b.job())[0]),
    Ratio("memory of the JSON form of that summary / of the text",
          lambda b: b.report(b.job(), "--format=json")[1] / b.report(b.job())[1], 1.15),
)


def row_of(ratio):
    return re.compile(rf"^\| {re.escape(ratio.row)} \| ([\d.]+) \|$", re.MULTILINE)


def main():
    build, write = Path(sys.argv[1]).resolve(), "--write" in sys.argv[2:]
    page, wrong = PAGE.read_text(), []
    for ratio in RATIOS:
        if not row_of(ratio).search(page):
            sys.exit(f"{PAGE.relative_to(ROOT)} has no row '{ratio.row}'")
    with tempfile.TemporaryDirectory(dir=build, prefix="ratios-") as folder:
        bench = Bench(build, Path(folder))
        for ratio in RATIOS:
            said = float(row_of(ratio).search(page)[1])
            found = ratio.measure(bench)
            off = not said / ratio.tolerance <= found <= said * ratio.tolerance
            print(f"{found:7.2f}  the page says {said:5.2f}{'  WRONG' if off else ''}  {ratio.row}",
                  flush=True)
            wrong += [ratio.row] if off else []
            if write:
                page = row_of(ratio).sub(f"| {ratio.row} | {found:.3g} |", page)
    if write:
        PAGE.write_text(page)
    elif wrong:
        sys.exit(f"{len(wrong)} ratios of {PAGE.relative_to(ROOT)} are not what is measured: "
                 "tools/dev bench --check --write")


if __name__ == "__main__":
    main()
