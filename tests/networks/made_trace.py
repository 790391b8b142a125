#!/usr/bin/env python3
"""Writes the trace of training a network, by formula: nothing of it ran. Ranges are named as
PyTorch's emit_nvtx names them, backward runs on autograd's thread; counts are theory, of fp32
without tensor cores: products, convolutions, their biases, and plain SGD. What else a network does
(norms, activations, pooling) is left out. Times are made up: all work runs at half of `PEAK`.

With --as-pthflops it is one forward pass, and holds pooling and activations too, counted as that
program does: 2 operations for an element of ReLU, comparisons of max pooling, 49 for a window of
the average pooling."""

import argparse
import subprocess
from pathlib import Path

from networks import TABLES, Network

DEVICE = "by formula"  # no device at all
PEAK = 10e12           # FLOP/s
FLOP_PER_NS = PEAK / 1e9 / 2
STEPS = 2
MAIN, AUTOGRAD = 1, 2
NODE = "autograd::engine::evaluate_function: "


def sizes(*shapes):
    return ", sizes = [" + ", ".join(str(list(s)) for s in shapes) + "]"


class Trace:
    """Collects the lines that write_trace reads."""

    def __init__(self):
        self.lines = [
            f"device\t{DEVICE}", f"thread\t{MAIN}\tpython", f"thread\t{AUTOGRAD}\tpt_autograd_0"
        ]
        self.paths, self.kernels, self.flop = {}, {}, 0

    def path(self, names):
        if not names:
            return 0
        if names not in self.paths:
            parent = self.path(names[:-1])
            self.paths[names] = len(self.paths) + 1
            self.lines.append(f"path\t{self.paths[names]}\t{parent}\t{names[-1]}")
        return self.paths[names]

    def launch(self, thread, names, kernel, additions=0, macs=0, sequence=-1):
        work = (additions, macs, kernel)
        path = self.path(names)
        if work not in self.kernels:
            self.kernels[work] = len(self.kernels) + 1
            self.lines.append(f"kernel\t{self.kernels[work]}\t{additions}\t{macs}\t{kernel}")
        # Times are whole, and add up to that of all work.
        before, self.flop = self.flop, self.flop + additions + 2 * macs
        duration = int(self.flop / FLOP_PER_NS) - int(before / FLOP_PER_NS)
        self.lines.append(
            f"launch\t{thread}\t{self.kernels[work]}\t{path}\t{sequence + 1}\t{duration}")

    def write(self, program, path):
        with open(path, "wb") as out:
            subprocess.run([program], input="\n".join(self.lines) + "\n", encoding="utf-8",
                           stdout=out, check=True, timeout=60)


def convolution(layer, batch):
    """Shapes of input, weights and output."""
    return ([batch, layer.inputs, layer.size,
             layer.size], [layer.outputs, layer.inputs // layer.groups, layer.kernel,
                           layer.kernel], [batch, layer.outputs, layer.result, layer.result])


def forward(trace, name, layer, batch, sequence):
    outer = ("forward", f"layer:{name}")
    macs, elements = layer.macs * batch, layer.elements * batch
    if layer.kind == "linear":
        x, weight, bias = [batch, layer.inputs], [layer.outputs, layer.inputs], [layer.outputs]
        names = (*outer, "aten::linear" + sizes(x, weight, bias),
                 "aten::addmm" + sizes(bias, x, weight[::-1], [], []))
        trace.launch(MAIN, names, "gemm", elements, macs, sequence)
        return
    x, weight, y = convolution(layer, batch)
    bias = [layer.outputs] if layer.bias else []
    names = (*outer, *(f"aten::{function}" + sizes(x, weight, bias, *[[]] * settings)
                       for function, settings in (("conv2d", 4), ("convolution", 6),
                                                  ("_convolution", 10))))
    trace.launch(MAIN, (*names, "aten::cudnn_convolution" + sizes(x, weight, *[[]] * 7)),
                 "convolution", 0, macs, sequence)
    if layer.bias:
        per_channel = [1, layer.outputs, 1, 1]
        trace.launch(MAIN, (*names, "aten::add_" + sizes(y, per_channel, [])), "add_bias", elements,
                     0, sequence)


