"""flopinj.torch.annotate: what NVTX is told of a training with PyTorch, on the CPU.

The calls are written down by the recorder of tests/frameworks/record, which takes operators from
the observer too.
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path

import staged

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
from harness import CLIENTS, SIMGPU, injected_environment, reduce  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["FLOPINJ_BUILD"]).resolve()

PROGRAM = """
import ctypes, os, sys
import torch
import flopinj.torch
from torch.utils.checkpoint import checkpoint

torch.cuda.synchronize = lambda *_: None  # there is no GPU
log = os.environ.get("NVTX_INJECTION64_PATH")
note = ctypes.CDLL(log).nvtx_log_note if log else lambda text: None
torch.manual_seed(0)

class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.pool = torch.nn.AvgPool2d(2)
        self.body = torch.nn.Sequential(torch.nn.Linear(32, 16), torch.nn.ReLU())
        self.fc = torch.nn.Linear(16, 10)

    def forward(self, x):
        large = x.max().item() > 1e9
        x = self.pool(self.conv(x)).flatten(1)
        if CHECKPOINTED:
            x = checkpoint(self.body, x, use_reentrant=False)
        else:
            x = self.body(x)
        if large:
            raise ValueError("too large")
        return self.fc(x)

CHECKPOINTED = "checkpoint" in sys.argv
model = Network()
trained = torch.nn.DataParallel(model) if "wrapped" in sys.argv else model
if "compiled" in sys.argv:
    model.body = torch.compile(model.body, backend="eager")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
annotation = flopinj.torch.annotate(trained, steps=2)
for step in range(4):
    note(f"step {step}".encode())
    if "failing" in sys.argv and step == 1:
        try:
            trained(torch.full((4, 3, 8, 8), 1e20))
        except ValueError:
            pass
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(trained(torch.randn(4, 3, 8, 8)),
                                      torch.tensor([1, 2, 3, 4])).backward()
    optimizer.step()
note(b"end")
assert not annotation.active or not log
# Of the network itself one stays, for evaluation.
assert not any(m._forward_pre_hooks or m._forward_hooks for m in model.modules() if m is not model)
assert len(model._forward_pre_hooks) == len(model._forward_hooks) == bool(log)
print(sum(p.double().sum().item() for p in model.parameters()))
if log:
    ctypes.CDLL(log).nvtx_log_flush()
"""

# Knows nothing of flopinj: `flopinj run --torch` puts the hook into PYTHONPATH.
UNCHANGED = """
import importlib.util
assert importlib.util.find_spec("torch") is not None  # looked for before it is imported
import sys
assert "torch" not in sys.modules and "flopinj" not in sys.modules
import ctypes, os, torch
assert torch.__spec__.loader is torch.__loader__ and torch.__file__
torch.cuda.synchronize = lambda *_: None  # there is no GPU
log = os.environ.get("NVTX_INJECTION64_PATH")
note = ctypes.CDLL(log).nvtx_log_note if log else lambda text: None
torch.manual_seed(0)
network = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
network.eval()(torch.zeros(1, 4))  # does not train
network.train()
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for step in range(23):
    note(f"step {step}".encode())
    network(torch.ones(2, 4)).sum().backward()
    optimizer.step()
print(network[0].weight.sum().item(), sys.modules.get("own_site") is not None)
if log:
    ctypes.CDLL(log).nvtx_log_flush()
"""

# Each way to call a network, by its name.
PASSES = """
import ctypes, os
import torch
import flopinj.torch
from torch.utils.checkpoint import checkpoint

torch.cuda.synchronize = lambda *_: None  # there is no GPU
log = ctypes.CDLL(os.environ["NVTX_INJECTION64_PATH"])
network = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 2))
x = torch.ones(2, 4, requires_grad=True)

def train():
    network(x).sum().backward()

def cached():  # GradCache: gradients of the outputs first
    with torch.no_grad():
        out = network(x)
    network(x).backward(torch.ones_like(out))

def self_taught():
    out = network(x)
    with torch.no_grad():
        wanted = network(x)
    (out - wanted).square().sum().backward()

def validate():
    with torch.no_grad():
        network(x)

def infer():
    with torch.inference_mode():
        network(x)
        with torch.enable_grad():  # changes nothing
            network(x)

def checkpointed(reentrant):
    checkpoint(network, x, use_reentrant=reentrant).sum().backward()

def validate_checkpointed():
    with torch.no_grad():
        checkpoint(network, x, use_reentrant=True)

annotation = flopinj.torch.annotate(network, steps=None)
for name, mode, call in (
        ("train", True, train), ("train in eval", False, train), ("validate", False, validate),
        ("roll out in train", True, validate), ("infer", False, infer), ("cached", True, cached),
        ("self-taught", True, self_taught), ("reentrant", True, lambda: checkpointed(True)),
        ("not reentrant", True, lambda: checkpointed(False)),
        ("validate checkpointed", False, validate_checkpointed)):
    network.train(mode)
    log.nvtx_log_note(name.encode())
    call()
log.nvtx_log_note(b"end")
annotation.close()
log.nvtx_log_flush()
"""

# The same in a step without names.
PASSES_WITHOUT_NAMES = PASSES.replace("steps=None)", """steps=1)
optimizer = torch.optim.SGD(network.parameters(), lr=0.0)
for _ in range(2):
    train()
    optimizer.step()
""")

# A network whose own forward() is never called. argv: how it is trained.
BY_OTHER_WAYS = """
import ctypes, os, sys
import torch
import flopinj.torch

torch.cuda.synchronize = lambda *_: None  # there is no GPU
log = ctypes.CDLL(os.environ["NVTX_INJECTION64_PATH"])

class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 2))

    def training_step(self, x):
        return self.net(x).sum()

    def loss(self, x):  # calls no module
        return torch.nn.functional.linear(x, self.net[0].weight).sum()

