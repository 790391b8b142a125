"""Attention in Triton's kernels: compiled to PTX without a GPU, launched by cuda-core.
Usage: triton_attention.py STEPS COMPUTE_CAPABILITY, such as 80 or 90"""

import sys

import numpy as np
import nvtx
import triton
import triton.language as tl
from cuda.core import (Device, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, launch)
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

TOKENS, WIDTH, TILE = 192, 64, 64
SCALE = WIDTH ** -0.5


@triton.jit
def scores_of(q, k, s, scale, width: tl.constexpr, tokens: tl.constexpr, tile: tl.constexpr):
    """s = scale q k^T: of bf16, in f32."""
    rows = tl.program_id(0) * tile + tl.arange(0, tile)
    columns = tl.program_id(1) * tile + tl.arange(0, tile)
    along = tl.arange(0, tile)
    total = tl.zeros((tile, tile), tl.float32)
    for at in range(0, width, tile):
        left = tl.load(q + rows[:, None] * width + at + along[None, :])
        right = tl.load(k + columns[None, :] * width + at + along[:, None])
        total = tl.dot(left, right, total)
    tl.store(s + rows[:, None] * tokens + columns[None, :], total * scale)


@triton.jit
def softmax_of(s, p, tokens, block: tl.constexpr):
    """Each row of p, in f16, from one of s."""
    columns = tl.arange(0, block)
    mask = columns < tokens
    row = tl.load(s + tl.program_id(0) * tokens + columns, mask, float("-inf"))
    power = tl.exp(row - tl.max(row))
    tl.store(p + tl.program_id(0) * tokens + columns, (power / tl.sum(power)).to(tl.float16), mask)


@triton.jit
def values_of(p, v, o, width: tl.constexpr, tokens: tl.constexpr, tile: tl.constexpr):
    """o = p v: of f16, in f32."""
    rows = tl.program_id(0) * tile + tl.arange(0, tile)
    columns = tl.program_id(1) * tile + tl.arange(0, tile)
    along = tl.arange(0, tile)
    total = tl.zeros((tile, tile), tl.float32)
    for at in range(0, tokens, tile):
        left = tl.load(p + rows[:, None] * tokens + at + along[None, :])
        right = tl.load(v + (at + along[:, None]) * width + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(o + rows[:, None] * width + columns[None, :], total)


class Kernel:
    """A compiled kernel and its launches."""

    def __init__(self, capability, function, signature, constants, warps=4):
        source = ASTSource(function, signature | dict.fromkeys(constants, "constexpr"), constants)
        made = triton.compile(source, target=GPUTarget("cuda", capability, 32),
                              options={"num_warps": warps})
        self.shared = made.metadata.shared
        self.block = 32 * warps
        code = ObjectCode.from_ptx(made.asm["ptx"].encode())
        self.kernel = code.get_kernel(made.metadata.name)

    def __call__(self, stream, grid, *arguments):
        none = np.uint64(0)  # Triton's two pointers to scratch memory
        config = LaunchConfig(grid=grid, block=self.block, shmem_size=self.shared)
        launch(stream, config, self.kernel, *arguments, none, none)


def to_bfloat(array):
    """Rounded to nearest, ties to even."""
    bits = array.astype(np.float32).view(np.uint32)
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bfloat(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


class Memory:
    """Arrays of the host in device memory, and back."""

    def __init__(self, device, stream):
        self.device, self.stream = device, stream
        self.pinned = LegacyPinnedMemoryResource()

    def to_device(self, array):
        there = self.device.allocate(array.nbytes, stream=self.stream)
        here = self.pinned.allocate(array.nbytes, stream=self.stream)
        np.from_dlpack(here).view(array.dtype)[:] = array.ravel()
        there.copy_from(here, stream=self.stream)
        return there

    def to_host(self, there, like):
        here = self.pinned.allocate(there.size, stream=self.stream)
        there.copy_to(here, stream=self.stream)
        self.stream.sync()
        return np.from_dlpack(here).view(like.dtype).reshape(like.shape).copy()


def main(steps, capability):
    device = Device()
    device.set_current()
    stream = device.create_stream()
    tiles = {"width": WIDTH, "tokens": TOKENS, "tile": TILE}
    scores = Kernel(capability, scores_of,
                    {"q": "*bf16", "k": "*bf16", "s": "*fp32", "scale": "fp32"}, tiles)
    softmax = Kernel(capability, softmax_of, {"s": "*fp32", "p": "*fp16", "tokens": "i32"},
                     {"block": 256}, warps=1)
    values = Kernel(capability, values_of, {"p": "*fp16", "v": "*fp16", "o": "*fp32"}, tiles)

    random = np.random.default_rng(2025)
    q, k = (to_bfloat(random.standard_normal((TOKENS, WIDTH))) for _ in range(2))
    v = random.standard_normal((TOKENS, WIDTH)).astype(np.float16)
    s, p = (np.zeros((TOKENS, TOKENS), kind) for kind in (np.float32, np.float16))
    o = np.zeros((TOKENS, WIDTH), np.float32)
    memory = Memory(device, stream)
    there = dict(zip("qkvspo", map(memory.to_device, (q, k, v, s, p, o))))
    grids = {columns: (TOKENS // TILE, columns // TILE) for columns in (TOKENS, WIDTH)}
    for _ in range(steps):
        with nvtx.annotate("scores"):
            scores(stream, grids[TOKENS], there["q"], there["k"], there["s"], np.float32(SCALE))
        with nvtx.annotate("softmax"):
            softmax(stream, TOKENS, there["s"], there["p"], np.int32(TOKENS))
        with nvtx.annotate("values"):
            values(stream, grids[WIDTH], there["p"], there["v"], there["o"])

    s64 = SCALE * from_bfloat(q) @ from_bfloat(k).T
    p64 = np.exp(s64 - s64.max(axis=1, keepdims=True))
    p64 /= p64.sum(axis=1, keepdims=True)
    right = {"s": s64, "p": p64, "o": p64 @ v.astype(np.float64)}
    for name, like in {"s": s, "p": p, "o": o}.items():
        got = memory.to_host(there[name], like)
        worst = abs(got - right[name]).max() / abs(right[name]).max()
        print(f"{name} differs from NumPy by {worst:.1e}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
