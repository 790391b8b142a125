"""Runs a program under PyTorch's own emit_nvtx and makes a stream of what NVTX was told, of what
the dispatcher ran, and of what the recording program knows: the phase of each moment, and when
autograd's engine runs.

What the dispatcher ran is told by PyTorch's ExecutionTraceObserver: it sees each operator's
arguments and results and, unlike a TorchDispatchMode, changes nothing of what runs. Its `rf_id`
is the `op_id` of the range's name."""

import contextlib
import ctypes
import functools
import json
import os
import re
import sys
from pathlib import Path

import torch
import torch.cuda.profiler
from torch.optim import optimizer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import stream  # noqa: E402

# Operators whose work depends on more than the sizes of their operands: which arguments to keep.
KEPT = ("stride", "padding", "dilation", "transposed", "output_padding", "groups", "output_mask",
        "is_causal", "train", "training", "num_layers", "bidirectional", "hidden_size",
        "batch_first", "has_biases", "kernel_size", "mode", "reverse")


class Recorder:
    """Notes go to the NVTX log, in order with NVTX's own calls."""
    def __init__(self, log):
        self.log = log
        self.library = ctypes.CDLL(os.environ["NVTX_INJECTION64_PATH"])
        self.engines = 0
        self.evaluating = False
        self.observer = None

    def note(self, text):
        self.library.nvtx_log_note(text.encode())

    @contextlib.contextmanager
    def phase(self, name):
        self.note(f"phase {name}")
        try:
            yield
        finally:
            self.note("phase end")

    @contextlib.contextmanager
    def hook(self):
        """What a hook does beside the gradients."""
        self.note("hook")
        try:
            yield
        finally:
            self.note("hook end")

    def forward(self, body):
        """`body` as part of the forward pass; run inside backward it is recomputed."""
        @functools.wraps(body)
        def wrapped(*args, **kwargs):
            with self.phase("evaluation" if self.evaluating else
                            "recompute" if self.engines else "forward"):
                return body(*args, **kwargs)

        return wrapped

    @contextlib.contextmanager
    def evaluation(self):
        """No pass of the training, whatever runs."""
        self.evaluating = True
        try:
            with self.phase("evaluation"):
                yield
        finally:
            self.evaluating = False

    def watch(self, model):
        """The model's forward is the forward pass."""
        model.forward = self.forward(model.forward)
        return model

    def _patch_engine(self):
        run = torch.autograd.graph._engine_run_backward

        def noted(*args, **kwargs):
            self.note(f"engine {torch.autograd._get_sequence_nr()}")
            self.engines += 1
            try:
                with self.phase("backward"):
                    return run(*args, **kwargs)
            finally:
                self.engines -= 1
                self.note(f"engine end {torch.autograd._get_sequence_nr()}")

        torch.autograd.graph._engine_run_backward = torch.autograd._engine_run_backward = noted

    def _patch_optimizers(self):
        optimizer.register_optimizer_step_pre_hook(lambda *_: self.note("phase optimizer"))
        optimizer.register_optimizer_step_post_hook(lambda *_: self.note("phase end"))

    @contextlib.contextmanager
    def observing(self):
        """What happens inside is recorded; emit_nvtx is the program's."""
        # The calls of emit_nvtx, and of Lightning around it, that need a GPU.
        torch.cuda.synchronize = lambda *_, **__: None
        torch.cuda.profiler.start = torch.cuda.profiler.stop = torch.cuda.synchronize
        self._patch_engine()
        self._patch_optimizers()
        self.observer = torch.profiler.ExecutionTraceObserver()
        self.observer.register_callback(str(self.log) + ".ops.json")
        self.observer.start()
        self.note("begin")
        try:
            yield
        finally:
            self.note("end")
            self.observer.stop()
            self.observer.unregister_callback()
            self.library.nvtx_log_flush()

    @contextlib.contextmanager
    def recording(self):
        """The same under emit_nvtx."""
        with self.observing(), torch.autograd.profiler.emit_nvtx(record_shapes=True):
            yield


def _unescape(text):
    return re.sub(r"\\(.)", lambda m: {"t": "\t", "n": "\n", "r": "\r"}.get(m[1], m[1]), text)


def _operators(path):
    """By op_id: results and arguments of each operator that the dispatcher ran."""
    found = {}
    for node in json.loads(Path(path).read_text())["nodes"]:
        attributes = {a["name"]: a["value"] for a in node.get("attrs", ())}
        schema = attributes.get("op_schema", "")
        if not schema:
            continue
        outputs, inputs = node["outputs"], node["inputs"]
        tensors = [(s, t) for s, t in zip(outputs["shapes"], outputs["types"])
                   if t.startswith("Tensor(")]
        op = {
            "out": [None if "nullptr" in t else s for s, t in tensors], "type": next(
                (t[7:-1] for _, t in tensors if "nullptr" not in t), "")
        }
        names = [p.split("=")[0].split()[-1] for p in _parameters(schema) if p != "*"]
        kept = {n: v for n, v in zip(names, inputs["values"]) if n in KEPT}
        if kept:
            op["args"] = kept
        lists = [
            s for s, t in zip(inputs["shapes"], inputs["types"])
            if t.startswith("GenericList[Tensor")
        ]
        if lists and not tensors:
            op["out"] = lists[0]
        found[attributes["rf_id"]] = op
    return found


def _parameters(schema):
    inner = schema[schema.index("(") + 1:schema.rindex(") ->")]
    parts, depth, part = [], 0, ""
    for c in inner:
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += c
    return [*parts, part.strip()] if part.strip() else parts


def events_of(log):
    """The log between the notes "begin" and "end", with operators joined to their ranges."""
    operators, threads, domains, events, inside = _operators(str(log) +
                                                             ".ops.json"), {}, {}, [], False
    for line in Path(log).read_text(errors="replace").splitlines():
        kind, thread, *rest = line.split("\t")
        rest = [_unescape(part) for part in rest]
        if kind == "domain":
            domains[rest[0]] = rest[1]
            continue
        if kind == "note" and rest[0] in ("begin", "end"):
            inside = rest[0] == "begin"
            continue
        if not inside:
            continue
        number = threads.setdefault(thread, len(threads) + 1)
        if kind == "note":
            events.append(["!", number, rest[0]])
        elif kind == "push":
            event = ["+", number, rest[1]]
            op_id = stream.Range(rest[1]).field("op_id")
            if op_id is not None and int(op_id) in operators:
                event.append(operators[int(op_id)])
            events.append(_placed(event, rest[0], domains))
        elif kind == "pop":
            events.append(_placed(["-", number], rest[0], domains))
        elif kind == "start":
            events.append(_placed(["start", number, int(rest[1]), rest[2]], rest[0], domains))
        elif kind == "end":
            events.append(["end", number, int(rest[0])])
        elif kind == "mark":
            events.append(_placed(["mark", number, rest[1]], rest[0], domains))
        elif kind == "name":
            events.append(["name", number, int(rest[0]), rest[1]])
    return events


def _placed(event, domain, domains):
    return event if domain == "0" else [*event, {"domain": domains[domain]}]