network = Network()
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
annotation = flopinj.torch.annotate(network, steps=2)
for step in range(4):
    log.nvtx_log_note(f"step {step}".encode())
    getattr(network, sys.argv[1])(torch.ones(2, 4)).backward()
    optimizer.step()
log.nvtx_log_note(b"end")
print(annotation.active, annotation.steps_named)
log.nvtx_log_flush()
"""

# A teacher is called before the network that trains. argv: what becomes of it.
TAUGHT = """
import ctypes, os, sys
import torch

how = sys.argv[1]
torch.cuda.synchronize = lambda *_: None  # there is no GPU
log = ctypes.CDLL(os.environ["NVTX_INJECTION64_PATH"])

def network(name):
    made = torch.nn.Sequential()
    made.add_module(name, torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()))
    return made

teacher, student = network("teacher"), network("student")
x = torch.ones(2, 4)
if how == "frozen":
    teacher.requires_grad_(False)
if how in ("in eval", "copies"):
    teacher.eval()
if how == "both in eval":
    teacher.eval(), student.eval()
weights = list(student.parameters())
if how == "copies":
    weights = [torch.nn.Parameter(weight.detach().clone()) for weight in weights]
optimizer = torch.optim.SGD(weights, lr=0.1)
for step in range(4):
    log.nvtx_log_note(f"step {step}".encode())
    with torch.set_grad_enabled(how != "no_grad"):
        wanted = teacher(x).detach()
    (student(x) - wanted).square().sum().backward()
    for weight, own in zip(weights, student.parameters()):
        weight.grad = own.grad
    optimizer.step()
    optimizer.zero_grad()
    for weight, own in zip(weights, student.parameters()):
        own.data = weight.data
log.nvtx_log_flush()
"""

# emit_nvtx waits for the GPU where it begins, and there is none.
WITHOUT_GPU = """
import torch
import flopinj.torch
network = torch.nn.Linear(4, 2)
with flopinj.torch.annotate(network) as annotation:
    network(torch.ones(2, 4)).sum().backward()
print(annotation, len(network._forward_pre_hooks), len(network._forward_hooks))
"""

NAMED, UNNAMED = "flopinj step", "flopinj step without names"
CONV = "Conv2d(3, 8, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1))"
POOL = "AvgPool2d(kernel_size=2, stride=2, padding=0)"


# Everything that names differ by: each call is named by emit_nvtx and by the observer.
BOTH = """
import ctypes, os, warnings
import torch
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
import flopinj.torch.observer as observed

torch.cuda.synchronize = lambda *_: None  # there is no GPU
warnings.simplefilter("ignore")
torch.manual_seed(0)

class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2

def convolutions():
    x = torch.randn(2, 4, 16, 16, requires_grad=True)
    w = torch.randn(8, 2, 3, 3, requires_grad=True)
    for stride in (1, 2, (2, 1)):
        F.conv2d(x, w, stride=stride, padding=(1, 2), groups=2).sum().backward()
    F.conv2d(x, w, dilation=2, padding="same", groups=2).sum().backward()
    F.conv2d(x, w, padding="valid", groups=2).sum().backward()
    F.conv1d(torch.randn(1, 4, 9), torch.randn(4, 4, 3), stride=3)
    turned = torch.nn.ConvTranspose2d(4, 4, 3, stride=2, output_padding=1)
    turned(x).sum().backward()
    for ceil in (False, True):
        F.avg_pool2d(x, 3, 2, ceil_mode=ceil).sum().backward()
    F.adaptive_avg_pool2d(x, (5, 3)).sum().backward()
    F.max_pool2d(x, 2).sum().backward()
    F.interpolate(x, scale_factor=2.0, mode="bilinear").sum().backward()

def lists():
    parts = [torch.randn(2, n, requires_grad=True) for n in (1, 2, 3)]
    torch.cat(parts, 1)[:, torch.tensor([0, 2])].sum().backward()
    torch.stack([torch.ones(3)] * 2)
    torch.ones(4, 4)[None, 1:3, :: 2]
    model = torch.nn.LSTM(4, 5, 2, bidirectional=True)
    model(torch.randn(3, 2, 4))[0].sum().backward()
    for optimizer in (torch.optim.AdamW(model.parameters(), foreach=True),
                      torch.optim.SGD(model.parameters(), lr=.1, momentum=.9, foreach=True)):
        optimizer.step()

def others():
    a = torch.randn(3, 3, dtype=torch.complex64, requires_grad=True)
    (a @ a).abs().sum().backward()
    with torch.autograd.profiler.record_function("mine"):
        Twice.apply(torch.ones(2, requires_grad=True)).sum().backward()
    body = torch.nn.Linear(4, 4)
    checkpoint(body, torch.randn(2, 4), use_reentrant=False).sum().backward()
    F.embedding_bag(torch.tensor([[0, 1]]), torch.randn(4, 2, requires_grad=True)).sum().backward()
    x = torch.randn(2, 8, 4, 4, requires_grad=True)
    F.scaled_dot_product_attention(x, x, x, is_causal=True).sum().backward()
    torch.ops.windows.attention(x, x, x, False, 3, None)
    with torch.autocast("cpu"):
        body(torch.randn(2, 4)).sum().backward()
    y = torch.ones(3, requires_grad=True)
    g, = torch.autograd.grad((y ** 3).sum(), y, create_graph=True)
    g.sum().backward()
    torch.scalar_tensor(3)

# An operator as FlashAttention has one.
library = torch.library.Library("windows", "DEF")
library.define("attention(Tensor q, Tensor k, Tensor v, bool causal, SymInt window_size_left, "
               "SymInt? window_size_right) -> Tensor")
library.impl("attention", lambda q, k, v, causal, left, right: q * 2, "CPU")

log = ctypes.CDLL(os.environ["NVTX_INJECTION64_PATH"])
with torch.autograd.profiler.emit_nvtx(record_shapes=True), observed.observer():
    for step in range(2):  # the second time from hashes
        for part in (convolutions, lists, others):
            part()
