#!/usr/bin/env python3
"""Trains a network of tests/networks/networks.py in PyTorch under NVTX ranges, and prints what its
products cost by formula.

Usage: network.py NAME [BATCH]. Exit code 77 where there is no PyTorch with CUDA.
"""

import json
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.append(str(Path(__file__).resolve().parents[1] / "networks"))

from networks import TRAINING_STEPS, Gate, Network, Residual  # noqa: E402

try:
    import torch
    from torch import nn
except ImportError:
    sys.exit(77)

MODULES = {
    "conv": lambda x: nn.Conv2d(x.inputs, x.outputs, x.kernel, x.stride, x.padding,
                                groups=x.groups, bias=x.bias),
    "linear": lambda x: nn.Linear(x.inputs, x.outputs, bias=x.bias),
    "norm": lambda x: nn.BatchNorm2d(x.outputs),
    "maxpool": lambda x: nn.MaxPool2d(x.kernel, x.stride, x.padding),
    "avgpool": lambda x: nn.AdaptiveAvgPool2d(x.result),
    "relu": lambda x: nn.ReLU(), "relu6": lambda x: nn.ReLU6(),
    "silu": lambda x: nn.SiLU(), "sigmoid": lambda x: nn.Sigmoid(),
    "flatten": lambda x: nn.Flatten(), "dropout": lambda x: nn.Dropout(),
}


class Sum(nn.Module):
    def __init__(self, node):
        super().__init__()
        self.body, self.shortcut = sequence(node.body), sequence(node.shortcut)

    def forward(self, x):
        return self.body(x) + self.shortcut(x)


class Product(nn.Module):
    def __init__(self, node):
        super().__init__()
        self.body = sequence(node.body)

    def forward(self, x):
        return x * self.body(x)


def sequence(nodes):
    """Resolved nodes as a module."""
    special = {Residual: Sum, Gate: Product}
    return nn.Sequential(*(special[type(n)](n) if type(n) in special else MODULES[n.kind](n)
                           for n in nodes))


def main():
    network = Network(sys.argv[1])
    batch = int(sys.argv[2]) if len(sys.argv) > 2 else 64
    if not torch.cuda.is_available():
        sys.exit(77)
    torch.manual_seed(1)
    model = sequence(network.nodes).cuda()
    channels, side = network.image
    # Made on the CPU: a kernel that is launched once is not measured.
    x = torch.randn((batch, channels, side, side)).cuda()
    labels = torch.randint(network.classes, (batch,)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    with torch.autograd.profiler.emit_nvtx(record_shapes=True):
        for _ in range(TRAINING_STEPS):
            with torch.cuda.nvtx.range("forward"):
                output = model(x)
            with torch.cuda.nvtx.range("loss"):
                loss = nn.functional.cross_entropy(output, labels)
            loss.backward()
            with torch.cuda.nvtx.range("optimizer"):
                optimizer.step()
                optimizer.zero_grad()
    torch.cuda.synchronize()
    flop = 2 * TRAINING_STEPS * batch  # of one multiply-add of one image
    print(json.dumps({"forward": flop * network.forward_macs,
                      "backward": flop * network.backward_macs,
                      "torch": torch.__version__}))


if __name__ == "__main__":
    main()
