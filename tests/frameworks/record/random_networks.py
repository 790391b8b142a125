"""Networks made up by a seed: random operators, shapes, strides, groups, types, frozen layers,
adapters, recurrent cells, sparse and vmapped parts, windows of attention, packed sequences,
operators of the program's own, hooks; and random ways to train them: checkpointing with and without
policies, micro-batches, teachers, target networks, graphs that are kept for several backward
passes, gradients that are differentiated again. A network is a description (plain dicts and lists),
so that a failure can be made smaller piece by piece and be recorded again later."""

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


HOOKS = ["forward", "replaced", "backward", "tensor", "projected", "accumulated", "stepped"]


def own_layer(pick, images):
    """Attention that is not of all positions with all, sequences packed into one, and operators
    that the program makes."""
    kind = "own" if images else pick.choice(["own", "own", "window", "window", "documents",
                                             "documents"])
    layer = {"kind": kind, "out": pick.choice([4, 8, 12])}
    if kind == "own":
        layer["name"] = pick.choice(["function", "operator", "again", "ahead"])
    else:
        layer |= {"heads": pick.choice([1, 2]), "name": pick.choice({
            "window": ["mask", "chunks", "band"], "documents": ["mask", "split_each", "padded"]
        }[kind])}
    return layer


def describe(seed):
    pick = random.Random(seed)
    description = describe_old(pick)
    for _ in range(pick.choice([0, 0, 1, 2])):
        description["layers"].insert(pick.randint(0, len(description["layers"])),
                                     own_layer(pick, description["images"]))
    return description | {"hooks": pick.sample(HOOKS, pick.choice([0, 0, 0, 1, 2]))}


def describe_old(pick):
    """What seeds gave first: what is drawn later comes behind it."""
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
    "evaluation": None, "hooks": []}


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


class Heads(nn.Module):
    """Attention of some positions with some, after one product and before another."""
    def __init__(self, width, layer):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, layer["out"])
        self.heads, self.name = layer["heads"], layer["name"]

    def split(self, x):
        return (part.unflatten(-1, (self.heads, -1)).transpose(-3, -2)
                for part in self.qkv(x).chunk(3, -1))

    def joined(self, y):
        return self.out(y.transpose(-3, -2).flatten(-2))


class Window(Heads):
    """Each position meets itself and the two before it: by a mask, in chunks of four, which meet
    the chunk before, or by products with as many copies of keys and values."""
    reach, chunk = 2, 4

    def forward(self, x):
        q, k, v = self.split(x)
        return self.joined(getattr(self, self.name)(q, k, v))

    def mask(self, q, k, v):
        ones = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool)
        return functional.scaled_dot_product_attention(
            q, k, v, attn_mask=ones.tril() & ones.triu(-self.reach))

    def chunks(self, q, k, v):
        extra = -q.shape[-2] % self.chunk
        q, k, v = (functional.pad(part, (0, 0, 0, extra)).unflatten(-2, (-1, self.chunk))
                   for part in (q, k, v))
        k, v = (torch.cat([functional.pad(part, (0, 0, 0, 0, 1, 0))[..., :-1, :, :], part], -2)
                for part in (k, v))
        y = functional.scaled_dot_product_attention(q, k, v)
        return y.flatten(-3, -2)[..., :y.shape[-3] * self.chunk - extra, :]

    def band(self, q, k, v):
        k, v = (functional.pad(part, (0, 0, self.reach, 0)).unfold(-2, self.reach + 1, 1)
                for part in (k, v))
        scores = torch.einsum("bhtc,bhtcw->bhtw", q, k).softmax(-1)
        return torch.einsum("bhtw,bhtcw->bhtc", scores, v)


class Documents(Heads):
    """All sequences of the batch in one, without what pads them: each meets itself only, by a mask
    or one by one, or all are padded again for attention."""
    def forward(self, x):
        batch, length = x.shape[:2]
        lengths = [max(1, length - 2 * n) for n in range(batch)]
        packed = torch.cat([one[:n] for one, n in zip(x, lengths)])
        y = self.joined(getattr(self, self.name)(*self.split(packed[None]), lengths))[0]
        return nn.utils.rnn.pad_sequence(y.split(lengths), batch_first=True)

    def mask(self, q, k, v, lengths):
        mask = torch.block_diag(*(torch.ones(n, n).tril() for n in lengths)).bool()
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    def split_up(self, lengths, *parts):
        return zip(*(part.split(lengths, -2) for part in parts))

    def split_each(self, q, k, v, lengths):
        return torch.cat([functional.scaled_dot_product_attention(*part, is_causal=True)
                          for part in self.split_up(lengths, q, k, v)], -2)

    def padded(self, q, k, v, lengths):
        q, k, v = (torch.cat([functional.pad(part, (0, 0, 0, max(lengths) - n))
                              for part, n in zip(all_parts.split(lengths, -2), lengths)])
                   for all_parts in (q, k, v))
        mask = torch.stack([torch.arange(max(lengths)) < n for n in lengths])[:, None, None]
        y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return torch.cat([one[None, :, :n] for one, n in zip(y, lengths)], -2)


