"""Networks made up by a seed: random operators, shapes, strides, groups, types, frozen layers,
adapters, recurrent cells, sparse and vmapped parts; and random ways to train them: checkpointing
with and without policies, micro-batches, teachers, target networks, graphs that are kept for
several backward passes, gradients that are differentiated again. A network is a description (plain
dicts and lists), so that a failure can be made smaller piece by piece and be recorded again
later."""

import contextlib
import copy
import functools
import random

import torch
from networks import Attention
from programs import annotated, checkpointed
from torch import nn
from torch.nn import functional
from torch.utils import checkpoint

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float64": torch.float64}

# --- descriptions


def image_layer(pick, depth=0):
    kind = pick.choice(["conv"] * 6 + [
        "transposed", "depthwise", "batch_norm", "batch_norm", "group_norm", "activation",
        "activation", "max_pool", "average_pool", "dropout", "upsample", "gate", "twins"
    ] + ["residual", "branches", "adapted", "teacher"] * (depth < 2))
    layer = {"kind": kind}
    if kind in ("conv", "transposed", "twins"):
        layer |= {
            "out": pick.choice([2, 4, 6, 8, 12]), "kernel": pick.choice([1, 2, 3, 3, 3, 5]),
            "stride": pick.choice([1, 1, 1, 2, 3]), "groups": pick.choice([1, 1, 1, 2]),
            "bias": pick.random() < 0.5
        }
        layer["padding"] = pick.choice(
            [0, 1, layer["kernel"] // 2, "same" if layer["stride"] == 1 and kind == "conv" else 0])
        layer["dilation"] = pick.choice([1, 1, 1, 2])
    if kind == "depthwise":
        layer |= {
            "kernel": pick.choice([3, 5]), "stride": pick.choice([1, 2]),
            "times": pick.choice([1, 1, 2]), "bias": pick.random() < 0.5
        }
    if kind == "activation":
        layer["name"] = pick.choice([
            "ReLU", "ReLU", "GELU", "SiLU", "LeakyReLU", "Sigmoid", "Tanh", "ReLU6", "Hardswish",
            "Softplus"
        ])
        layer["inplace"] = pick.random() < 0.3
    if kind in ("residual", "branches", "adapted", "teacher"):
        layer["inside"] = [[image_layer(pick, depth + 1) for _ in range(pick.randint(1, 3))]
                           for _ in range(pick.randint(2, 3) if kind == "branches" else 1)]
    return layer


def sequence_layer(pick, depth=0):
    kind = pick.choice(["linear"] * 4 + [
        "layer_norm", "rms_norm", "activation", "attention", "attention", "mha", "mlp", "product",
        "einsum", "line", "dropout", "lstm", "softmax", "lora", "lora", "recurrent", "cells",
        "packed", "sparse", "vmapped"
    ] + ["residual", "residual", "adapted", "teacher"] * (depth < 2))
    layer = {"kind": kind}
    if kind in ("linear", "product", "einsum", "line", "lstm", "lora", "recurrent", "cells",
                "packed", "vmapped"):
        layer |= {
            "out": pick.choice([4, 8, 12, 16]), "bias": pick.random() < 0.6,
            "kernel": pick.choice([1, 3])
        }
    if kind == "attention":
        layer |= {
            "heads": pick.choice([1, 2]), "fused": pick.random() < 0.6, "causal": pick.random()
            < 0.5
        }
    if kind in ("recurrent", "cells"):
        layer["name"] = pick.choice(["LSTM", "GRU", "RNN"])
    if kind == "activation":
        layer["name"] = pick.choice(["ReLU", "GELU", "SiLU", "Tanh"])
    if kind in ("residual", "adapted", "teacher"):
        layer["inside"] = [[sequence_layer(pick, depth + 1) for _ in range(pick.randint(1, 3))]]
    return layer


def describe(seed):
    pick = random.Random(seed)
    images = pick.random() < 0.6
    make = image_layer if images else sequence_layer
    inputs = ["plain", "plain", "gradient"] + (["normalised", "uint8"] if images else ["tokens"])
    # First, how many, and whether it is reentrant or has a policy.
    part = [pick.randint(0, 3), pick.randint(1, 3), pick.choice([False, True, "policy"])]
    return {
        "images": images, "batch": pick.choice([1, 2, 3]), "side": pick.choice([7, 8, 12]),
        "channels": pick.choice([1, 3, 4]),
        "layers": [make(pick) for _ in range(pick.randint(2, 7))],
        "frozen": pick.sample(range(8), pick.choice([0, 0, 1, 2])),
        "checkpoint": pick.choice([None, None, None, part]),
        "dtype": pick.choice(["float32"] * 4 + ["bfloat16", "float64"]),
        "autocast": pick.random() < 0.25, "micro_batches": pick.choice([1, 1, 1, 2]),
        "optimizer": pick.choice(["SGD", "Adam", "AdamW fused", "closure"]),
        "input": pick.choice(inputs), "channels_last": pick.random() < 0.15,
        "steps": pick.choice([1, 1, 2]), "ranges": pick.random() < 0.5,
        "stem": pick.choice([0, 0, 0, 1, 2]),
        "other": pick.choice([None, None, None, "teacher", "target", "byol"]),
        "outside": pick.random() < 0.5,
        # Behind all others, so that seeds give the networks of before.
        "passes": pick.choice(["one", "one", "one", "twice", "losses", "gradients"]),
    } | ({"passes": "penalty"} if pick.random() < 0.1 else {}) | {
        # Who names modules and steps; "part": in the first step only.
        "names": pick.choice(["emit_nvtx", "torch", "part"]),
        "evaluation": pick.choice([None, None, "no_grad", "inference_mode"]),
    }


# The least: a linear layer.
PLAIN = {
    "images": False, "layers": [], "batch": 1, "side": 8, "channels": 3, "frozen": [],
    "checkpoint": None, "dtype": "float32", "autocast": False, "micro_batches": 1,
    "optimizer": "SGD", "input": "plain", "channels_last": False, "steps": 1, "ranges": True,
    "stem": 0, "other": None, "outside": False, "passes": "one", "names": "emit_nvtx",
    "evaluation": None}


def smaller(description):
    """Descriptions with one thing less."""
    def without(layers, put):
        for at, layer in enumerate(layers):
            yield put(layers[:at] + layers[at + 1:])
            for branch, inside in enumerate(layer.get("inside", ())):
                yield put(layers[:at] + inside + layers[at + 1:])
                for fewer in without(inside, lambda x: x):
                    changed = copy.deepcopy(layer)
                    changed["inside"][branch] = fewer
                    yield put(layers[:at] + [changed] + layers[at + 1:])

    for layers in without(description["layers"], lambda x: x):
        yield description | {"layers": layers}
    for key, value in PLAIN.items():
        if description[key] != value and key not in ("images", "layers"):
            yield description | {key: value}


# --- modules


class Upsample(nn.Module):
    def forward(self, x):
        return functional.interpolate(x, scale_factor=2)


class Gate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inside = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, 2, 1), nn.ReLU(),
                                    nn.Conv2d(2, width, 1), nn.Sigmoid())

    def forward(self, x):
        return x * self.inside(x)


