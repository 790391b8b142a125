"""Callbacks for frameworks that have the training loop themselves. Each annotates the network, as
flopinj.torch.annotate() does, and makes a range of each training step.

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
    from typing import Any


class _Training:
    """What is open of one training."""

    def __init__(self, steps: int | None) -> None:
        self._steps = steps
        self._annotation: Any = None
        self._step = ExitStack()

    def begin(self, model: Any) -> None:
        from flopinj import torch

        self.end()
        self._annotation = torch.annotate(model, steps=self._steps)

    def begin_step(self) -> None:
        self.end_step()
        # A network may be called by other ways than its own forward(), which counts steps.
        if self._annotation is not None:
            self._annotation.close_when_done()
        self._step.enter_context(_marks.step())

    def end_step(self) -> None:
        self._step.close()

    def end(self) -> None:
        self.end_step()
        if self._annotation is not None:
            self._annotation.close()
            self._annotation = None


def lightning(steps: int | None = 20) -> Any:
    """A Callback for Lightning: names in the first `steps` steps, and a range for each batch."""
    try:
        from lightning.pytorch.callbacks import Callback
    except ImportError:
        from pytorch_lightning.callbacks import Callback
    training = _Training(steps)

    class Flopinj(Callback):  # type: ignore[misc]
        def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
            training.begin(pl_module)

        def on_train_batch_start(self, *_: Any, **__: Any) -> None:
            training.begin_step()

        def on_train_batch_end(self, *_: Any, **__: Any) -> None:
            training.end_step()

        def on_exception(self, *_: Any, **__: Any) -> None:
            training.end()

        def on_fit_end(self, *_: Any, **__: Any) -> None:
            training.end()

    return Flopinj()


def hugging_face(steps: int | None = 20) -> Any:
    """A TrainerCallback for transformers: names in the first `steps` steps, and a range for each
    step of the optimizer."""
    from transformers import TrainerCallback

    training = _Training(steps)

    class Flopinj(TrainerCallback):  # type: ignore[misc]
        def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None,
                           **_: Any) -> None:
            training.begin(model)

        def on_step_begin(self, *_: Any, **__: Any) -> None:
            training.begin_step()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            training.end_step()

        def on_train_end(self, *_: Any, **__: Any) -> None:
            training.end()

    return Flopinj()
