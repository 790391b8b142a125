"""Names for PyTorch's modules and operators, by NVTX, in the first steps of a training.

    import flopinj.torch

    with flopinj.torch.annotate(model, steps=20):
        train(model)

Layers get forward ranges from hooks of their modules; backward work is joined to them by
autograd's sequence numbers, so backward hooks, which change the autograd graph, are not needed.
Operators get theirs from an observer (observer.py), with the sizes of their tensors and their
settings, or else from PyTorch's emit_nvtx, which costs more and has no settings. After `steps`
steps both are taken away, and the program runs as without them: every launch is counted as before.
Where no tool is injected nothing is done at all.
"""

from __future__ import annotations

import os
import re
import threading

from flopinj._marks import _nvtx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    import torch

# What wrappers put into the names of what they wrap: DDP, torch.compile, FSDP, checkpointing.
_WRAPPERS = re.compile(
    r"(^|\.)(module|_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)(?=\.|$)")
# Settings that emit_nvtx leaves out are in the text of these modules, as in
# Conv2d(3, 64, kernel_size=(7, 7), stride=(2, 2), padding=(3, 3)).
_WITH_SETTINGS = re.compile(r"\w*(Conv|Pool)\w*\(")


class _Open(threading.local):
    """Modules of this thread whose ranges are open, the innermost last, and how many each has."""

    def __init__(self) -> None:
        self.modules: list[tuple[Any, int]] = []


class Annotation:
    """Ranges that are there until it is closed, or until so many steps are done."""

    def __init__(self, steps: int | None) -> None:
        self.steps = steps
        self.steps_done = 0
        self._handles: list[Any] = []
        self._here = _Open()
        self._operators: Any | None = None
        self._optimizer: int | None = None

    @property
    def active(self) -> bool:
        return bool(self._handles)

    def close(self) -> None:
        """Takes the ranges away. May be called again, and inside of the forward pass."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        while self._here.modules:
            self._pop()
        if self._operators is not None:
            self._operators.__exit__(None, None, None)
            self._operators = None

    def __repr__(self) -> str:
        state = "going on" if self.active else "none"
        return f"<flopinj.torch.Annotation: {state}, after {self.steps_done} steps>"

    def __enter__(self) -> Annotation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _hook(self, module: torch.nn.Module, names: list[bytes]) -> None:
        """Ranges around the module's forward pass, also where it ends with an exception."""
        import torch

        push = _nvtx()[0]
        # Where a compiler traces the hooks they leave nothing behind.
        compiling: Callable[[], bool] = torch.compiler.is_compiling

        def before(*_: object) -> None:
            if self.active and not compiling():
                self._here.modules.append((module, len(names)))
                for name in names:
                    push(name)

        def after(*_: object) -> None:
            # The hooks may have come while the module ran.
            if not compiling() and self._here.modules and self._here.modules[-1][0] is module:
                self._pop()

        self._handles += [
            module.register_forward_pre_hook(before, prepend=True),
            module.register_forward_hook(after, always_call=True),
        ]

    def _pop(self) -> None:
        for _ in range(self._here.modules.pop()[1]):
            _nvtx()[1]()

    def _after_optimizer(self, optimizer: Any, *_: object) -> None:
        """Counts steps of one optimizer; a program may have several."""
        if self._optimizer is None:
            self._optimizer = id(optimizer)
        self.steps_done += self._optimizer == id(optimizer)

    def close_when_done(self, *_: object) -> None:
        """Called where no range of PyTorch's is open, as before the outermost module."""
        if self.steps is not None and self.steps_done >= self.steps:
            self.close()


def annotate(
    model: torch.nn.Module,
    *,
    steps: int | None = 20,
    modules: bool = True,
    operators: bool = True,
) -> Annotation:
    """Ranges for the modules of `model` and for operators, for `steps` steps of the optimizer;
    None: until it is closed. Call it on the thread that trains."""
    annotation = Annotation(steps)
    if not os.environ.get("NVTX_INJECTION64_PATH"):
        return annotation
    from torch.optim.optimizer import register_optimizer_step_post_hook

    names, named_with_settings = _operator_names() if operators else (None, False)
    if modules:
        for name, module in _called_modules(model):
            annotation._hook(module, _range_names(name, module, not named_with_settings))
    annotation._handles += [
        # Before the ranges of this module begin.
        model.register_forward_pre_hook(annotation.close_when_done, prepend=True),
        register_optimizer_step_post_hook(annotation._after_optimizer),
    ]
    if names is not None:
        names.__enter__()
        annotation._operators = names
    return annotation


def _operator_names() -> tuple[Any, bool]:
    """What names operators, and whether it names their settings too."""
    import torch
    from flopinj.torch.observer import Unavailable, observer, say

    try:
        found = observer()
        if found is not None:
            return found, True
    except Unavailable as reason:
        say(f"emit_nvtx names the operators, at a higher cost and without settings: {reason}")
    return torch.autograd.profiler.emit_nvtx(record_shapes=True), False


def annotate_first(steps: int | None = 20) -> None:
    """Annotates the first network that trains, once it does: `flopinj run --torch`. Of a module
    with others inside that is the outermost."""
    if not os.environ.get("NVTX_INJECTION64_PATH"):
        return
    import torch

    def before(module: torch.nn.Module, _: object) -> None:
        if (module.training and torch.is_grad_enabled()
                and any(weight.requires_grad for weight in module.parameters())):
            handle.remove()
            annotate(module, steps=steps)

    handle = torch.nn.modules.module.register_module_forward_pre_hook(before)


def _called_modules(model: torch.nn.Module) -> list[tuple[str, torch.nn.Module]]:
    """Modules and their names without those of wrappers. Inside of a compiled module there is
    nothing to hook: its kernels do the work of several modules."""
    found: dict[str, torch.nn.Module] = {}
    compiled: list[str] = []
    for path, module in model.named_modules():
        if any(path.startswith(outer) for outer in compiled):
            continue
        if hasattr(module, "_orig_mod"):
            compiled.append(path + "." if path else "")
        name = _WRAPPERS.sub("", path).strip(".")
        found[name] = module  # of a wrapper and what it wraps: the inner one
    return list(found.items())


def _range_names(name: str, module: torch.nn.Module, with_settings: bool) -> list[bytes]:
    if not name:
        return [b"forward"]
    names = [f"layer:{name}".encode()]
    if with_settings and next(module.children(), None) is None:
        settings = repr(module)
        if _WITH_SETTINGS.match(settings):
            names.append(settings.encode())
    return names
