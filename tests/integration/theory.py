"""FLOP of the trainer, worked out from layer shapes alone.

Written from the mathematics of each layer, not from the trainer's or the profiler's code. Every
figure is executed operations with a fused multiply-add counted as two: forward of a dense layer is
2*B*in*out; its weight gradient and its input gradient cost the same each, the first layer has no
input gradient; biases start the forward sums (no operation) and their gradient is one addition per
term. """

from collections import defaultdict
from math import prod

import gpt_theory


def _size(shape):
    return prod(shape) if isinstance(shape, list) else shape


def step_launches(shapes):
    """One training step of one worker: a list of (phase, layer, kernel, FLOP of the launch)."""
    batch, layers = shapes["batch"], shapes["layers"]
    launches = []
    for layer in layers:
        launches += [("forward", layer["name"], k, f) for k, f in _forward(layer, batch)]
    classes, threads = shapes["classes"], shapes["mean_loss_threads"]
    launches.append(("loss", "", "softmax_cross_entropy", 6 * batch * classes))
    launches.append(("loss", "", "mean_loss", batch + (threads - 1) + 1))
    for layer in reversed(layers):
        launches += [("backward", layer["name"], k, f) for k, f in _backward(layer, batch)]
    for layer in layers:
        for elements in _parameters(layer):
            if shapes["momentum"]:
                launches.append(("optimizer", "", "sgd_momentum", 2 * 2 * elements))
            else:
                launches.append(("optimizer", "", "sgd", 2 * elements))
    return launches


def _multiply_adds(layer, batch):
    """Multiply-adds of the layer's product with its weights, any of its three directions."""
    if layer["kind"] == "dense":
        return batch * layer["in"] * layer["out"]
    channels_in = layer["in"][0]
    return batch * _size(layer["out"]) * channels_in * layer["kernel"] ** 2


def _forward(layer, batch):
    kind = layer["kind"]
    if kind in ("dense", "conv2d"):
        return [(f"{kind}_forward", 2 * _multiply_adds(layer, batch))]
    if kind == "average_pool":
        return [("average_pool_forward", batch * _size(layer["out"]) * (layer["window"] ** 2 + 1))]
    return [("relu_forward", 0)]


def _backward(layer, batch):
    kind = layer["kind"]
    if kind in ("dense", "conv2d"):
        product = 2 * _multiply_adds(layer, batch)
        kernels = [(f"{kind}_weight_gradient", product),
                   ("bias_gradient", batch * _size(layer["out"]))]
        if layer["input_gradient"]:
            kernels.append((f"{kind}_input_gradient", product))
        return kernels
    if kind == "average_pool":
        return [("average_pool_backward", batch * _size(layer["in"]))]
    return [("relu_backward", 0)]


def _parameters(layer):
    if layer["kind"] == "dense":
        return [layer["in"] * layer["out"], layer["out"]]
    if layer["kind"] == "conv2d":
        return [layer["out"][0] * layer["in"][0] * layer["kernel"] ** 2, layer["out"][0]]
    return []


class Expected:
    """Totals of a whole run."""

    def __init__(self, shapes):
        self.steps = shapes["steps"] * shapes["workers"]
        self.launches = 0
        self.flop = 0
        self.phase_flop = defaultdict(int)
        self.phase_launches = defaultdict(int)
        self.phase_kernel_flop = defaultdict(int)
        self.kernel_flop = defaultdict(int)
        self.kernel_launches = defaultdict(int)
        self.layer_flop = defaultdict(int)  # by (phase, layer)
        self.layer_launches = defaultdict(int)
        of_model = gpt_theory.step_launches if shapes["model"] == "gpt" else step_launches
        for phase, layer, kernel, flop in of_model(shapes):
            self.launches += self.steps
            self.flop += self.steps * flop
            self.phase_flop[phase] += self.steps * flop
            self.phase_launches[phase] += self.steps
            self.phase_kernel_flop[phase, kernel] += self.steps * flop
            self.kernel_flop[kernel] += self.steps * flop
            self.kernel_launches[kernel] += self.steps
            self.layer_flop[phase, layer] += self.steps * flop
            self.layer_launches[phase, layer] += self.steps
