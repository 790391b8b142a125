#!/usr/bin/env python3
"""Training programs that use a GPU as people do. `workloads.py NAME` runs one; exit code 77 where
its requirements are missing. Each prints one JSON line with what its matrix products cost by
formula, or with nothing but the framework's version where no formula holds."""

import json
import os
import sys

STEPS = 24
WIDTH, DEPTH, BATCH = 1024, 4, 512  # of the plain network; multiples of every tile


def torch_or_skip():
    try:
        import torch
    except ImportError:
        sys.exit(77)
    if not torch.cuda.is_available():
        sys.exit(77)
    torch.manual_seed(1)
    return torch


def say(**facts):
    print(json.dumps(facts))


def plain_flop():
    """Matrix FLOP of all steps: one product forward, two backward, the first layer's input
    gradient left out."""
    product = 2 * BATCH * WIDTH * WIDTH * STEPS
    return {"forward": DEPTH * product, "backward": (2 * DEPTH - 1) * product}


def plain_model(torch):
    layers = [torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(DEPTH)]
    return torch.nn.Sequential(*layers).cuda()


def train(torch, model, step_of=None, dtype=None, between=None):
    """Trains `model` under phase ranges."""
    x = torch.randn(BATCH, WIDTH, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    step_of = step_of or model
    for step in range(STEPS):
        with torch.cuda.nvtx.range("forward"), torch.autocast("cuda", dtype, dtype is not None):
            loss = step_of(x).float().square().mean()
        with torch.cuda.nvtx.range("backward"):
            loss.backward()
        with torch.cuda.nvtx.range("optimizer"):
            optimizer.step()
            optimizer.zero_grad()
        if between is not None:
            between(step)
    torch.cuda.synchronize()


def bf16():
    torch = torch_or_skip()
    train(torch, plain_model(torch), dtype=torch.bfloat16)
    say(torch=torch.__version__, **plain_flop())


def compiled():
    """Inductor's Triton kernels and CUDA graphs."""
    torch = torch_or_skip()
    model = plain_model(torch)
    train(torch, model, torch.compile(model, mode="reduce-overhead"))
    say(torch=torch.__version__, **plain_flop())


def triton():
    """A kernel written in Triton, compiled for tensor cores as the program runs."""
    torch = torch_or_skip()
    global tl  # as Triton finds it: among the module's names
    try:
        import triton as framework
        import triton.language as tl
    except ImportError:
        sys.exit(77)

    @framework.jit
    def product(a, b, c, N: tl.constexpr, TILE: tl.constexpr):
        rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
        columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
        total = tl.zeros((TILE, TILE), tl.float32)
        for depth in range(0, N, TILE):
            along = depth + tl.arange(0, TILE)
            left = tl.load(a + rows[:, None] * N + along[None, :])
            right = tl.load(b + along[:, None] * N + columns[None, :])
            total += tl.dot(left, right)
        tl.store(c + rows[:, None] * N + columns[None, :], total)
    a, b = (torch.randn(WIDTH, WIDTH, device="cuda", dtype=torch.float16) for _ in range(2))
    c = torch.empty(WIDTH, WIDTH, device="cuda")
    for phase in ("forward", "backward"):
        for _ in range(STEPS):
            with torch.cuda.nvtx.range(phase):
                product[(WIDTH // 64, WIDTH // 64)](a, b, c, WIDTH, 64)
    torch.cuda.synchronize()
    flop = 2 * WIDTH**3 * STEPS
    say(triton=framework.__version__, forward=flop, backward=flop)


def attention():
    torch = torch_or_skip()
    q, k, v = (torch.randn(8, 16, 512, 64, device="cuda", dtype=torch.bfloat16,
                           requires_grad=True) for _ in range(3))
    for _ in range(STEPS):
        with torch.cuda.nvtx.range("forward"):
            out = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        with torch.cuda.nvtx.range("backward"):
            out.float().square().mean().backward()
    torch.cuda.synchronize()
    product = 2 * 8 * 16 * 512 * 512 * 64 * STEPS
    # The backward kernel computes the first product again.
    say(torch=torch.__version__, forward=2 * product, backward=5 * product)


def checkpointed():
    torch = torch_or_skip()
    from torch.utils.checkpoint import checkpoint_sequential
    model = plain_model(torch)
    train(torch, model, lambda x: checkpoint_sequential(model, DEPTH, x, use_reentrant=False))
    say(torch=torch.__version__)


def torch_profiler():
    """torch.profiler takes CUPTI's activity callbacks for steps 8 and 9."""
    torch = torch_or_skip()
    from torch.profiler import ProfilerActivity, profile
    profiler = profile(activities=[ProfilerActivity.CUDA])

    def between(step):
        if step == 8:
            profiler.start()
        elif step == 10:
            torch.cuda.synchronize()
            profiler.stop()
    train(torch, plain_model(torch), between=between)
    say(torch=torch.__version__, **plain_flop(), kernels_of_torch=len(profiler.events()))


def ddp():
    """Data parallel training over NCCL in a group of one process."""
    torch = torch_or_skip()
    import torch.distributed as distributed
    if not distributed.is_nccl_available():
        sys.exit(77)
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29511")
    distributed.init_process_group("nccl", rank=0, world_size=1)
    model = plain_model(torch)
    train(torch, model, torch.nn.parallel.DistributedDataParallel(model))
    distributed.destroy_process_group()
    say(torch=torch.__version__, **plain_flop())


def loader():
    """A data loader with worker processes that are forked after CUDA was started."""
    torch = torch_or_skip()
    model = plain_model(torch)
    data = torch.utils.data.TensorDataset(torch.randn(BATCH * 4, WIDTH))
    batches = torch.utils.data.DataLoader(data, BATCH, num_workers=2)
    for _ in range(STEPS // 4):
        for (x,) in batches:
            model(x.cuda()).square().mean().backward()
    torch.cuda.synchronize()
    say(torch=torch.__version__)


def forever():
    """Trains until it is stopped."""
    torch = torch_or_skip()
    while True:
        train(torch, plain_model(torch))


def jax():
    try:
        import jax as framework
        import jax.numpy as numpy
    except ImportError:
        sys.exit(77)
    if framework.default_backend() != "gpu":
        sys.exit(77)
    keys = framework.random.split(framework.random.PRNGKey(1), DEPTH + 1)
    weights = [framework.random.normal(key, (WIDTH, WIDTH)) / 32 for key in keys[1:]]
    x = framework.random.normal(keys[0], (BATCH, WIDTH))

    def loss(weights):
        y = x
        for weight in weights:
            y = y @ weight
        return numpy.mean(y * y)
    step = framework.jit(lambda weights: framework.tree.map(
        lambda w, g: w - 1e-6 * g, weights, framework.grad(loss)(weights)))
    for _ in range(STEPS):
        weights = step(weights)
    framework.block_until_ready(weights)
    say(jax=framework.__version__, **plain_flop())


def overhead(at_once=20, times=10):
    """A step of many small launches, so that the cost per launch shows: milliseconds per step."""
    torch = torch_or_skip()
    import time
    layers = []
    for _ in range(32):
        layers += [torch.nn.Linear(64, 64), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(64, 64, device="cuda")

    def steps(count):
        for _ in range(count):
            model(x).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        torch.cuda.synchronize()
    steps(at_once)
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        steps(at_once)
        taken.append((time.perf_counter() - began) / at_once * 1e3)
    say(torch=torch.__version__, milliseconds=sorted(taken)[len(taken) // 2],
        fastest=min(taken), slowest=max(taken))


def brief_overhead():
    """The same in 4 steps, for a profiler that replays every kernel."""
    overhead(1, 3)


def profiled_overhead():
    """The same under torch.profiler instead of flopinj."""
    torch = torch_or_skip()
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]):
        overhead()


WORKLOADS = {f.__name__: f for f in (attention, bf16, brief_overhead, checkpointed, compiled, ddp,
                                     forever, jax, loader, overhead, profiled_overhead,
                                     torch_profiler, triton)}

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in WORKLOADS:
        sys.exit("usage: workloads.py " + "|".join(WORKLOADS))
    WORKLOADS[sys.argv[1]]()
