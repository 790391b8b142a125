"""Figures of this process while it is recorded, for experiment trackers and OpenTelemetry.

    from flopinj import tracking

    with tracking.Log(tracking.tensorboard(writer), tracking.mlflow(), tracking.wandb()) as log:
        for number, batch in enumerate(loader):
            with flopinj.step(tokens=batch.numel()):
                train(batch)
            log.step(number)

They are those of `flopinj report`, of the recording so far, and have its names. One that is not
known is not logged, and never 0. Where nothing is recorded nothing is logged, and no error of a
tracker reaches the program.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from typing import NamedTuple

from flopinj import _control, _programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict

    #: Takes figures by name, and the number of the step.
    Sink = Callable[[Dict[str, float], int], None]


_PATIENCE_S = 60  # with a trace that is read, as on a file system that does not answer


class Figure(NamedTuple):
    key: str  # in `flopinj report --format json`
    instrument: str  # of OpenTelemetry, behind "flopinj."
    unit: str  # UCUM's
    meaning: str
    grows: bool = False  # a sum: of one that is only known in part, that part counts


FIGURES = (
    Figure("hfu", "hfu", "1", "Hardware FLOP utilization, by wall time"),
    Figure("mfu", "mfu", "1", "Model FLOP utilization, by wall time"),
    Figure("flop", "flop", "{FLOP}", "Executed floating-point operations", grows=True),
    Figure("flop_per_s", "flop.rate", "{FLOP}/s", "The same for each second of GPU time"),
    Figure("flop_per_token", "flop.per_token", "{FLOP}/{token}",
           "The same for each of the `tokens` that ranges were given"),
    Figure("energy_j", "energy", "J", "Energy that the GPUs took", grows=True),
    Figure("flop_per_j", "flop.per_energy", "{FLOP}/J", "Executed FLOP for each joule"),
)


def sample() -> dict[str, float]:
    """The figures of this process's recording that are known by now. Reads its trace."""
    status = _control.status() or {}
    output = status.get("output")
    if not output:
        return {}
    # Tokens come to a trace once a second, later than launches do: then that is 1 % at most.
    late = status["state"] == "recording" and float(str(status["seconds"])) < 100
    text = _programs.run("flopreduce", "--quiet", "--jobs=1", "--format=json",
                         "--table=figures,numbers", str(output), fine=(0, 3),
                         patience=_PATIENCE_S)
    report = json.loads(text)
    figures = report["figures"]
    for row in report["numbers"]:
        if row["whole"] and row["number"] == "tokens" and not late:
            figures["flop_per_token"] = row["flop_each"]
    known = {}
    for figure in FIGURES:
        value = figures.get(figure.key)
        if value is None and figure.grows:
            value = figures.get(figure.key + "_at_least") or None  # of 0 nothing is known
        if value is not None and figures["launches"]:
            known[figure.key] = float(value)
    return known


class Sampler:
    """Samples every so many seconds, on a thread of its own, and of a long trace so seldom that it
    takes 2 % of a core at most."""

    _MOST_SHARE = 0.02

    def __init__(self, every: float = 30) -> None:
        self._every = every
        self._values: dict[str, float] = {}
        self._new = False
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="flopinj-tracking", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # the program has all threads that it may have: one sample, at the end
            self._ended.set()

    @property
    def values(self) -> dict[str, float]:
        """The newest ones."""
        with self._lock:
            return dict(self._values)

    def take(self) -> dict[str, float]:
        """The newest ones; none where they were taken before."""
        with self._lock:
            new, self._new = self._new, False
            return dict(self._values) if new else {}

    def close(self) -> None:
        """Samples once more, and ends. May be called again."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._sample()

    def _sample(self) -> None:
        with suppress(Exception):  # no trace yet, or the program ends
            values = sample()
            with self._lock:
                self._values, self._new = values, True

    def _run(self) -> None:
        while True:
            began = time.monotonic()
            self._sample()
            took = time.monotonic() - began
            if self._ended.wait(max(self._every - took, took / self._MOST_SHARE)):
                return


class Log:
    """Gives new figures to sinks at the end of a step, on the thread that trains, since trackers
    have their current run there. A sink that fails gets no more, and a line says so."""

    def __init__(self, *sinks: Sink, every: float = 30) -> None:
        self.sinks = list(sinks)
        self._every = every
        self._sampler: Sampler | None = None
        self._number = 0

    def step(self, number: int) -> None:
        """After step `number`. Quick: reading the trace is the sampler's thread's work."""
        self._number = number
        if self._sampler is None:
            self._sampler = Sampler(self._every)
        self._give(self._sampler.take())

    def close(self) -> None:
        """Gives the last figures. May be called again."""
        if self._sampler is not None:
            self._sampler.close()
            self._give(self._sampler.take())
            self._sampler = None

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _give(self, values: dict[str, float]) -> None:
        if not values:
            return
        named = {f"flopinj/{key}": value for key, value in values.items()}
        for sink in list(self.sinks):
            try:
                sink(dict(named), self._number)
            except Exception as error:  # the tracker's, whatever it is
                self.sinks.remove(sink)
                name = getattr(sink, "__qualname__", repr(sink)).split(".")[0]
                _programs.say(f"{name} gets no more figures: {error}")


def tensorboard(writer: Any) -> Sink:
    """Scalars of TensorBoard. `writer`: PyTorch's SummaryWriter, tensorboardX's, or another that
    has add_scalar(name, value, step)."""

    def sink(values: dict[str, float], step: int) -> None:
        for name, value in values.items():
            writer.add_scalar(name, value, step)

    return sink


def mlflow(run_id: str | None = None) -> Sink:
    """Metrics of a run of MLflow. None: the run that is active at first."""
    tracker = _programs.needed("mlflow")

    def sink(values: dict[str, float], step: int) -> None:
        nonlocal run_id
        if run_id is None:
            run_id = (tracker.active_run() or tracker.start_run()).info.run_id
        tracker.log_metrics(values, step=step, run_id=run_id)

    return sink


def wandb(run: Any = None) -> Sink:
    """Metrics of a run of Weights & Biases, in the row that the program's own next log() ends.
    None: the current run."""
    tracker = _programs.needed("wandb")

    def sink(values: dict[str, float], _: int) -> None:
        (run or tracker.run).log(values, commit=False)

    return sink


def opentelemetry(provider: Any = None, every: float = 30) -> Sampler:
    """Makes the figures observable instruments of a MeterProvider; None: of the global one. They
    are observed until the result is closed, and have its last values then."""
    metrics = _programs.needed("opentelemetry.metrics")
    sampler = Sampler(every)
    meter = (provider or metrics.get_meter_provider()).get_meter("flopinj")

    def observer(key: str) -> Callable[[Any], list[Any]]:
        return lambda _: [metrics.Observation(value) for name, value in sampler.values.items()
                          if name == key]

    for figure in FIGURES:
        make = meter.create_observable_counter if figure.grows else meter.create_observable_gauge
        make(f"flopinj.{figure.instrument}", callbacks=[observer(figure.key)], unit=figure.unit,
             description=figure.meaning)
    return sampler