class Twins(nn.Module):
    """Two convolutions alike but for their stride."""
    def __init__(self, width, layer):
        super().__init__()
        self.a, self.b = (nn.Conv2d(width, layer["out"], 3, stride, 1, bias=layer["bias"])
                          for stride in (1, 2))

    def forward(self, x):
        return self.a(x) + self.b(x).mean((2, 3), keepdim=True)


class Residual(nn.Module):
    def __init__(self, inside):
        super().__init__()
        self.inside = inside

    def forward(self, x):
        return x + self.inside(x)


class Beside(nn.Module):
    """Branches, joined where their sizes agree."""
    def __init__(self, branches):
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.branches], 1)


class Adapted(nn.Module):
    """Frozen layers with a trained one beside them."""
    def __init__(self, inside, x):
        super().__init__()
        self.inside = inside.requires_grad_(False)
        with torch.no_grad():
            out = inside(x.clone())
        sizes = [(a.shape[1] if a.dim() == 4 else a.shape[-1]) for a in (x, out)]
        made = functools.partial(nn.Conv2d, kernel_size=1) if x.dim() == 4 else nn.Linear
        self.beside = made(*sizes, bias=False)

    def forward(self, x):
        out, beside = self.inside(x), self.beside(x)
        return out + (beside.mean((2, 3), keepdim=True) if out.dim() == 4 else beside)


