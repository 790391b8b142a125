"""Image classifiers as tables of layers, and what training them takes by theory.
tests/gpu/network.py builds them in PyTorch, made_trace.py writes the trace of training them. From
their papers (Krizhevsky 2014, Simonyan 2014, He 2015, Zagoruyko 2016, Sandler 2018, Tan 2019), in
the variants of torchvision, without stochastic depth. Nothing of flopreduce is in here."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Layer:
    """One operation. What is below the line is worked out by `resolve`, of one image."""
    kind: str  # conv, linear, norm, relu, relu6, silu, sigmoid, maxpool, avgpool, flatten, dropout
    out: int = 0  # channels or features; avgpool: side of the image after it
    kernel: int = 1
    stride: int = 1
    padding: int = 0
    groups: int = 1
    bias: bool = False
    # ---
    inputs: int = 0  # channels or features
    outputs: int = 0
    size: int = 0  # side of the image before
    result: int = 0  # and after

    @property
    def elements(self):
        return self.outputs * self.result**2

    @property
    def weights(self):
        """Of one output element."""
        return {"conv": self.inputs // self.groups * self.kernel**2,
                "linear": self.inputs}.get(self.kind, 0)

    @property
    def macs(self):
        return self.elements * self.weights

    @property
    def parameters(self):
        return 2 * self.outputs if self.kind == "norm" else self.outputs * (self.weights +
                                                                            self.bias)


@dataclass(frozen=True)
class Residual:
    """body(x) + shortcut(x); an empty shortcut is x."""
    body: tuple
    shortcut: tuple = ()


@dataclass(frozen=True)
class Gate:
    """x * body(x): squeeze and excitation."""
    body: tuple


def resolve(nodes, channels, size):
    """The same with all sizes; channels and side of the image after them."""
    found = []
    for node in nodes:
        if isinstance(node, Residual):
            body, after, result = resolve(node.body, channels, size)
            shortcut, *same = resolve(node.shortcut, channels, size)
            assert same == [after, result], "both ways have to end alike"
            node = Residual(body, shortcut)
        elif isinstance(node, Gate):
            node, after, result = Gate(resolve(node.body, channels, size)[0]), channels, size
        else:
            after, result = _after(node, channels, size)
            node = replace(node, inputs=channels, outputs=after, size=size, result=result)
        found.append(node)
        channels, size = after, result
    return tuple(found), channels, size


def _after(layer, channels, size):
    if layer.kind in ("conv", "maxpool"):
        result = len(range(-layer.padding, size + layer.padding - layer.kernel + 1,
                           layer.stride))  # windows, one by one
        return layer.out or channels, result
    return {
        "linear": (layer.out, 1), "avgpool": (channels, layer.out),
        "flatten": (channels * size**2, 1)
    }.get(layer.kind, (channels, size))


def in_order(nodes):
    """All layers of resolved nodes, as forward runs them."""
    for node in nodes:
        if isinstance(node, Layer):
            yield node
        else:
            yield from in_order(node.body)
            yield from in_order(getattr(node, "shortcut", ()))


# --- the tables

RELU, RELU6, SILU, SIGMOID, NORM = (Layer(kind)
                                    for kind in ("relu", "relu6", "silu", "sigmoid", "norm"))
FLATTEN, DROPOUT = Layer("flatten"), Layer("dropout")


def conv(out, kernel, stride=1, padding=0, groups=1, bias=False):
    return Layer("conv", out, kernel, stride, padding, groups, bias)


def linear(out):
    return Layer("linear", out, bias=True)


def maxpool(kernel, stride, padding=0):
    return Layer("maxpool", 0, kernel, stride, padding)


def average(side):
    return Layer("avgpool", side)


def small(classes):
    return (conv(8, 3, bias=True), RELU, average(6), conv(16, 3,
                                                          bias=True), RELU, average(2), FLATTEN,
            linear(64), RELU, linear(classes))


def alexnet(classes):
    return (conv(64, 11, 4, 2, bias=True), RELU, maxpool(3, 2), conv(192, 5, 1, 2, bias=True), RELU,
            maxpool(3, 2), conv(384, 3, 1, 1, bias=True), RELU, conv(256, 3, 1, 1, bias=True), RELU,
            conv(256, 3, 1, 1, bias=True), RELU, maxpool(3, 2), average(6), FLATTEN, DROPOUT,
            linear(4096), RELU, DROPOUT, linear(4096), RELU, linear(classes))


def vgg(*stages):
    """How many 3x3 convolutions in each of the five stages."""
    def table(classes):
        features = []
        for width, convolutions in zip((64, 128, 256, 512, 512), stages, strict=True):
            features += [conv(width, 3, 1, 1, bias=True), RELU] * convolutions + [maxpool(2, 2)]
        return (*features, average(7), FLATTEN, linear(4096), RELU, DROPOUT, linear(4096), RELU,
                DROPOUT, linear(classes))
    return table


def resnet(*stages, bottleneck=0):
    """Blocks in each stage. Bottlenecks are so many times as wide within as the stage's planes; 0:
    two 3x3 convolutions."""
    def table(classes):
        nodes, inputs = [conv(64, 7, 2, 3), NORM, RELU, maxpool(3, 2, 1)], 64
        for stage, blocks in enumerate(stages):
            planes = 64 << stage
            out, inner = (4 * planes, planes * bottleneck) if bottleneck else (planes, 0)
            for stride in [2 if stage else 1] + [1] * (blocks - 1):
                body = ((conv(inner, 1), NORM, RELU, conv(inner, 3, stride, 1), NORM, RELU,
                         conv(out, 1), NORM) if bottleneck else
                        (conv(out, 3, stride, 1), NORM, RELU, conv(out, 3, 1, 1), NORM))
                changes = inputs != out or stride != 1
                nodes += [Residual(body, (conv(out, 1, stride), NORM) if changes else ()), RELU]
                inputs = out
        return (*nodes, average(1), FLATTEN, linear(classes))
    return table


def inverted(stages, activation, squeeze):
    """Inverted bottlenecks. A stage: expansion, channels, blocks, stride, kernel. Squeezed to a
    quarter of the block's input."""
    def table(classes):
        nodes, inputs = [conv(32, 3, 2, 1), NORM, activation], 32
        for expansion, out, blocks, first, kernel in stages:
            for stride in [first] + [1] * (blocks - 1):
                inner = inputs * expansion
                body = [conv(inner, 1), NORM, activation] if expansion > 1 else []
                body += [conv(inner, kernel, stride, kernel // 2, groups=inner), NORM, activation]
                if squeeze:
                    body.append(
                        Gate((average(1), conv(max(1, inputs // 4), 1,
                                               bias=True), SILU, conv(inner, 1,
                                                                      bias=True), SIGMOID)))
                body += [conv(out, 1), NORM]
                nodes += [Residual(tuple(body))] if stride == 1 and inputs == out else body
                inputs = out
        return (*nodes, conv(1280,
                             1), NORM, activation, average(1), FLATTEN, DROPOUT, linear(classes))
    return table


MOBILENET = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 32, 3, 2, 3), (6, 64, 4, 2, 3),
             (6, 96, 3, 1, 3), (6, 160, 3, 2, 3), (6, 320, 1, 1, 3))
EFFICIENTNET = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3),
                (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3))