with observed.observer():
    for step in range(2):
        log.nvtx_log_note(b"nested")  # such tensors have no sizes; emit_nvtx loses count of ranges
        torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]) * 2
log.nvtx_log_flush()
"""

# launch() runs a kernel on the simulated GPU: a dot product of so many elements as an operator has
# multiply-adds.
GPU = """
import ctypes, sys
ctypes.CDLL("libcupti.so.13")  # the simulated one, before PyTorch brings its own
import torch

driver = ctypes.CDLL("libcuda.so.1")

def ok(result):
    assert result == 0, result

def made(function, *arguments, kind=ctypes.c_void_p):
    handle = kind()
    ok(function(ctypes.byref(handle), *arguments))
    return handle

ok(driver.cuInit(0))
ok(driver.cuCtxSetCurrent(made(driver.cuDevicePrimaryCtxRetain, 0)))
module = made(driver.cuModuleLoadData, open(sys.argv[1], "rb").read())
dot = made(driver.cuModuleGetFunction, module, b"dot")
x, y = (made(driver.cuMemAlloc_v2, ctypes.c_size_t(1 << 20)) for _ in range(2))

def launch(multiply_adds):
    given = [ctypes.c_int(multiply_adds), x, y]
    places = (ctypes.c_void_p * 3)(*(ctypes.addressof(one) for one in given))
    ok(driver.cuLaunchKernel(dot, *[1] * 6, 0, None, places, None))

torch.cuda.synchronize = lambda *_: None  # there is no GPU for PyTorch
"""

# A convolution and its gradient.
SIMULATED = GPU + """
def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    size = [(n + 2 * p - k) // s + 1
            for n, k, s, p in zip(input.shape[2:], weight.shape[2:], stride, padding)]
    out = input.new_ones(input.shape[0], weight.shape[0], *size)
    launch(out.numel() * weight[0].numel())
    return out

def gradient(output, input, weight, bias_sizes, stride, padding, dilation, transposed,
             output_padding, groups, mask):
    launch(output.numel() * weight[0].numel())
    launch(output.numel() * weight[0].numel())
    return torch.ones_like(input), torch.ones_like(weight), None

library = torch.library.Library("aten", "IMPL")
library.impl("convolution", convolution, "CPU")
library.impl("convolution_backward", gradient, "CPU")

class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4, 2, 3, 3))

    def forward(self, x):
        with torch.no_grad():  # nobody differentiates it: only settings say how large its result is
            torch.nn.functional.conv2d(x, self.weight, stride=3)
        return torch.nn.functional.conv2d(x, self.weight, stride=2, padding=1)

network = Network()
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    network(torch.ones(2, 2, 9, 7)).sum().backward()
    optimizer.step()
ok(driver.cuCtxSynchronize())
"""

# Attention by operators with the names and arguments that FlashAttention 2 has
# (flash_attn/flash_attn_interface.py). What kernels do is counted pair by pair.
ATTENTION = GPU + """
from typing import Optional, Tuple

import torch.nn.functional as F

def pairs(queries, keys, causal, left, right):
    seen = 0
    for query in range(queries):
        place = query + keys - queries  # the last query is at the last key
        for key in range(keys):
            seen += ((not causal or key <= place) and (left < 0 or key >= place - left) and
                     (right < 0 or key <= place + right))
    return seen

@torch.library.custom_op("flash_attn::_flash_attn_forward", mutates_args=())
def forward_operator(
        q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dropout_p: float, softmax_scale: float,
        causal: bool, window_size_left: int, window_size_right: int, softcap: float,
        alibi_slopes: Optional[torch.Tensor], return_softmax: bool) -> torch.Tensor:
    seen = pairs(q.shape[1], k.shape[1], causal, window_size_left, window_size_right)
    launch(q.shape[0] * q.shape[2] * seen * 2 * q.shape[3])
    return q * 2

@torch.library.custom_op("flash_attn::_flash_attn_backward", mutates_args=("dq", "dk", "dv"))
def backward_operator(
        dout: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor,
        softmax_lse: torch.Tensor, dq: Optional[torch.Tensor], dk: Optional[torch.Tensor],
        dv: Optional[torch.Tensor], dropout_p: float, softmax_scale: float, causal: bool,
        window_size_left: int, window_size_right: int, softcap: float,
        alibi_slopes: Optional[torch.Tensor], deterministic: bool,
        rng_state: Optional[torch.Tensor] = None) -> torch.Tensor:
    seen = pairs(q.shape[1], k.shape[1], causal, window_size_left, window_size_right)
    launch(q.shape[0] * q.shape[2] * seen * 5 * q.shape[3])
    return dout * 2

@torch.library.custom_op("flash_attn::_flash_attn_varlen_forward", mutates_args=())
def packed_forward_operator(
        q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cu_seqlens_q: torch.Tensor,
        cu_seqlens_k: torch.Tensor, max_seqlen_q: int, max_seqlen_k: int, dropout_p: float,
        softmax_scale: float, causal: bool, window_size_left: int = -1,
        window_size_right: int = -1) -> torch.Tensor:
    launch(q.shape[1] * packed_pairs(cu_seqlens_q) * 2 * q.shape[2])
    return q * 2

@torch.library.custom_op("flash_attn::_flash_attn_varlen_backward",
                         mutates_args=("dq", "dk", "dv"))
def packed_backward_operator(
        dout: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor,
        softmax_lse: torch.Tensor, dq: Optional[torch.Tensor], dk: Optional[torch.Tensor],
        dv: Optional[torch.Tensor], cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor,
        max_seqlen_q: int, max_seqlen_k: int, dropout_p: float, softmax_scale: float,
        causal: bool) -> torch.Tensor:
    launch(q.shape[1] * packed_pairs(cu_seqlens_q) * 5 * q.shape[2])
    return dout * 2

