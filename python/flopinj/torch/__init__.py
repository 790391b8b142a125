"""Names for PyTorch's modules and operators, by NVTX, in the first steps of a training.

    import flopinj.torch

    with flopinj.torch.annotate(model, steps=20):
        train(model)

Layers get ranges from hooks of their modules; backward work is joined to them by autograd's
sequence numbers, so backward hooks, which change the autograd graph, are not needed. The whole
network's range is "forward" where gradients are on, in whatever mode the network is, and else
"evaluation": validation, rollouts, passes that others are compared with. Operators get theirs from
an observer (observer.py), with the sizes of their tensors and their settings, or else from
PyTorch's emit_nvtx, which costs more and has no settings. After `steps` steps both are taken away,
and the program runs as without them: every launch is counted as before. Where no tool is injected
nothing is done at all.
"""

from __future__ import annotations

import gc
import os
import re
import sys
import threading
import weakref

from flopinj._marks import _nvtx
from flopinj._programs import say

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
# At all objects of the program, some hundredths of a second each.
_MOST_LOOKS = 20


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
        self._thread = threading.get_ident()
        self._operators: Any | None = None
        self._ends_anywhere = False  # also where a range of PyTorch's is open
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
        """Ranges around the module's calls, also where they end with an exception. The whole
        network has no name of its own."""
        import torch

        push = _nvtx()[0]
        # Where a compiler traces the hooks they leave nothing behind.
        compiling: Callable[[], bool] = torch.compiler.is_compiling

        def before(*_: object) -> None:
            if compiling():
                return
            if not self._here.modules:  # the network's own forward() may never be called
                self.close_when_done()
            if self.active:
                given = names or [_pass_of(module)]
                self._here.modules.append((module, len(given)))
                for name in given:
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
        if self._ends_anywhere and self._done():
            self.close()

    def _done(self) -> bool:
        return self.steps is not None and self.steps_done >= self.steps

    def close_when_done(self, *_: object) -> None:
        """Called where no range of PyTorch's is open, as before the outermost module: emit_nvtx
        cannot end inside of one, and ends on the thread on which it began."""
        if self._done() and self._thread == threading.get_ident():
            self.close()


def annotate(
    model: torch.nn.Module,
    *,
    steps: int | None = 20,
    modules: bool = True,
    operators: bool = True,
) -> Annotation:
    """Ranges for the modules of `model` and for operators, for `steps` steps of the optimizer;
    None: until it is closed. Call it on the thread that trains. Where names cannot be, a line on
    stderr says why, and the program goes on without."""
    annotation = Annotation(steps)
    if not os.environ.get("NVTX_INJECTION64_PATH"):
        return annotation
    try:
        _begin(annotation, model, modules, operators)
    except Exception as error:  # of PyTorch's, whatever its version makes of what is asked for
        annotation.close()
        say(f"no names for modules and operators: {error}")
    return annotation


def _begin(annotation: Annotation, model: torch.nn.Module, modules: bool, operators: bool) -> None:
    from torch.optim.optimizer import register_optimizer_step_post_hook

    names, observed = _operator_names() if operators else (None, False)
    annotation._ends_anywhere = names is None or observed
    if modules:
        for name, module in _called_modules(model):
            annotation._hook(module, _range_names(name, module, not observed))
    annotation._handles += [
        # Before the ranges of this module begin.
        model.register_forward_pre_hook(annotation.close_when_done, prepend=True),
        register_optimizer_step_post_hook(annotation._after_optimizer),
    ]
    if names is not None:
        names.__enter__()
        annotation._operators = names


def _pass_of(model: torch.nn.Module) -> bytes:
    """Which pass over the network a call is, by whether gradients can come back to it. Its mode
    does not tell: networks are trained in eval(), too."""
    import torch

    if torch.is_inference_mode_enabled():
        return b"evaluation"
    return (b"forward" if torch.is_grad_enabled() or model.training and _in_function()
            else b"evaluation")


def _in_function() -> bool:
    """Whether the forward() of a torch.autograd.Function calls, as in reentrant checkpointing:
    gradients are off in it, and come back by its backward()."""
    frame = sys._getframe()
    while frame is not None:
        code = frame.f_code
        if code.co_name == "forward" and code.co_varnames[:1] == ("ctx",):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _operator_names() -> tuple[Any, bool]:
    """What names operators, and whether that is the observer, which names their settings too."""
    import torch
    from flopinj.torch import observer

    try:
        found = observer.observer()
        if found is not None:
            return found, True
    except observer.Unavailable as reason:
        observer.say("emit_nvtx names the operators, at a higher cost and without settings: "
                     f"{reason}")
    return torch.autograd.profiler.emit_nvtx(record_shapes=True), False


def annotate_first(steps: int | None = 20) -> None:
    """Annotates the first network that trains, once it is called: `flopinj run --torch`. That is
    one with gradients on and weights that an optimizer updates; a teacher has none. Where no
    optimizer of PyTorch's has weights of a network that is called, as when there is none yet or a
    framework gives it copies, it is one in training mode with weights that want gradients. Of a
    module with others inside it is the outermost."""
    if not os.environ.get("NVTX_INJECTION64_PATH"):
        return
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    compiling: Callable[[], bool] = torch.compiler.is_compiling
    # Those that did not train, and what is inside of them, with the mode that they were in.
    others: weakref.WeakKeyDictionary[torch.nn.Module, bool] = weakref.WeakKeyDictionary()
    steps_done, looks = 0, 0

    def trains(module: torch.nn.Module) -> bool:
        nonlocal looks
        wanting = {id(weight) for weight in module.parameters() if weight.requires_grad}
        updated: set[int] = set()
        if wanting and looks < _MOST_LOOKS:
            looks += 1
            updated = _updated()
        if updated and steps_done == 0:
            return not wanting.isdisjoint(updated)
        return not wanting.isdisjoint(updated) or bool(wanting) and module.training

    def before(module: torch.nn.Module, _: object) -> None:
        if compiling() or not torch.is_grad_enabled():
            return
        try:
            if others.get(module) == module.training:
                return
            if not trains(module):
                others.update({inner: inner.training for inner in module.modules()})
                return
        except Exception as error:
            say(f"--torch: no names for modules and operators: {error}")
        else:
            annotate(module, steps=steps)
        for handle in handles:
            handle.remove()

    def after_optimizer(*_: object) -> None:
        nonlocal steps_done
        steps_done += 1
        if steps_done == 1:
            others.clear()

    handles = [torch.nn.modules.module.register_module_forward_pre_hook(before),
               register_optimizer_step_post_hook(after_optimizer)]


def _updated() -> set[int]:
    """Ids of the weights that optimizers have. Looks at all objects of the program."""
    from torch.optim import Optimizer

    optimizers = [one for one in gc.get_objects() if issubclass(type(one), Optimizer)]
    return {id(weight) for optimizer in optimizers
            for group in getattr(optimizer, "param_groups", ()) for weight in group["params"]}


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
        return []
    names = [f"layer:{name}".encode()]
    if with_settings and next(module.children(), None) is None:
        settings = repr(module)
        if _WITH_SETTINGS.match(settings):
            names.append(settings.encode())
    return names