TABLES = {
    "resnet18": resnet(2, 2, 2, 2),
    "resnet34": resnet(3, 4, 6, 3),
    "resnet50": resnet(3, 4, 6, 3, bottleneck=1),
    "resnet101": resnet(3, 4, 23, 3, bottleneck=1),
    "resnet152": resnet(3, 8, 36, 3, bottleneck=1),
    "vgg11": vgg(1, 1, 2, 2, 2),
    "vgg13": vgg(2, 2, 2, 2, 2),
    "vgg16": vgg(2, 2, 3, 3, 3),
    "vgg19": vgg(2, 2, 4, 4, 4),
    "wide_resnet50_2": resnet(3, 4, 6, 3, bottleneck=2),
    "alexnet": alexnet,
    "mobilenet_v2": inverted(MOBILENET, RELU6, squeeze=False),
    "efficientnet_b0": inverted(EFFICIENTNET, SILU, squeeze=True),
}
IMAGE = (3, 224)  # channels, side
TRAINING_STEPS = 24  # of tests/gpu/network.py


class Network:
    """A network with all sizes, and what one training step on one image takes."""

    def __init__(self, name, classes=10):
        table, self.image = (small, (1, 14)) if name == "small" else (TABLES[name], IMAGE)
        self.name, self.classes = name, classes
        self.nodes = resolve(table(classes), *self.image)[0]
        self.layers = list(in_order(self.nodes))
        self.parameters = sum(layer.parameters for layer in self.layers)
        self.forward_macs = sum(layer.macs for layer in self.layers)
        # A gradient for the weights and one for the input; nobody needs the one by the image.
        self.backward_macs = 2 * self.forward_macs - next(layer.macs
                                                          for layer in self.layers if layer.macs)
        self.ratio = self.backward_macs / self.forward_macs