def packed_pairs(starts):
    return sum(pairs(n, n, True, -1, -1) for n in starts.diff().tolist())

class FlashAttnFunc(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, causal, left, right):
        ctx.save_for_backward(q, k, v)
        ctx.mask = causal, left, right
        return torch.ops.flash_attn._flash_attn_forward(
            q, k, v, 0.0, 1.0, causal, left, right, 0.0, None, False)

    @staticmethod
    def backward(ctx, dout):
        q, k, v = ctx.saved_tensors
        gradients = [torch.empty_like(x) for x in (q, k, v)]
        torch.ops.flash_attn._flash_attn_backward(
            dout, q, k, v, dout, torch.ones(q.shape[0], q.shape[2], q.shape[1]), *gradients, 0.0,
            1.0, *ctx.mask, 0.0, None, False)
        return *gradients, None, None, None

class FlashAttnVarlenFunc(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, starts):
        ctx.save_for_backward(q, k, v, starts)
        return torch.ops.flash_attn._flash_attn_varlen_forward(
            q, k, v, starts, starts, 9, 9, 0.0, 1.0, True)

    @staticmethod
    def backward(ctx, dout):
        q, k, v, starts = ctx.saved_tensors
        gradients = [torch.empty_like(x) for x in (q, k, v)]
        torch.ops.flash_attn._flash_attn_varlen_backward(
            dout, q, k, v, dout, torch.ones(q.shape[1], q.shape[0]), *gradients, starts, starts,
            9, 9, 0.0, 1.0, True)
        return *gradients, None

class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, x, long, packed, starts):
        q = x * self.weight
        for causal, left, right in MASKS:
            k = long * self.weight
            x = x + FlashAttnFunc.apply(q, k, k, causal, left, right)
        p = packed * self.weight
        return x.sum() + FlashAttnVarlenFunc.apply(p, p, p, starts).sum()

MASKS = [(False, -1, -1), (True, -1, -1), (True, 3, 0), (False, 2, 4)]
network = Network()
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
starts = torch.tensor([0, 5, 6, 15], dtype=torch.int32)
for step in range(3):
    optimizer.zero_grad()
    network(torch.ones(2, 12, 3, 8), torch.ones(2, 17, 3, 8), torch.ones(15, 3, 8),
            starts).backward()
    optimizer.step()
ok(driver.cuCtxSynchronize())
"""

RUN = """
import os, sys
flopinj, trace, code, kernels = sys.argv[1:]
os.execv(flopinj, [flopinj, "run", "--simulate", "--torch", "-q", "--force", "-o", trace, "--",
                   sys.executable, "-c", code, kernels])
"""

LIGHTNING = """
import csv, ctypes, os, tempfile
import flopinj.callbacks
import lightning
import torch
from flopinj import tracking
from lightning.pytorch.loggers import CSVLogger

torch.cuda.synchronize = lambda *_: None  # there is no GPU
tracking.sample = lambda: {"hfu": 0.5}  # nothing is recorded
log = ctypes.CDLL(os.environ["NVTX_INJECTION64_PATH"])

class Network(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 2))

    def forward(self, batch):
        return self.net(batch)

    def training_step(self, batch, index):
        log.nvtx_log_note(f"step {index}".encode())
        return self.net(batch).sum()

    def validation_step(self, batch, index):
        log.nvtx_log_note(b"sanity" if self.trainer.sanity_checking else b"validation")
        self(batch)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

data = torch.utils.data.DataLoader(torch.ones(8, 4), batch_size=2)
with tempfile.TemporaryDirectory() as folder:
    logger = CSVLogger(folder)
    lightning.Trainer(max_epochs=1, accelerator="cpu", logger=logger, enable_checkpointing=False,
                      enable_progress_bar=False, enable_model_summary=False,
                      callbacks=[flopinj.callbacks.lightning(steps=2, log=tracking.Log())],
                      num_sanity_val_steps=1, val_check_interval=2).fit(Network(), data, data)
    logger.save()
    *_, last = csv.DictReader(open(logger.log_dir + "/metrics.csv"))
print(last["step"], last["flopinj/hfu"])
log.nvtx_log_note(b"end")
log.nvtx_log_flush()
"""
HUGGING_FACE = """
import ctypes, os, tempfile
import flopinj.callbacks
import torch
import transformers
from flopinj import tracking

seen = []
tracking.sample = lambda: {"hfu": 0.5}  # nothing is recorded
torch.cuda.synchronize = lambda *_: None  # there is no GPU
log = ctypes.CDLL(os.environ["NVTX_INJECTION64_PATH"])

class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 2))
        self.steps = 0

    def forward(self, x, labels=None):
        log.nvtx_log_note(f"step {self.steps}".encode())
        self.steps += 1
        return {"loss": self.net(x).sum()}

with tempfile.TemporaryDirectory() as folder:
    options = transformers.TrainingArguments(
        output_dir=folder, max_steps=4, per_device_train_batch_size=2, use_cpu=True,
        report_to=[], save_strategy="no", disable_tqdm=True, remove_unused_columns=False)
    figures = tracking.Log(lambda values, step: seen.append((step, values)))
    transformers.Trainer(Network(), options, train_dataset=[{"x": torch.ones(4)}] * 8,
                         callbacks=[flopinj.callbacks.hugging_face(steps=2, log=figures)]).train()
print(seen[-1][0], seen[-1][1]["flopinj/hfu"])
log.nvtx_log_note(b"end")
log.nvtx_log_flush()
"""


# Launches of 2 n FLOP on the simulated GPU, from within a training on the CPU. argv: the kernels.
LOGGED = """
import ctypes, json, sys, tempfile
import flopinj.callbacks
import torch
from flopinj import tracking

cuda = ctypes.CDLL("libcuda.so.1")

def made(function, *arguments):
    value = ctypes.c_void_p()
    assert getattr(cuda, function)(ctypes.byref(value), *arguments) == 0, function
    return value

