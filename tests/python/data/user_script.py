"""A user's script with types: what is used of the package says what it is."""

from __future__ import annotations

import sys
from pathlib import Path

import flopinj
import flopinj.callbacks
import flopinj.jax
import flopinj.torch
from flopinj import tracking


@flopinj.range("layer:one")
def layer(x: float) -> float:
    return 2 * x


@flopinj.range
def activation(x: float) -> float:
    return max(x, 0.0)


def train(batches: list[list[float]]) -> float:
    loss = 0.0
    for batch in batches:
        with flopinj.step(tokens=len(batch)), flopinj.phase("forward", images=1):
            loss += sum(map(layer, batch))
    return loss


def recorded(batches: list[list[float]]) -> flopinj.Report:
    with flopinj.record("steps.pb", budget="none", launch_count=100) as run:
        train(batches)
    traces: list[Path] = run.traces
    print(run, *traces)
    return run.report


def read(report: flopinj.Report) -> int | None:
    flop: int | None = report.flop
    seconds: float | None = report.gpu_time
    names: list[str] = report.tables
    notices: list[str] = report.notices
    print(seconds, names, notices, report.hfu, report["mfu"], "hfu" in report)
    print(report.kernels.head(), report.table("phases"), report.arrow("kernels").schema)
    print(report.sql("SELECT phase, flop FROM phases")["flop"].sum())
    report.plot("roofline").set_title("mine")
    report.show()
    explained: flopinj.Explanation = report.explain("MFU", also="phase_precisions")
    print(explained.text(), report.save("report.html"))
    text: str = report.text(all=True) + report.html()
    return None if not text else flop


def tracked(batches: list[list[float]], writer: object) -> None:
    def printed(values: dict[str, float], step: int) -> None:
        print(step, values)

    with tracking.Log(tracking.tensorboard(writer), tracking.mlflow(), printed, every=60) as log:
        flopinj.callbacks.lightning(log=log, tokens=len)
        for number, batch in enumerate(batches):
            train([batch])
            log.step(number)
    sampler: tracking.Sampler = tracking.opentelemetry()
    hfu: float | None = sampler.values.get("hfu")
    print(hfu, tracking.sample())


def control() -> None:
    name: str | None = flopinj.start("now.pb", level="tally")
    status: dict[str, object] | None = flopinj.status()
    print(name, status, flopinj.stop(), flopinj.environment(output="t-%p.pb"), flopinj.LIBRARY)


def main(before: Path, after: str) -> int:
    try:
        job: Path = flopinj.merge([before, after], out="job.sum")
        compared: flopinj.Comparison = flopinj.compare(before, after, top=5)
        compared.plot("lost").set_title("mine")
        print(compared["total"], compared.compared_kernels)
        print(flopinj.__version__, flopinj.jax.save_names("names"))
        read(flopinj.load(job, str(before), batch_size=32, phase=["a=x", "b=y"]))
    except flopinj.Error as error:
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