class Lora(nn.Module):
    def __init__(self, width, layer):
        super().__init__()
        self.base = nn.Linear(width, layer["out"], layer["bias"]).requires_grad_(False)
        self.down, self.up = nn.Linear(width, 2, bias=False), nn.Linear(2, layer["out"], bias=False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


class Taught(nn.Module):
    """Its input beside what another network makes of it without gradients."""
    phase = contextlib.nullcontext

    def __init__(self, inside, x):
        super().__init__()
        # Only products tell a network from what is computed for this one.
        width = x.shape[1] if x.dim() == 4 else x.shape[-1]
        first = nn.Conv2d(width, width, 1) if x.dim() == 4 else nn.Linear(width, width)
        self.inside = nn.Sequential(first, inside)

    def forward(self, x):
        with torch.no_grad(), self.phase():
            wanted = self.inside(x)
        return x * wanted.float().square().sum().to(x.dtype)


class Recurrent(nn.Module):
    """Without a library's own: a product a step."""
    def __init__(self, width, layer):
        super().__init__()
        self.inside = getattr(nn, layer["name"])(width, layer["out"], bias=layer["bias"],
                                                 batch_first=True)

    def forward(self, x):
        with torch.backends.mkldnn.flags(enabled=False):
            return self.inside(x)[0]


class Cells(nn.Module):
    def __init__(self, width, layer):
        super().__init__()
        self.cell = getattr(nn, layer["name"] + "Cell")(width, layer["out"], layer["bias"])

    def forward(self, x):
        state, out = None, []
        for step in x.unbind(1):
            state = self.cell(step, state)
            out.append(state[0] if isinstance(state, tuple) else state)
        return torch.stack(out, 1)


class Packed(nn.Module):
    """Sequences of different lengths."""
    def __init__(self, width, layer):
        super().__init__()
        self.inside = nn.LSTM(width, layer["out"], batch_first=True)

    def forward(self, x):
        lengths = torch.arange(x.shape[1], x.shape[1] - len(x), -1).clamp(min=1)
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        return nn.utils.rnn.pad_packed_sequence(self.inside(packed)[0], batch_first=True)[0]


class Graph(nn.Module):
    """Each position meets others by a sparse adjacency."""
    def forward(self, x):
        count = x.shape[0] * x.shape[1]
        edges = torch.stack([torch.arange(count), (torch.arange(count) * 7 + 1) % count])
        graph = torch.sparse_coo_tensor(edges, torch.ones(count, dtype=x.dtype),
                                        (count, count)).coalesce()
        return torch.sparse.mm(graph, x.reshape(count, -1)).reshape(x.shape)


class Vmapped(nn.Module):
    def __init__(self, width, layer):
        super().__init__()
        self.inside = nn.Linear(width, layer["out"], layer["bias"])

    def forward(self, x):
        return torch.vmap(self.inside)(x)


class Product(nn.Module):
    """A product with a parameter, as people write it by hand."""
    def __init__(self, width, out, einsum):
        super().__init__()
        self.weight, self.einsum = nn.Parameter(torch.randn(width, out)), einsum

    def forward(self, x):
        return torch.einsum("btc,cd->btd", x, self.weight) if self.einsum else x @ self.weight


class Line(nn.Module):
    def __init__(self, width, layer):
        super().__init__()
        self.inside = nn.Conv1d(width, layer["out"], layer["kernel"], padding=layer["kernel"] // 2,
                                bias=layer["bias"])

    def forward(self, x):
        return self.inside(x.transpose(1, 2)).transpose(1, 2)


class First(nn.Module):
    def __init__(self, inside):
        super().__init__()
        self.inside = inside

    def forward(self, *x):
        return self.inside(*x)[0]


class Thrice(nn.Module):
    def __init__(self, inside):
        super().__init__()
        self.inside = inside

    def forward(self, x):
        return self.inside(x, x, x, need_weights=False)[0]


def module(layer, x):
    """Of one layer, for an input like x."""
    kind, width = layer["kind"], x.shape[1] if x.dim() == 4 else x.shape[-1]
    if kind == "conv":
        return nn.Conv2d(width, layer["out"], layer["kernel"], layer["stride"], layer["padding"],
                         layer["dilation"], layer["groups"], layer["bias"])
    if kind == "transposed":
        return nn.ConvTranspose2d(width, layer["out"], layer["kernel"], layer["stride"],
                                  layer["padding"] if layer["padding"] != "same" else 0, 0,
                                  layer["groups"], layer["bias"])
    if kind == "depthwise":
        return nn.Conv2d(width, width * layer["times"], layer["kernel"], layer["stride"],
                         layer["kernel"] // 2, groups=width, bias=layer["bias"])
    if kind == "activation":
        made = getattr(nn, layer["name"])
        return made(
            inplace=True) if layer.get("inplace") and layer["name"] in ("ReLU", "SiLU", "ReLU6",
                                                                        "LeakyReLU") else made()
    if kind in ("residual", "branches", "adapted", "teacher"):
        inside = [sequential(branch, x) for branch in layer["inside"]]
        if kind in ("adapted", "teacher"):
            return {"adapted": Adapted, "teacher": Taught}[kind](inside[0], x)
        return Residual(inside[0]) if kind == "residual" else Beside(inside)
    return {
        "twins": lambda: Twins(width, layer),
        "batch_norm": lambda: nn.BatchNorm2d(width),
        "group_norm": lambda: nn.GroupNorm(1, width),
        "max_pool": lambda: nn.MaxPool2d(2),
        "average_pool": lambda: nn.AvgPool2d(2),
        "dropout": lambda: nn.Dropout(0.2),
        "upsample": Upsample,
        "gate": lambda: Gate(width),
        "linear": lambda: nn.Linear(width, layer["out"], layer["bias"]),
        "layer_norm": lambda: nn.LayerNorm(width),
        "rms_norm": lambda: nn.RMSNorm(width),
        "softmax": lambda: nn.Softmax(-1),
        "attention": lambda: Attention(width, layer["heads"], layer["fused"], layer["causal"]),
        "mha": lambda: Thrice(nn.MultiheadAttention(width, 2, batch_first=True)),
        "mlp": lambda: nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(),
                                     nn.Linear(2 * width, width)),
        "product": lambda: Product(width, layer["out"], False),
        "einsum": lambda: Product(width, layer["out"], True),
        "line": lambda: Line(width, layer),
        "lstm": lambda: First(nn.LSTM(width, layer["out"], batch_first=True)),
        "lora": lambda: Lora(width, layer),
        "recurrent": lambda: Recurrent(width, layer),
        "cells": lambda: Cells(width, layer),
        "packed": lambda: Packed(width, layer),
        "sparse": Graph,
        "vmapped": lambda: Vmapped(width, layer),
    }[kind]()


def sequential(layers, x):
    """Layers that do not fit what comes before them are left out."""
    fitting = []
    for layer in layers:
        try:
            made = module(layer, x).to(x.dtype)
            with torch.no_grad():
                y = made(x.clone())
        except (RuntimeError, ValueError, AssertionError, IndexError):
            continue
        if y.numel() <= 4000:
            fitting.append(made)
            x = y
    return nn.Sequential(*fitting)


class Network(nn.Module):
    def __init__(self, description):
        super().__init__()
        batch, side, width = description["batch"], description["side"], description["channels"]
        self.kind, dtype = description["input"], DTYPES[description["dtype"]]
        if description["images"]:
            self.x = torch.randn(batch, width, side, side).to(dtype)
            if self.kind == "uint8":
                self.x = torch.randint(0, 255, self.x.shape, dtype=torch.uint8)
        else:
            self.x = torch.randn(batch, side, 4 * width).to(dtype)
            if self.kind == "tokens":
                self.x, self.tokens = torch.randint(0, 16, (batch, side)), nn.Embedding(
                    16, 4 * width).to(dtype)
        self.to(dtype)
        self.layers = sequential(description["layers"], self.prepared(self.x).detach())
        with torch.no_grad():
            out = self.layers(self.prepared(self.x))
        self.head = nn.Linear(out.shape[1] if out.dim() == 4 else out.shape[-1], 5).to(dtype)
        if self.kind == "gradient":
            self.x.requires_grad_()
        if description["channels_last"] and description["images"]:
            self.to(memory_format=torch.channels_last)
            self.x = self.x.detach().to(memory_format=torch.channels_last)
        layers = list(self.layers)
        for number in description["frozen"]:
            for part in layers[number:number + 1]:
                part.requires_grad_(False)
        for part in layers[:description["stem"]]:
            part.requires_grad_(False)

    def prepared(self, x):
        if self.kind == "normalised":
            return (x - 0.45) / 0.22
        if self.kind == "uint8":
            return x.to(
                next(self.parameters(), torch.zeros(1)).dtype if len(list(self.parameters())
                                                                     ) else torch.float32) / 255
        return self.tokens(x) if self.kind == "tokens" else x

    def forward(self, x):
        out = self.layers(self.prepared(x).to(self.head.weight.dtype))
        return self.head(out.mean((2, 3)) if out.dim() == 4 else out.mean(1))


def saved(_, operator, *args, **kwargs):
    """A policy of selective checkpointing: products are kept."""
    products = (torch.ops.aten.mm.default, torch.ops.aten.addmm.default,
                torch.ops.aten.convolution.default)
    return (checkpoint.CheckpointPolicy.MUST_SAVE
            if operator in products else checkpoint.CheckpointPolicy.PREFER_RECOMPUTE)


def checkpoint_parts(recorder, model, first, number, way):
    options = {"context_fn": functools.partial(checkpoint.create_selective_checkpoint_contexts,
                                               saved)} if way == "policy" else {}
    for part in list(model.layers)[first:first + number]:
        checkpointed(recorder, part, way is True, **options)


class Losses:
    """What is trained, by whichever other network."""
    def __init__(self, description, recorder):
        self.other, self.ranges = description["other"], description["ranges"]
        self.outside = description["outside"]
        self.recorder = recorder
        self.model = Network(description)
        self.another = copy.deepcopy(self.model).requires_grad_(False) if self.other else None
        if description["checkpoint"]:
            checkpoint_parts(recorder, self.model, *description["checkpoint"])
        for part in self.model.modules():
            # Without ranges no report can know that it belongs to the forward pass.
            if isinstance(part, Taught) and not self.ranges and description["names"] == "emit_nvtx":
                part.phase = lambda: recorder.phase("recompute" if recorder.engines else "other")
        recorder.watch(self.model)

    def wanted(self):
        """What the other network makes of the same; a target network has gradients on."""
        part_of_forward = not self.outside and (self.ranges or self.other == "target")
        phase = self.recorder.phase("forward" if part_of_forward else "other")
        gradients = contextlib.nullcontext() if self.other == "target" else torch.no_grad()
        with phase, gradients:
            return self.another(self.another.x.detach()).detach()

    def before(self):
        """What runs before the forward pass."""
        return self.wanted() if self.other and self.outside else None

    def forward(self, wanted, several):
        """Losses that share most of a graph, or their sum."""
        out = self.model(self.model.x)
        if self.other and not self.outside:
            wanted = self.wanted()
        if self.other == "byol":  # the other view, too
            with self.recorder.phase("forward"):
                out = out + self.model(self.model.x.detach())
        with self.recorder.phase("loss"):
            first = functional.cross_entropy(out.float(), torch.arange(len(out)) % 5)
            second = out.float().square().mean() if wanted is None else functional.mse_loss(
                out.float(), wanted.float())
            return [first, second] if several else [first + second]

    def after(self):
        """Of a step."""
        if self.other == "byol":
            with torch.no_grad():
                torch._foreach_lerp_(list(self.another.parameters()),
                                     list(self.model.parameters()), 0.1)


def backward(passes, losses, parameters):
    if passes == "gradients":
        gradients = torch.autograd.grad(losses[0], parameters, allow_unused=True)
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = gradient
        return
    for loss in losses * (2 if passes == "twice" else 1):
        loss.backward(retain_graph=passes != "one")


def program(description):
    """Trains it, under a recorder."""
    description = PLAIN | description

    def run(recorder):
        torch.manual_seed(7)
        trained = Losses(description, recorder)
        parameters = [p for p in trained.model.parameters() if p.requires_grad]
        if description["passes"] == "penalty":
            if any(isinstance(part, nn.LSTM) for part in trained.model.modules()):
                raise ValueError("cuDNN's has no gradient of its gradient; the CPU's runs again")
            if trained.model.x.is_floating_point():
                trained.model.x.requires_grad_()
        name, _, fused = description["optimizer"].partition(" ")
        optimizer = (torch.optim.AdamW(parameters, fused=True)
                     if fused else torch.optim.Adam(parameters, foreach=True)
                     if name == "Adam" else torch.optim.SGD(parameters, lr=1e-3, foreach=True))
        cast = torch.autocast(
            "cpu", torch.bfloat16) if description["autocast"] else contextlib.nullcontext()

        def named(name):
            return torch.cuda.nvtx.range(
                name) if description["ranges"] else contextlib.nullcontext()

        def passes():
            for _ in range(description["micro_batches"]):
                with cast:
                    wanted = trained.before()
                    with named("forward"):
                        losses = trained.forward(wanted, description["passes"] == "losses")
                if description["passes"] == "penalty":
                    x = trained.model.x
                    of = [x] if x.requires_grad else parameters
                    gradients = torch.autograd.grad(losses[0], of, create_graph=True,
                                                    allow_unused=True)
                    with recorder.phase("loss"):
                        losses = [losses[0] + sum(g.norm() for g in gradients if g is not None)]
                backward(description["passes"], losses, parameters)
            return losses[0]

        way, evaluation = description["names"], description["evaluation"]
        with (recorder.recording() if way == "emit_nvtx" else annotated(
                recorder, trained.model, 1 if way == "part" else None)):
            for _ in range(description["steps"] + 2 * (way == "part")):
                optimizer.zero_grad()
                if name == "closure":
                    optimizer.step(passes)
                else:
                    passes()
                    optimizer.step()
                trained.after()
                if evaluation:
                    with getattr(torch, evaluation)(), recorder.evaluation():
                        trained.model(trained.model.x)

    return run
