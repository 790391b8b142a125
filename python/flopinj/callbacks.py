"""Callbacks for frameworks that have the training loop themselves. Each annotates the network, as
flopinj.torch.annotate() does, makes a range of each training step, and logs figures where it is
given a flopinj.tracking.Log.

    import flopinj.callbacks

    trainer = lightning.Trainer(callbacks=[flopinj.callbacks.lightning()])
    trainer = transformers.Trainer(..., callbacks=[flopinj.callbacks.hugging_face()])

The framework is imported when its callback is made.
"""

from __future__ import annotations

from contextlib import ExitStack

from flopinj import _marks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from flopinj.tracking import Log


class _Training:
    """What is open of one training."""

    def __init__(self, steps: int | str | None, log: Log | None) -> None:
        self._steps = steps
        self._log = log
        self._annotation: Any = None
        self._step = ExitStack()

    def begin(self, model: Any) -> None:
        from flopinj import torch

        self.end()
        self._annotation = torch.annotate(model, steps=self._steps)

    def begin_step(self, **numbers: int) -> None:
        self._step.close()
        # A network may be called by other ways than its own forward().
        if self._annotation is not None:
            self._annotation.switch()
        self._step.enter_context(_marks.step(**numbers))

    def end_step(self, number: int) -> None:
        self._step.close()
        if self._log is not None:
            self._log.step(number)

    def end(self) -> None:
        self._step.close()
        if self._log is not None:
            self._log.close()
        if self._annotation is not None:
            self._annotation.close()
            self._annotation = None


def lightning(steps: int | str | None = "sampled", log: Log | None = None,
              tokens: Callable[[Any], int] | None = None) -> Any:
    """A Callback for Lightning: names in `steps` steps, as of
    flopinj.torch.annotate(), and a range for each batch, with
    its `tokens`, if that is given. A `log` without sinks takes the trainer's loggers."""
    try:
        from lightning.pytorch.callbacks import Callback
    except ImportError:
        from pytorch_lightning.callbacks import Callback
    training = _Training(steps, log)

    class Flopinj(Callback):  # type: ignore[misc]
        def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
            if log is not None and not log.sinks:
                log.sinks += [logger.log_metrics for logger in trainer.loggers]
            training.begin(pl_module)

        def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any,
                                 *_: Any, **__: Any) -> None:
            training.begin_step(**({"tokens": tokens(batch)} if tokens is not None else {}))

        def on_train_batch_end(self, trainer: Any, *_: Any, **__: Any) -> None:
            training.end_step(trainer.global_step)

        def on_exception(self, *_: Any, **__: Any) -> None:
            training.end()

        def on_fit_end(self, *_: Any, **__: Any) -> None:
            training.end()

    return Flopinj()


def hugging_face(steps: int | str | None = "sampled", log: Log | None = None) -> Any:
    """A TrainerCallback for transformers: names in `steps` steps, as of
    flopinj.torch.annotate(), and a range for each
    step of the optimizer, with its tokens where the trainer counts them
    (include_num_input_tokens_seen)."""
    from transformers import TrainerCallback

    training = _Training(steps, log)
    seen = 0

    def tokens_of(state: Any) -> int:
        return int(getattr(state, "num_input_tokens_seen", 0) or 0)  # older ones have none

    class Flopinj(TrainerCallback):  # type: ignore[misc]
        def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None,
                           **_: Any) -> None:
            nonlocal seen
            seen = tokens_of(state)
            training.begin(model)

        def on_step_begin(self, *_: Any, **__: Any) -> None:
            training.begin_step()

        def on_step_end(self, args: Any, state: Any, *_: Any, **__: Any) -> None:
            nonlocal seen
            now = tokens_of(state)
            if now > seen:
                _marks.number(tokens=now - seen)
            seen = now
            training.end_step(state.global_step)

        def on_train_end(self, *_: Any, **__: Any) -> None:
            training.end()

    return Flopinj()