assert cuda.cuInit(0) == 0
assert cuda.cuCtxSetCurrent(made("cuDevicePrimaryCtxRetain", 0)) == 0
module = made("cuModuleLoadData", open(sys.argv[1], "rb").read() + bytes(1))
axpy = made("cuModuleGetFunction", module, b"axpy")
x, y = (made("cuMemAlloc_v2", ctypes.c_size_t(4096)) for _ in range(2))

def launch(n):
    values = ctypes.c_int(n), ctypes.c_float(2), x, y
    pointers = (ctypes.c_void_p * 4)(*(ctypes.addressof(value) for value in values))
    assert cuda.cuLaunchKernel(axpy, (n + 31) // 32, 1, 1, 32, 1, 1, 0, None, pointers, None) == 0

class CpuOnly(torch.nn.Module):
    main_input_name = "x"

    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(4, 2)

    def forward(self, x, labels=None):
        launch(100)
        return {"loss": self.net(x).sum()}

class Log(tracking.Log):
    def close(self):  # the recording goes on, and its last launches may not be written yet
        while self._sampler and tracking.sample().get("flop") != 4 * 200:
            pass
        super().close()

seen = []
def sink(values, step):
    seen.append([step, values])
"""
LOGGED_BY = {
    "transformers": LOGGED + """
import transformers

with tempfile.TemporaryDirectory() as folder:
    options = transformers.TrainingArguments(
        output_dir=folder, max_steps=4, per_device_train_batch_size=2, use_cpu=True,
        report_to=[], save_strategy="no", disable_tqdm=True, remove_unused_columns=False,
        include_num_input_tokens_seen="all")
    transformers.Trainer(
        CpuOnly(), options, train_dataset=[{"x": torch.ones(4)}] * 8,
        callbacks=[flopinj.callbacks.hugging_face(log=Log(sink, every=60))]).train()
print(json.dumps(seen[-1]))
""",
    "lightning": LOGGED + """
import csv, lightning
from lightning.pytorch.loggers import CSVLogger

class Network(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = CpuOnly()

    def training_step(self, batch, index):
        return self.net(batch)["loss"]

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

data = torch.utils.data.DataLoader(torch.ones(8, 4), batch_size=2)
with tempfile.TemporaryDirectory() as folder:
    logger = CSVLogger(folder)
    lightning.Trainer(
        max_epochs=1, accelerator="cpu", logger=logger, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
        callbacks=[flopinj.callbacks.lightning(log=Log(every=60), tokens=torch.numel)]
    ).fit(Network(), data)
    last = list(csv.DictReader(open(logger.log_dir + "/metrics.csv")))[-1]
print(json.dumps([int(last.pop("step")), {key: float(last[key]) for key in last
                                          if key.startswith("flopinj/") and last[key]}]))
"""}

NO_COMPILER = ("flopinj: emit_nvtx names the operators, at a higher cost and without settings: "
               "no C++ compiler was found; install g++, or name one in CXX")


def has(name):
    return unittest.skipIf(importlib.util.find_spec(name) is None,
                           f"no {name}; `tools/dev test-frameworks` brings it")


def folder_of_all():
    """The observer is built once for all tests."""
    made = tempfile.TemporaryDirectory(prefix="flopinj-observer-")
    unittest.addModuleCleanup(made.cleanup)
    return made.name


def setUpModule():
    Recorded.cache = folder_of_all()


class Recorded(unittest.TestCase):
    cache = ""
    observed = True  # else there is no compiler, and emit_nvtx names operators

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="flopinj-torch-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        staged.stage(cls.folder / "package", BUILD)
        cls.recorder = cls.folder / "nvtx_log.so"
        include = next(path for path in map(Path, sys.path)
                       for path in path.glob("nvidia/**/include/nvtx3")).parent
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", f"-I{include}", f"-I{ROOT}/injector",
                        "-o", cls.recorder, ROOT / "tests/frameworks/record/nvtx_log.c"],
                       check=True)

    def lines(self, program, *arguments, env):
        """What the program prints, and the lines of the recorder."""
        log = self.folder / "log"
        log.unlink(missing_ok=True)
        env = {k: v for k, v in os.environ.items() if not k.startswith("FLOPINJ_")} | env
        env |= {"XDG_CACHE_HOME": self.cache}
        if not self.observed:
            env |= {"XDG_CACHE_HOME": str(self.folder / "empty"), "PATH": "", "CXX": ""}
        done = subprocess.run([sys.executable, "-c", program, *arguments], env=env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = [line for line in done.stderr.splitlines() if line.startswith("flopinj: ")]
        if self.observed or not (program is RUN or "NVTX_INJECTION64_PATH" in env):
            self.assertFalse([line for line in said if "building observer.cpp" not in line])
        else:
            self.assertEqual(said, [NO_COMPILER])
        return done.stdout, log.read_text().splitlines() if log.exists() else []

    def train(self, *arguments, injected=True, program=PROGRAM, before=""):
        """What the program prints, and the calls: (step, word, name). `before`: of PYTHONPATH."""
        env = {"PYTHONPATH": before + str(self.folder / "package")}
        if injected:
            env |= {"NVTX_INJECTION64_PATH": str(self.recorder),
                    "FRAMEWORKS_NVTX_LOG": str(self.folder / "log")}
        printed, lines = self.lines(program, *arguments, env=env)
        calls, step, depth = [], "", Counter()
        self.steps = []
        for line in lines:
            word, thread, *rest = line.split("\t")
            if word == "note":
                step = rest[0]
            elif word in ("push", "pop", "operator", "operator_end"):
                begins = word in ("push", "operator")
                depth[thread] += 1 if begins else -1
                self.assertGreaterEqual(depth[thread], 0)
                calls.append((step, "push" if begins else "pop", rest[1] if begins else ""))
            elif word in ("start", "end"):
                self.steps.append((step, word, *rest[1:][-1:]))
                if word == "operator":
                    self.assertTrue(self.observed)
        self.assertEqual(set(depth.values()) - {0}, set())
        return printed, calls

    def ranges(self, calls, *steps):
        """Ranges of modules, and how many of each."""
        return Counter(name for step, word, name in calls
                       if word == "push" and step in steps and
                       (name in ("forward", "evaluation", CONV, POOL)
                        or name.startswith("layer:")))


class Logged(unittest.TestCase):
    def check(self, framework, tokens):
        with tempfile.TemporaryDirectory(prefix="flopinj-logged-") as folder:
            staged.stage(folder, BUILD)
            # PyTorch brings a CUPTI; the one under its name that is there before stays.
            env = injected_environment(Path(folder) / "t.pb", FLOPINJ_FLUSH_MS=10,
                                       LD_PRELOAD=SIMGPU / "libcupti.so.13")
            done = subprocess.run(
                [sys.executable, "-c", LOGGED_BY[framework], CLIENTS / "client_kernels.ptx"],
                env=env | {"PYTHONPATH": folder}, text=True, cwd=folder, timeout=600,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 0, done.stderr)
            report = reduce(Path(folder) / "t.pb")
        step, values = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual((step, values["flopinj/flop"]), (4, 4 * 200))
        self.assertNotIn("flopinj/flop_per_token", values)  # so early tokens come too late
        self.assertEqual([row["total"] for row in report["numbers"] if row["whole"]], [tokens])
        self.assertGreater(values["flopinj/hfu"], 0)
        self.assertNotIn("flopinj/mfu", values)

    @has("transformers")
    def test_a_callback_of_transformers(self):
        self.check("transformers", 4 * 2 * 4)

    @has("lightning")
    def test_a_callback_of_lightning(self):
        self.check("lightning", 4 * 2 * 4)


class Annotated(Recorded):

    MODULES = Counter(["forward", "layer:conv", "layer:pool", "layer:body", "layer:body.0",
                       "layer:body.1", "layer:fc"])

    def test_modules_and_operators_have_ranges_in_the_first_steps(self):
        _, calls = self.train()
        for step in ("step 0", "step 1"):
            self.assertEqual(self.ranges(calls, step), self.MODULES)
            operators = [name for at, word, name in calls if at == step and "sizes = [[" in name]
            self.assertEqual(
                any(name.startswith("aten::conv2d, ") and ", stride = [2, 2]" in name
                    for name in operators), self.observed)
            self.assertTrue(any(name.startswith("aten::conv2d, ") for name in operators))
        self.assertEqual(self.ranges(calls, "step 2", "step 3"), Counter())

    def test_after_them_nothing_is_pushed(self):
        _, calls = self.train()
        # The first forward pass after the last step takes the ranges away.
        late = [call for call in calls if call[0] in ("step 2", "step 3")]
        self.assertEqual([name for _, _, name in late if name.startswith("aten::conv")], [])
        self.assertEqual([call for call in late if call[0] == "step 3"], [])

    def test_each_step_says_whether_it_has_names(self):
        self.train()
        begun = [(step, name[0]) for step, word, *name in self.steps if word == "start"]
        # A step lasts from the end of the optimizer's to the end of its next one.
        self.assertEqual(begun, [("", NAMED), ("step 0", NAMED), ("step 1", UNNAMED),
                                 ("step 2", UNNAMED), ("step 3", UNNAMED)])
        self.assertEqual([word for _, word, *_ in self.steps], ["start"] + ["end", "start"] * 4)

    def test_training_is_as_without_ranges(self):
        self.assertEqual(self.train()[0], self.train(injected=False)[0])

    def test_names_are_those_of_the_model_inside_of_a_wrapper(self):
        _, calls = self.train("wrapped")
        self.assertEqual(self.ranges(calls, "step 0"), self.MODULES)

    def test_a_forward_pass_that_fails_leaves_no_range_open(self):
        _, calls = self.train("failing")
        failed = self.MODULES - Counter(["layer:fc"])
        self.assertEqual(self.ranges(calls, "step 1"), self.MODULES + failed)

    def test_checkpointed_modules_run_twice(self):
        _, calls = self.train("checkpoint")
        again = Counter(["layer:body.0", "layer:body.1", "layer:body"])
        self.assertEqual(self.ranges(calls, "step 0"), self.MODULES + again)

    def test_inside_of_a_compiled_region_there_are_no_modules(self):
        _, calls = self.train("compiled")
        inside = Counter(["layer:body.0", "layer:body.1"])
        self.assertEqual(self.ranges(calls, "step 0"), self.MODULES - inside)

    def test_a_script_that_knows_nothing_of_it(self):
        own = self.folder / "own"
        own.mkdir(exist_ok=True)
        (own / "sitecustomize.py").write_text("import own_site")
        (own / "own_site.py").write_text("")
        hook = f"{BUILD}/lib/flopinj/torch:{own}:"
        printed, calls = self.train(program=UNCHANGED, before=hook)
        modules = Counter({"forward": 1, "layer:0": 1, "layer:1": 1, "layer:2": 1})
        # In its first forward pass the outermost module runs already.
        self.assertEqual(self.ranges(calls, "step 0"), modules - Counter(["forward"]))
        for step in (1, 2):
            self.assertEqual(self.ranges(calls, f"step {step}"), modules)
        later = [self.ranges(calls, f"step {step}") for step in range(3, 23)]
        self.assertIn(Counter(), later)  # a step of so small a network costs less than its names
        self.assertLessEqual({*map(tuple, map(sorted, later))}, {(), tuple(sorted(modules))})
        self.assertTrue(any(name.startswith("aten::linear, ") for _, _, name in calls))
        without, _ = self.train(program=UNCHANGED, before=hook, injected=False)
        self.assertEqual(printed, without)
        self.assertTrue(printed.endswith("True\n"), printed)  # Python's own sitecustomize has run


    # By name: how often a network is called with gradients, and without.
    PASSES = {"train": (1, 0), "train in eval": (1, 0), "validate": (0, 1),
              "roll out in train": (0, 1), "infer": (0, 2), "cached": (1, 1), "self-taught": (1, 1),
              "reentrant": (2, 0), "not reentrant": (2, 0), "validate checkpointed": (0, 1)}

    def test_a_pass_without_gradients_is_no_forward_pass(self):
        _, calls = self.train(program=PASSES)
        for name, (forward, evaluation) in self.PASSES.items():
            with self.subTest(name):
                layers = dict.fromkeys(("layer:0", "layer:1"), forward + evaluation)
                self.assertEqual(self.ranges(calls, name), +Counter(
                    {"forward": forward, "evaluation": evaluation, **layers}))

    def test_a_pass_without_gradients_has_its_range_in_steps_without_names(self):
        _, calls = self.train(program=PASSES_WITHOUT_NAMES)
        for name, (_, evaluation) in self.PASSES.items():
            with self.subTest(name):
                self.assertEqual(self.ranges(calls, name), +Counter({"evaluation": evaluation}))
                self.assertFalse([call for call in calls
                                  if call[0] == name and call[2].startswith("aten::")])

    def test_names_end_where_the_networks_own_forward_is_not_called(self):
        for how in ("training_step", "loss"):
            if how == "loss" and not self.observed:
                continue  # emit_nvtx cannot end inside of the optimizer's step
            with self.subTest(how):
                printed, calls = self.train(how, program=BY_OTHER_WAYS)
                self.assertEqual(printed.split(), ["False", "2"])
                layers = ("layer:net", "layer:net.0", "layer:net.1")
                for step in ("step 0", "step 1"):
                    self.assertEqual(self.ranges(calls, step),
                                     Counter(layers if how == "training_step" else ()))
                    self.assertTrue(any(at == step and name.startswith("aten::linear, ")
                                        for at, _, name in calls))
                late = [name for at, _, name in calls if at in ("step 2", "step 3", "end") and name]
                self.assertEqual([name for name in late if name.startswith("aten::linear")], [])
                # emit_nvtx goes before the next module, and has named the data.
                self.assertEqual(bool(late), not self.observed)
                self.assertEqual([call for call in calls if call[0] in ("step 3", "end")], [])

    def test_a_teacher_is_not_the_network_that_trains(self):
        hook = f"{BUILD}/lib/flopinj/torch:"
        inner = ["", ".0", ".1"]
        for how in ("detached", "frozen", "no_grad", "in eval", "both in eval", "copies"):
            with self.subTest(how):
                _, calls = self.train(how, program=TAUGHT, before=hook)
                layers = Counter(f"layer:student{name}" for name in inner)
                # Of an optimizer that has copies of the weights its first step is waited for.
                first = Counter() if how == "copies" else layers
                self.assertEqual(self.ranges(calls, "step 0"), first)
                second = layers if how == "copies" else layers + Counter(["forward"])
                self.assertEqual(self.ranges(calls, "step 1"), second)

    def test_where_names_cannot_be_the_program_goes_on(self):
        env = os.environ | {"PYTHONPATH": str(self.folder / "package"), "PATH": "", "CXX": "",
                            "XDG_CACHE_HOME": str(self.folder / "empty"),
                            "CUDA_VISIBLE_DEVICES": "",
                            "NVTX_INJECTION64_PATH": str(self.recorder)}
        done = subprocess.run([sys.executable, "-c", WITHOUT_GPU], env=env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout,
                         "<flopinj.torch.Annotation: none, after 0 steps> 0 0\n")
        self.assertRegex(done.stderr,
                         "(?m)^flopinj: no names for modules and operators: .*(GPU|CUDA|driver)")


class AnnotatedWithoutCompiler(Annotated):
    """Operators by emit_nvtx, settings by modules."""
    observed = False
    MODULES = Annotated.MODULES + Counter([CONV, POOL])


class Observer(Recorded):

    @staticmethod
    def plain(name):
        """Without what changes with every call, and what only the observer says."""
        return re.sub(r", (op_id = \d+|input_op_ids = \[[^]]*\]|(kernel_size|stride|padding|"
                      r"dilation|output_size|types) = (\[[^]]*\]|\w+)|"
                      r"(ceil_mode|transposed|causal|is_causal|window_size_left) = \w+)", "",
                      name)

    def test_each_call_is_told_as_emit_nvtx_tells_it(self):
        env = {"PYTHONPATH": str(self.folder / "package"),
               "NVTX_INJECTION64_PATH": str(self.recorder),
               "FRAMEWORKS_NVTX_LOG": str(self.folder / "log")}
        _, lines = self.lines(BOTH, env=env)
        told, open_ = {"push": [], "operator": []}, Counter()
        nested = []
        for line in lines:
            word, thread, *rest = line.split("\t")
            if word == "note":
                nested.append([])
            elif nested:
                nested[-1] += rest[1:] if word == "operator" else []
            elif word == "operator":
                number, name = rest
                sequence = "" if int(number) < 0 else f", seq = {number}"
                head, comma, tail = name.partition(", ")
                told[word].append((thread, open_[word], head + sequence + comma + tail))
            elif word == "push":
                told[word].append((thread, open_[word], rest[1]))
            which = word if word in told else {"pop": "push", "operator_end": "operator"}.get(word)
            if which is not None:
                open_[which] += 1 if word in told else -1
        self.assertGreater(len(told["push"]), 1000)
        for one, other in zip(told["push"], told["operator"]):
            self.assertEqual((*one[:2], self.plain(one[2])), (*other[:2], self.plain(other[2])))
        self.assertEqual(len(told["push"]), len(told["operator"]))
        self.assertEqual(+open_, Counter())
        self.assertEqual(nested[0], nested[1])
        self.assertIn("aten::mul", nested[0])
        names = {name for _, _, name in told["operator"]}
        for part in (", stride = [2, 1], padding = [1, 2], dilation = [1, 1]", ", padding = same",
                     ", ceil_mode = True", ", transposed = True", ", output_size = [5, 3]",
                     ", types = [ComplexFloat]", ", is_causal = True",
                     ", causal = False, window_size_left = 3"):
            self.assertTrue(any(part in name for name in names), part)
        # The types of all tensors, each once, and of nothing else.
        for name in names:
            types = re.search(r", types = \[([A-Z]\w*(, [A-Z]\w*)*)\]$", name)
            if re.search(r"sizes = \[.*\[\d", name):
                self.assertIsNotNone(types, name)
            if types:
                each = types[1].split(", ")
                self.assertEqual(len(each), len(set(each)), name)
        for part in ("aten::embedding_bag, .*, types = \\[Float, Long", "aten::linear, .*BFloat16"):
            self.assertTrue(any(re.match(part, name) for name in names), part)


class Simulated(Recorded):
    """Real operators of PyTorch by `flopinj run --torch`, with kernels on the simulated GPU."""

    def report(self, observed, program=SIMULATED):
        trace = self.folder / "trace.pb"
        self.observed = observed
        self.lines(RUN, BUILD / "bin/flopinj", trace, program,
                   BUILD / "tests/integration/client_kernels.ptx",
                   env={"PYTHONPATH": str(self.folder / "package")})
        done = subprocess.run([BUILD / "bin" / "flopreduce", "--format", "json", trace], text=True,
                              stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)

    def test_each_figure_of_emit_nvtx_is_the_same_and_settings_give_formulas(self):
        by_emit, by_observer = self.report(False), self.report(True)
        strided, inner = 2 * 4 * 5 * 4 * 18, 2 * 4 * 3 * 2 * 18  # multiply-adds: outputs x weights
        for report in (by_emit, by_observer):
            self.assertEqual(report["figures"]["launches"], 3 * 4)
            self.assertEqual({row["phase"]: row["flop"] for row in report["phases"]},
                             {"forward": 2 * (3 * strided + 2 * inner),
                              "backward": 2 * 3 * 2 * strided,
                              "other": 2 * inner})  # before the range of the first forward pass
        for what in ("launches", "flop"):
            sums = Counter(), Counter()  # without settings both convolutions are one range
            for report, sum_ in zip((by_emit, by_observer), sums):
                for row in report["ranges"]:
                    sum_[Observer.plain(row["range"])] += row[what]
            self.assertEqual(*sums)
        formulas = [{(row["operator"], row["phase"]): row["formula_flop"]
                     for row in report["operators"]} for report in (by_emit, by_observer)]
        backward = ("aten::convolution_backward", "backward")
        self.assertEqual(formulas[1], {("aten::conv2d", "forward"): 2 * (3 * strided + 2 * inner),
                                       ("aten::conv2d", "other"): 2 * inner,
                                       backward: 2 * 3 * 2 * strided})
        self.assertEqual(formulas[0][backward], formulas[1][backward])
        self.assertNotEqual(formulas[0], formulas[1])

    def test_attention_has_its_masks_and_packed_sequences_count_as_executed(self):
        report = self.report(True, ATTENTION)
        # Of 12 queries at the last of 17 keys: all, up to the query's own place 5 to 16, that and
        # three before it, and from two before it to four behind it.
        seen = (12 * 17 + sum(range(6, 18)) + 12 * 4 +
                sum(min(place + 4, 16) - place + 3 for place in range(5, 17)))
        whole = 3 * 2 * (2 * 3) * seen * 2 * 8  # steps, a multiply-add, heads, widths
        packed = 3 * 2 * 3 * (15 + 1 + 45) * 2 * 8
        rows = {(row["operator"].split("::")[-1], row["phase"]): row for row in report["operators"]
                if row["operator"].startswith("flash_attn::")}
        for name, phase, formula, flop, model in (
                ("_flash_attn_forward", "forward", whole, whole, whole),
                ("_flash_attn_backward", "backward", 2 * whole, 5 * whole // 2, 2 * whole),
                ("_flash_attn_varlen_forward", "forward", None, packed, packed),
                ("_flash_attn_varlen_backward", "backward", None, 5 * packed // 2, 2 * packed)):
            with self.subTest(name):
                row = rows[name, phase]
                self.assertEqual((row["formula_flop"], row["flop"]), (formula, flop))
                self.assertAlmostEqual(row["model_flop"], model, delta=1)


class Callbacks(Recorded):

    def check(self, program):
        printed, calls = self.train(program=program)
        self.assertEqual(printed.splitlines()[-1], "4 0.5")  # the last step that was logged
        layers = Counter(["layer:net", "layer:net.0", "layer:net.1"])
        for step in ("step 0", "step 1"):
            self.assertEqual(self.ranges(calls, step) & layers, layers, step)
        self.assertEqual(self.ranges(calls, "step 2", "step 3", "end"), Counter())
        self.assertEqual([name for _, word, name in calls if name == "step"], ["step"] * 4)
        self.assertTrue(any(name.startswith("aten::linear, ") for _, _, name in calls))
        return calls

    @has("lightning")
    def test_of_lightning(self):
        calls = self.check(LIGHTNING)
        ranges = self.ranges(calls, "sanity")
        self.assertEqual((ranges["evaluation"], ranges["forward"]), (1, 0))
        self.assertEqual(self.ranges(calls, "validation")["forward"], 0)

    @has("transformers")
    def test_of_hugging_face(self):
        self.check(HUGGING_FACE)


if __name__ == "__main__":
    if importlib.util.find_spec("torch") is None:
        print("skipped: no torch; `tools/dev test-frameworks` brings it")
        sys.exit(77)
    unittest.main(verbosity=2)