class Multiply(torch.autograd.Function):
    """A product with gradients of its own."""
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        gradient = gradient.to(x.dtype)
        return gradient @ weight.t(), x.flatten(0, -2).t() @ gradient.flatten(0, -2)


class Again(torch.autograd.Function):
    """Two products, which run again in backward."""
    phase = contextlib.nullcontext

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return (x @ weight).relu() @ weight.t()

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        with torch.enable_grad():
            x, weight = (one.detach().requires_grad_() for one in (x, weight))
            with Again.phase():
                y = (x @ weight).relu() @ weight.t()
            return torch.autograd.grad(y, (x, weight), gradient.to(y.dtype))


class Ahead(torch.autograd.Function):
    """A loss beside the product; its gradients are computed with it, in forward."""
    @staticmethod
    def forward(ctx, x, weight):
        y = (x @ weight).to(x.dtype)
        ctx.save_for_backward(y @ weight.t(), x.flatten(0, -2).t() @ y.flatten(0, -2))
        return y.square().sum() / 2

    @staticmethod
    def backward(ctx, gradient):
        return tuple(one * gradient for one in ctx.saved_tensors)


@torch.library.custom_op("random::multiply", mutates_args=())
def multiply(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x @ weight


@torch.library.custom_op("random::multiply_backward", mutates_args=())
def multiply_backward(gradient: torch.Tensor, x: torch.Tensor,
                      weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    gradient = gradient.to(x.dtype)
    return gradient @ weight.t(), x.flatten(0, -2).t() @ gradient.flatten(0, -2)


multiply.register_autograd(
    lambda ctx, gradient: torch.ops.random.multiply_backward(gradient, *ctx.saved_tensors),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))


class Own(nn.Module):
    """By an operator that the program makes: a torch.autograd.Function or one of torch.library."""
    def __init__(self, width, layer):
        super().__init__()
        self.weight, self.name = nn.Parameter(torch.randn(width, layer["out"])), layer["name"]

    def forward(self, x):
        rows = x.movedim(1, -1) if x.dim() == 4 else x
        weight = self.weight.to(x.dtype)
        if self.name == "ahead":
            return x * (1 + 1e-3 * Ahead.apply(rows, weight))
        y = {"function": Multiply.apply, "again": Again.apply,
             "operator": torch.ops.random.multiply}[self.name](rows, weight)
        return y.movedim(-1, 1) if x.dim() == 4 else y


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
        "window": lambda: Window(width, layer),
        "documents": lambda: Documents(width, layer),
        "own": lambda: Own(width, layer),
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


def hook(recorder, model, kinds):
    """Hooks that watch a network, or take part in its training."""
    products = [part for part in model.modules() if isinstance(part, (nn.Linear, nn.Conv2d))]
    middle, weight = products[len(products) // 2], products[-1].weight

    def watching(module, _, out):
        with torch.no_grad():
            module.norm = out.float().norm()

    def projected(gradient):
        """On few directions, as with low-rank optimizers."""
        flat = gradient.flatten(1)
        with recorder.hook():
            return (flat @ flat.t() @ flat).view_as(gradient)

    def halve(parameter):
        if parameter.grad is not None:
            parameter.grad.mul_(0.5)

    for kind in kinds:
        if kind == "forward":
            middle.register_forward_hook(watching)
        elif kind == "replaced":
            middle.register_forward_hook(lambda _, __, out: out * 2)
        elif kind == "backward":
            middle.register_full_backward_hook(lambda _, gradients, __: gradients)
        elif kind in ("tensor", "projected") and weight.requires_grad:
            weight.register_hook(projected if kind == "projected" else lambda g: g * 0.5)
        elif kind == "accumulated":
            for parameter in model.parameters():
                if parameter.requires_grad:
                    parameter.register_post_accumulate_grad_hook(halve)
        elif kind == "stepped":
            # The head's weights are updated in backward.
            one = torch.optim.SGD([p for p in products[-1].parameters() if p.requires_grad] or
                                  [nn.Parameter(torch.zeros(1))], lr=1e-3, foreach=True)
            if weight.requires_grad:
                weight.register_post_accumulate_grad_hook(lambda _: one.step())


class Losses:
    """What is trained, by whichever other network."""
    def __init__(self, description, recorder):
        self.other, self.ranges = description["other"], description["ranges"]
        self.outside = description["outside"]
        self.recorder = recorder
        Again.phase = lambda: recorder.phase("recompute")
        self.model = Network(description)
        self.another = copy.deepcopy(self.model).requires_grad_(False) if self.other else None
        if description["checkpoint"]:
            checkpoint_parts(recorder, self.model, *description["checkpoint"])
        for part in self.model.modules():
            # Without ranges no report can know that it belongs to the forward pass.
            if isinstance(part, Taught) and not self.ranges and description["names"] == "emit_nvtx":
                part.phase = lambda: recorder.phase("recompute" if recorder.engines else "other")
        hook(recorder, self.model, description["hooks"])
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
