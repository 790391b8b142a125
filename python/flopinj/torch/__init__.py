"""Names for PyTorch's modules and operators, by NVTX, in steps of a training.

    import flopinj.torch

    with flopinj.torch.annotate(model):
        train(model)

Layers get ranges from hooks of their modules; backward work is joined to them by autograd's
sequence numbers, so backward hooks, which change the autograd graph, are not needed. The whole
network's range is "forward" where gradients are on, in whatever mode the network is, and else
"evaluation": validation, rollouts, passes that others are compared with. Operators get theirs from
an observer (observer.py), with the sizes of their tensors and their settings, or else from
PyTorch's emit_nvtx, which costs more and has no settings.

Whole steps have names (sampling.py). Between them hooks and observer are taken away, and the
program runs as without them: every launch is counted as before, and a range of the step says that
it has no names. Only one hook stays, of the whole network: passes without gradients have their
range there, too, since steps with names are no sample of validation. Where no tool is injected
nothing is done at all.
"""

from __future__ import annotations

import gc
import os
import re
import sys
import threading
import time
import weakref

from flopinj._marks import _nvtx
from flopinj._programs import say
from flopinj.torch.sampling import Sampling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    import torch

# `steps` of annotate().
SAMPLED = "sampled"
# As in common/own_steps.h.
STEP, STEP_WITHOUT_NAMES = b"flopinj step", b"flopinj step without names"
FORWARD, EVALUATION = b"forward", b"evaluation"

# What wrappers put into the names of what they wrap: DDP, torch.compile, FSDP, checkpointing.
_WRAPPERS = re.compile(
    r"(^|\.)(module|_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)(?=\.|$)")
# Settings that emit_nvtx leaves out are in the text of these modules, as in
# Conv2d(3, 64, kernel_size=(7, 7), stride=(2, 2), padding=(3, 3)).
_WITH_SETTINGS = re.compile(r"\w*(Conv|Pool)\w*\(")
# At all objects of the program, some hundredths of a second each.
_MOST_LOOKS = 20


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        raise AttributeError(f"module 'flopinj.torch' has no attribute '{name}': annotate(MODEL) "
                             "names layers and operators; with flopinj.record() as run: records")


class _Open(threading.local):
    """Modules of this thread whose ranges are open, the innermost last, and how many each has."""

    def __init__(self) -> None:
        self.modules: list[tuple[Any, int]] = []


