"""What flopinj.torch.annotate costs a training on the CPU, beside PyTorch's emit_nvtx: the worst
case, since no GPU is waited for. Needs PyTorch and the package; run it by itself:

    NVTX_INJECTION64_PATH=build/release/lib/libflopinj.so python tests/bench/annotate_cost.py
"""

import contextlib
import ctypes
import time
from pathlib import Path

import flopinj.torch
import torch
from flopinj.torch import observer
from torch import nn
from torch.nn import functional

torch.cuda.synchronize = lambda *_: None  # there is no GPU
torch.set_num_threads(1)
WIDTH, BLOCKS, ROUNDS, STEPS = 32, 8, 60, 5


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(functional.gelu(self.up(self.norm(x))))


@contextlib.contextmanager
def empty_observer(library):
    handle = library.empty_observer_begin()
    yield
    library.empty_observer_end(handle)


def calls_of_operators(empty):
    """One operator again and again, in windows so short that the least of them met nothing else of
    the machine."""
    bias, rows, columns = torch.randn(64), torch.randn(4, 32), torch.randn(32, 64)

    def window():
        for _ in range(100):
            torch.addmm(bias, rows, columns)

    handle = empty.empty_observer_begin()
    window()
    calls = empty.empty_observer_end(handle)
    ways = {
        "as it is": contextlib.nullcontext,
        "empty observer": lambda: empty_observer(empty),
        "observer": observer.observer,
        "emit_nvtx": lambda: torch.autograd.profiler.emit_nvtx(record_shapes=True),
    }
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(300):
        for name, way in ways.items():
            with way():
                window()
                for _ in range(4):
                    begin = time.perf_counter()
                    window()
                    least[name] = min(least[name], time.perf_counter() - begin)
    for name, seconds in least.items():
        print(f"{name:20} {(seconds - least['as it is']) / calls * 1e6:6.3f} us a call")


def main():
    torch.manual_seed(0)
    empty = ctypes.PyDLL(str(observer.build(Path(__file__).with_name("empty_observer.cpp"))))
    empty.empty_observer_begin.restype = empty.empty_observer_end.restype = ctypes.c_uint64
    empty.empty_observer_end.argtypes = [ctypes.c_uint64]
    calls_of_operators(empty)
    model = nn.Sequential(*(Block() for _ in range(BLOCKS)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=True)
    x = torch.randn(4, WIDTH)

    def step():
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    step()
    handle = empty.empty_observer_begin()
    step()
    calls = empty.empty_observer_end(handle)  # backward on the CPU runs on this thread

    def ended():
        annotation = flopinj.torch.annotate(model, steps=1)
        step()
        step()
        assert not annotation.active
        return annotation

    handle = empty.empty_observer_begin()
    step()
    ways = {
        "as it is": contextlib.nullcontext,
        "empty observer": lambda: empty_observer(empty),
        "operators": observer.observer,
        "modules": lambda: flopinj.torch.annotate(model, steps=None, operators=False),
        "modules, operators": lambda: flopinj.torch.annotate(model, steps=None),
        "emit_nvtx": lambda: torch.autograd.profiler.emit_nvtx(record_shapes=True),
        "after its steps": ended,
    }
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(ROUNDS):  # in turn, so that what else the machine does meets all of them
        for name, way in ways.items():
            with way():
                step()
                begin = time.process_time()
                for _ in range(STEPS):
                    step()
                least[name] = min(least[name], (time.process_time() - begin) / STEPS)
    plain = least["as it is"]
    print(f"{calls} calls of operators a step")
    for name, seconds in least.items():
        more = seconds - plain
        print(f"{name:20} {seconds * 1e3:6.2f} ms  {100 * more / plain:+6.1f} %")


if __name__ == "__main__":
    main()
