#!/usr/bin/env python3
"""Trains a convolutional network in PyTorch under NVTX ranges, and prints what its products cost by formula.

Usage: network.py small|alexnet|resnet18. Exit code 77 where there is no PyTorch with CUDA.
"""

import json
import sys

try:
    import torch
    from torch import nn
except ImportError:
    sys.exit(77)
if not torch.cuda.is_available():
    sys.exit(77)

STEPS = 24


def conv(inputs, outputs, kernel, stride=1, padding=0):
    return nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=False)


def small():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)), (64, 1, 14, 14)


def alexnet():
    return nn.Sequential(
        nn.Conv2d(3, 64, 11, 4, 2), nn.ReLU(), nn.MaxPool2d(3, 2), nn.Conv2d(64, 192, 5, 1, 2), nn.ReLU(),
        nn.MaxPool2d(3, 2), nn.Conv2d(192, 384, 3, 1, 1), nn.ReLU(), nn.Conv2d(384, 256, 3, 1, 1), nn.ReLU(),
        nn.Conv2d(256, 256, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(3, 2), nn.Flatten(), nn.Dropout(),
        nn.Linear(256 * 6 * 6, 4096), nn.ReLU(), nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(),
        nn.Linear(4096, 10)), (16, 3, 224, 224)


class Block(nn.Module):
    """Two 3x3 convolutions around a shortcut."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.body = nn.Sequential(conv(inputs, outputs, 3, stride, 1), nn.BatchNorm2d(outputs), nn.ReLU(),
                                  conv(outputs, outputs, 3, 1, 1), nn.BatchNorm2d(outputs))
        self.shortcut = nn.Identity() if inputs == outputs else nn.Sequential(
            conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


def resnet18():
    layers = [conv(3, 64, 7, 2, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for outputs in (64, 128, 256, 512):
        layers += [Block(inputs, outputs, 1 if inputs == outputs else 2), Block(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)), (16, 3, 224, 224)


def formula(model, x):
    """Matrix FLOP of one forward and one backward pass. The first layer computes no input gradient."""
    products = []

    def record(layer, inputs, output):
        if isinstance(layer, nn.Conv2d):
            weights = layer.in_channels // layer.groups * layer.kernel_size[0] * layer.kernel_size[1]
        else:
            weights = layer.in_features
        products.append(2 * output.numel() * weights)

    hooks = [layer.register_forward_hook(record) for layer in model.modules()
             if isinstance(layer, (nn.Conv2d, nn.Linear))]
    model(x)
    for hook in hooks:
        hook.remove()
    return sum(products), 2 * sum(products) - products[0]


def main():
    torch.manual_seed(1)
    model, shape = {"small": small, "alexnet": alexnet, "resnet18": resnet18}[sys.argv[1]]()
    forward, backward = formula(model, torch.zeros(shape))  # on the CPU: these launches are nobody's
    model = model.cuda()
    # Made on the CPU: a kernel that is launched once is not measured.
    x = torch.randn(shape).cuda()
    labels = torch.randint(10, shape[:1]).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    with torch.autograd.profiler.emit_nvtx(record_shapes=True):
        for _ in range(STEPS):
            with torch.cuda.nvtx.range("forward"):
                output = model(x)
            with torch.cuda.nvtx.range("loss"):
                loss = nn.functional.cross_entropy(output, labels)
            loss.backward()
            with torch.cuda.nvtx.range("optimizer"):
                optimizer.step()
                optimizer.zero_grad()
    torch.cuda.synchronize()
    print(json.dumps({"forward": STEPS * forward, "backward": STEPS * backward, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