def backward(trace, layer, batch, sequence, first):
    """Gradients by weights and, but in the first layer, by the input; sums over the batch for the
    bias."""
    macs = layer.macs * batch
    sums = layer.elements * batch - layer.outputs

    def launch(names, kernel, additions=0, products=0):
        trace.launch(AUTOGRAD, names, kernel, additions, products, sequence)
    if layer.kind == "linear":
        dy, x, weight = [batch, layer.outputs], [batch, layer.inputs], [layer.outputs, layer.inputs]
        node = (NODE + "AddmmBackward0", "AddmmBackward0" + sizes(dy))
        launch((*node, "aten::mm" + sizes(dy, weight)), "gemm", 0, macs)
        launch((*node, "aten::mm" + sizes(dy[::-1], x)), "gemm", 0, macs)
        # Beside the node, whose number the recorder gives it.
        launch((*node[:1], "aten::sum" + sizes(dy, [], [], [])), "sum_rows", sums)
        return
    x, weight, dy = convolution(layer, batch)
    node = (NODE + "ConvolutionBackward0", "ConvolutionBackward0" + sizes(dy),
            "aten::convolution_backward" + sizes(dy, x, weight, *[[]] * 8))
    if not first:
        launch(node, "convolution_input_gradient", 0, macs)
    launch(node, "convolution_weight_gradient", 0, macs)
    if layer.bias:
        launch(node, "sum_bias_gradient", sums)


def with_products(network):
    """Layers that multiply matrices, as (name, layer): conv1, linear1."""
    count = {"conv": 0, "linear": 0}
    named = []
    for layer in network.layers:
        if layer.macs:
            count[layer.kind] += 1
            named.append((f"{layer.kind}{count[layer.kind]}", layer))
    return named


def training(network, batch, steps=STEPS):
    trace, named = Trace(), with_products(network)
    for step in range(steps):
        numbered = [(step * len(named) + i, name, layer) for i, (name, layer) in enumerate(named)]
        for sequence, name, layer in numbered:
            forward(trace, name, layer, batch, sequence)
        for sequence, _, layer in reversed(numbered):
            backward(trace, layer, batch, sequence, layer is named[0][1])
        trace.launch(MAIN, ("Optimizer.step#SGD.step",), "sgd", 0, network.parameters)
    return trace


def as_pthflops(network, batch):
    """What a count of operations for each element is, beside the products."""
    each = {
        "relu": ("aten::relu", lambda layer: 2),
        "maxpool": ("aten::max_pool2d", lambda layer: layer.kernel**2 - 1),
        "avgpool": ("aten::adaptive_avg_pool2d", lambda layer: 49)
    }
    trace, names = Trace(), {id(layer): name for name, layer in with_products(network)}
    for i, layer in enumerate(network.layers):
        if layer.macs:
            forward(trace, names[id(layer)], layer, batch, i)
        elif layer.kind in each:
            operator, operations = each[layer.kind]
            x = [batch, layer.inputs, layer.size, layer.size]
            trace.launch(MAIN, ("forward", f"layer:{layer.kind}", operator + sizes(x)), layer.kind,
                         operations(layer) * layer.elements * batch, 0, i)
    return trace


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path, help="build folder, for its write_trace")
    parser.add_argument("network", choices=TABLES)
    parser.add_argument("out", type=Path, help="the trace")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--as-pthflops", action="store_true")
    options = parser.parse_args()
    make = as_pthflops if options.as_pthflops else training
    make(Network(options.network, options.classes),
         options.batch).write(options.build / "test-bin/write_trace", options.out)


if __name__ == "__main__":
    main()