class Annotation:
    """Names of a network's modules and operators, in the steps that are to have them, until it is
    closed. Each step is a range of the process, which says whether it has names."""

    def __init__(self, steps: int | str | None) -> None:
        self.steps = steps
        self.steps_done = 0
        self.steps_named = 0
        self._sampling = Sampling() if steps == SAMPLED else None
        self._model: Callable[[], torch.nn.Module | None] = lambda: None
        self._modules = False
        # Makes a context in which operators have names.
        self._names: Callable[[], Any] | None = None
        self._always: list[Any] = []  # hooks that stay
        self._handles: list[Any] = []
        self._here = _Open()
        self._thread = threading.get_ident()
        self._operators: Any | None = None
        self._named = self._wanted = False  # names are there; they are to be in this step
        self._anywhere = False  # names begin and end also where a range of PyTorch's is open
        self._observed = False  # operators are named by observer.py
        self._optimizer: int | None = None
        self._step: int | None = None  # the range
        # Seconds: when it began, what names of modules cost in it, what hooks cost beside ours.
        self._begun = self._spent = self._hooks = 0.0
        self._spent_ns = 0  # of operators, before the step

    @property
    def active(self) -> bool:
        """Whether there are names, or will be."""
        return bool(self._always) and not self._done()

    def close(self) -> None:
        """Takes the names away for good. May be called again, and inside of the forward pass."""
        for handle in self._always:
            handle.remove()
        self._always = []
        self._wanted = False
        self._take()
        if self._step is not None:
            _nvtx()[4](self._step)
            self._step = None

    def __repr__(self) -> str:
        state = "going on" if self.active else "none"
        return f"<flopinj.torch.Annotation: {state}, after {self.steps_done} steps>"

    def __enter__(self) -> Annotation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, model: torch.nn.Module, modules: bool, operators: bool) -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook

        self._model, self._modules = weakref.ref(model), modules
        if operators:
            self._names, self._observed = _operator_names()
        self._anywhere = self._names is None or self._observed
        if modules and self._sampling is not None:
            self._hooks = _seconds_of_hooks()
        self._wanted = not self._done()
        self._put()
        self._always = [register_optimizer_step_post_hook(self._after_optimizer)]
        if modules:
            self._watch(dict(_called_modules(model))[""])
        if not self._anywhere:
            self._always.append(model.register_forward_pre_hook(self._before_model, prepend=True))
        self._mark()

    def _mark(self) -> None:
        """A step begins."""
        if self._step is not None:
            _nvtx()[4](self._step)
        self.steps_named += self._wanted
        self._step = _nvtx()[3](STEP if self._wanted else STEP_WITHOUT_NAMES)
        self._begun = time.perf_counter()
        if self._observed and self._operators is not None:
            self._spent_ns = self._operators.spent_ns()

    def _put(self) -> None:
        model = self._model()
        if self._named or model is None:
            return
        begun = time.perf_counter()
        self._named = True
        if self._modules:
            for name, module in _called_modules(model):
                self._hook(module, _range_names(name, module, not self._observed))
        if self._names is not None:
            operators = self._names()
            operators.__enter__()
            self._operators = operators
        self._spent += time.perf_counter() - begun

    def _take(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []
        while self._here.modules:
            self._pop()
        operators, self._operators = self._operators, None
        if operators is not None:
            operators.__exit__(None, None, None)
        self._named = False

    def _hook(self, module: torch.nn.Module, names: list[bytes]) -> None:
        """Ranges around the module's calls, also where they end with an exception. The whole
        network has no name of its own."""
        import torch

        push = _nvtx()[0]
        # Where a compiler traces the hooks they leave nothing behind.
        compiling: Callable[[], bool] = torch.compiler.is_compiling
        clock = time.perf_counter

        def before(*_: object) -> None:
            if compiling():
                return
            begun = clock()
            if not self._here.modules:  # the network's own forward() may never be called
                self.switch()
            if self._named:
                given = names or [_pass_of(module)]
                self._here.modules.append((module, len(given)))
                for name in given:
                    push(name)
            self._spent += clock() - begun + self._hooks

        def after(*_: object) -> None:
            if compiling():
                return
            begun = clock()
            # The hooks may have come while the module ran.
            if self._here.modules and self._here.modules[-1][0] is module:
                self._pop()
            self._spent += clock() - begun

        self._handles += [
            module.register_forward_pre_hook(before, prepend=True),
            module.register_forward_hook(after, always_call=True),
        ]

    def _watch(self, network: torch.nn.Module) -> None:
        """Its passes without gradients have their range in steps without names, too."""
        import torch

        compiling: Callable[[], bool] = torch.compiler.is_compiling

        def before(*_: object) -> None:
            if compiling() or self._named or self._here.modules:
                return
            if _pass_of(network) == EVALUATION:
                self._here.modules.append((network, 1))
                _nvtx()[0](EVALUATION)

        def after(*_: object) -> None:
            if not compiling() and not self._named and self._here.modules:
                self._pop()

        self._always += [
            network.register_forward_pre_hook(before, prepend=True),
            network.register_forward_hook(after, always_call=True),
        ]

    def _pop(self) -> None:
        for _ in range(self._here.modules.pop()[1]):
            _nvtx()[1]()

    def _after_optimizer(self, optimizer: Any, *_: object) -> None:
        """Counts steps of one optimizer; a program may have several."""
        if self._optimizer is None:
            self._optimizer = id(optimizer)
        if self._optimizer != id(optimizer) or not self._always:
            return
        if self._model() is None:
            return self.close()
        self.steps_done += 1
        seconds = time.perf_counter() - self._begun
        if self._sampling is None:
            self._wanted = not self._done()
        else:
            self._wanted = self._sampling.next(seconds, self._wanted, self._cost())
        self._spent = 0.0
        if self._anywhere:
            self.switch()
        self._mark()

    def _cost(self) -> float | None:
        """Seconds that names have cost the step; None where nothing says."""
        if not self._anywhere:
            return None
        operators = self._operators
        ns = operators.spent_ns() - self._spent_ns if operators is not None else 0
        return self._spent + ns * 1e-9

    def _before_model(self, module: torch.nn.Module, *_: object) -> None:
        import torch

        if torch.compiler.is_compiling() or self._here.modules:
            return
        had = self._named
        self.switch()
        if self._modules and self._named and not had:  # this call's hooks were there before
            name = _pass_of(module)
            self._here.modules.append((module, 1))
            _nvtx()[0](name)
        if self._done() and not self._named:
            self._always.pop().remove()

    def _done(self) -> bool:
        return isinstance(self.steps, int) and self.steps_done >= self.steps

    def switch(self, *_: object) -> None:
        """Gives names or takes them away, as this step is to have them. Called where no range of
        PyTorch's is open, as before the outermost module: emit_nvtx cannot begin or end inside of
        one, and ends on the thread on which it began."""
        if self._named == self._wanted or self._thread != threading.get_ident():
            return
        try:
            if self._wanted:
                self._put()
            else:
                self._take()
        except Exception as error:  # as where another profiler has begun meanwhile
            self.close()
            say(f"no more names for modules and operators: {error}")


def annotate(
    model: torch.nn.Module,
    *,
    steps: int | str | None = SAMPLED,
    modules: bool = True,
    operators: bool = True,
) -> Annotation:
    """Names for the modules of `model` and for operators: in steps drawn over all of the run, as
    many as cost under 1 % of its time; by `steps` in that many first ones, or None: in all. Call it
    on the thread that trains. Where names cannot be, a line on stderr says why, and the program
    goes on without."""
    annotation = Annotation(steps)
    if not hasattr(model, "named_modules"):
        say(f"annotate() takes a torch.nn.Module, and {model!r} is none: nothing is named")
        return annotation
    if not os.environ.get("NVTX_INJECTION64_PATH"):
        return annotation
    try:
        annotation._begin(model, modules, operators)
    except Exception as error:  # of PyTorch's, whatever its version makes of what is asked for
        annotation.close()
        say(f"no names for modules and operators: {error}")
    return annotation


def _pass_of(model: torch.nn.Module) -> bytes:
    """Which pass over the network a call is, by whether gradients can come back to it. Its mode
    does not tell: networks are trained in eval(), too."""
    import torch

    if torch.is_inference_mode_enabled():
        return EVALUATION
    return (FORWARD if torch.is_grad_enabled() or model.training and _in_function()
            else EVALUATION)


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


def _operator_names() -> tuple[Callable[[], Any], bool]:
    """What makes a context in which operators have names, and whether that is the observer, which
    names their settings too."""
    import torch
    from flopinj.torch import observer

    try:
        found = observer.observer()
        if found is not None:
            return lambda: found, True
    except observer.Unavailable as reason:
        observer.say("emit_nvtx names the operators, at a higher cost and without settings: "
                     f"{reason}")
    return lambda: torch.autograd.profiler.emit_nvtx(record_shapes=True), False


def _seconds_of_hooks() -> float:
    """What PyTorch itself takes longer for a call of a module that has hooks."""
    import torch

    calls, clock = 50, time.perf_counter

    def least(module: torch.nn.Module) -> float:
        windows = []
        for _ in range(5):
            begun = clock()
            for _ in range(calls):
                module(None)
            windows.append(clock() - begun)
        return min(windows) / calls

    plain, hooked = torch.nn.Identity(), torch.nn.Identity()
    hooked.register_forward_pre_hook(lambda *_: None, prepend=True)
    hooked.register_forward_hook(lambda *_: None, always_call=True)
    return max(0.0, least(hooked) - least(plain))


def annotate_first(steps: int | str | None = SAMPLED) -> None:
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
        found = False
        try:
            if others.get(module) == module.training:
                return
            if not trains(module):
                others.update({inner: inner.training for inner in module.modules()})
                return
            found = True
        except Exception as error:
            say(f"--torch: no names for modules and operators: {error}")
        for handle in handles:
            handle.remove()
        if found:
            annotate(module, steps=steps)

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
