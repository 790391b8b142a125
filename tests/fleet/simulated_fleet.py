"""Traces of a fleet, made from two recordings a job: one of a rank that reads counters and one of
a rank that does not. One rank of each job is planted: its kernels take longer."""

import os
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import ranks  # noqa: E402

SLOWDOWN = 1.3
MODELS = [(model, batch) for model in ("mlp", "cnn") for batch in (8, 16, 32, 64)]
MAY = 1_777_593_600_000_000_000  # 2026-05-01, in ns


@dataclass
class Job:
    name: str
    folder: Path
    slow_rank: int
    traces: list


def record(build, folder, model, batch):
    """The traces of rank 0, which measures, and of rank 1, which counts and times."""
    tree, found = Path(build).resolve(), []
    for rank in (0, 1):
        trace = Path(folder) / f"{model}-{batch}-{rank}.pb"
        environment = {k: v for k, v in os.environ.items() if not k.startswith("FLOPINJ_")}
        environment |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2",
                        "FLOPINJ_PLAN_WAIT_MS": "60000"}
        subprocess.run(
            [tree / "bin/flopinj", "run", "--simulate", "-q", "--budget", "none", "-o",
             str(trace).replace(".pb", "-%r.pb"), "--", tree / "lib/flopinj/trainer/trainer",
             "--model", model, "--batch", str(batch), "--steps", "12", "--ranges", "pytorch"],
            env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            timeout=120)
        found.append(ranks.Trace(trace.with_name(f"{trace.stem}-{rank}.pb").read_bytes()))
    return found


def make(build, folder, jobs=len(MODELS), size=250, seed=1, **changes):
    """Folders of traces, `FOLDER/JOB/rankN.pb`, for as many jobs of as many ranks."""
    draw, made = random.Random(seed), []
    with tempfile.TemporaryDirectory(prefix="flopinj-fleet-") as scratch:
        for number in range(jobs):
            model, batch = MODELS[number % len(MODELS)]
            measuring, other = record(build, scratch, model, batch)
            job = Job(f"{model}-{batch}", Path(folder) / f"{model}-{batch}",
                      draw.randrange(1, size), [])
            job.folder.mkdir(parents=True)
            for rank in range(size):
                trace = (other if rank else measuring).of_rank(
                    rank, size, host=f"node{rank // 8}", session=draw.getrandbits(63) + 1,
                    begin_ns=MAY + number * 10**12,
                    slowdown=SLOWDOWN if rank == job.slow_rank else None, **changes)
                job.traces.append(job.folder / f"rank{rank}.pb")
                job.traces[-1].write_bytes(trace)
            made.append(job)
    return made
