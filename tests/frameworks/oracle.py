"""What a stream's operators really did, counted from the dispatcher's own record of each call:
multiply-adds one by one in loops, or for large calls by a product of the same loops' lengths
(oracle_test.py holds both against each other). Nothing of flopreduce is in here.

The rule for all else is simple and made up: an arithmetic operation for each element of the
results, for reductions for each element of the operand, none where data is only moved or filled
in."""

from dataclasses import dataclass
from functools import cache
from itertools import product
from math import prod

ONE_BY_ONE = 20_000  # multiply-adds up to which a call is counted in loops


@dataclass(frozen=True)
class Work:
    """Of one kernel."""
    kernel: str
    multiply_adds: int = 0
    additions: int = 0
    again: int = 0  # of the multiply-adds: what was computed before, and is no part of the model

    @property
    def flop(self):
        return 2 * self.multiply_adds + self.additions


@cache
def count(*lengths, loops=None):
    """Multiply-adds of nested loops of these lengths."""
    if prod(lengths) > (ONE_BY_ONE if loops is None else loops):
        return prod(lengths)
    return sum(1 for _ in product(*map(range, lengths)))


def broadcast(a, b):
    """Shape of a and b broadcast over each other."""
    a, b = [1] * (len(b) - len(a)) + list(a), [1] * (len(a) - len(b)) + list(b)
    return [y if x == 1 else x for x, y in zip(a, b)]


def elements(shapes):
    return sum(prod(shape) for shape in shapes if shape is not None)


# --- products: by the operands' sizes


def matrix(a, b):
    (m, k), (_, n) = a, b
    return count(m, n, k)


def batched(a, b):
    (batch, m, k), (_, _, n) = a, b
    return count(batch, m, n, k)


def attention(sizes, products):
    """`products` has E for each product over the keys' width, V for each over the values'."""
    q, k, v = sizes
    return sum(count(*q[:-2], q[-2], k[-2], {"E": q[-1], "V": v[-1]}[width]) for width in products)


def convolution(args, x, weight, out, loops=None):
    """Of one pass over the weights: forward, or the gradient of either operand. Taps on the
    padding are multiplied, as by an implicit product."""
    if args["transposed"]:
        # Each element of the input meets the weights of its group: weight is (in, out / groups,
        # ...).
        return count(*x, *weight[1:], loops=loops)
    return count(*out, *weight[1:], loops=loops)


def sparse(inner, sizes):
    """Each element that is stored meets a row of the other operand. `inner`: the ranges inside."""
    stored = next(r.op["out"][0][0] for r in inner if r.function == "aten::_values")
    return Work("sparse_product", count(stored, sizes[2][1]))


def recurrent(sizes):
    (steps, batch, _), by_input, by_state = sizes[:3]
    return count(steps, batch, *by_input) + count(steps, batch, *by_state)


# --- tables

PRODUCTS = {
    "aten::mm": lambda s: matrix(s[0], s[1]),
    "aten::addmm": lambda s: matrix(s[1], s[2]),
    "aten::bmm": lambda s: batched(s[0], s[1]),
    "aten::baddbmm": lambda s: batched(s[1], s[2]),
    "aten::addbmm": lambda s: batched(s[1], s[2]),
    "aten::mv": lambda s: count(*s[0]),
    "aten::addmv": lambda s: count(*s[1]),
    "aten::addmv_": lambda s: count(*s[1]),
    "aten::dot": lambda s: count(*s[0]),
    "aten::vdot": lambda s: count(*s[0]),
    "aten::_scaled_dot_product_flash_attention_for_cpu": lambda s: attention(s[:3], "EV"),
    # Four gates; each step and sample meets the weights of the input and those of the state once.
    # Backward twice.
    "aten::mkldnn_rnn_layer": lambda s: recurrent(s),
    "aten::mkldnn_rnn_layer_backward": lambda s: recurrent(s) * 2,
    # Scores again, gradients of values, weights, queries and keys.
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": lambda s: attention(
        s[1:4], "EVVEE"),
}

REDUCTIONS = set("""
    sum mean prod cumsum logsumexp linalg_vector_norm norm var var_mean _log_softmax _softmax
    nll_loss_forward mse_loss binary_cross_entropy adaptive_avg_pool2d _adaptive_avg_pool2d
    avg_pool2d
""".split())

# Data moved, filled in or compared: kernels without an arithmetic operation.
NO_ARITHMETIC = set("""
    copy_ fill_ zero_ cat index_select index gather arange clamp_min clamp_min_ clamp clamp_
    threshold eq ne lt le gt ge max min amax amin argmax argmin topk sort where masked_fill_
    masked_fill triu tril random_ normal_ uniform_ bernoulli_ max_pool2d_with_indices flip roll
    constant_pad_nd _local_scalar_dense nonzero one_hot bitwise_not logical_not logical_and
    logical_or isnan isinf any all unique scatter scatter_ index_put_ _index_put_impl_
    upsample_nearest2d exponential_ randperm bincount searchsorted hardtanh hardtanh_ relu6
    reflection_pad2d replication_pad2d masked_select take tril_indices linspace channel_shuffle
    pixel_shuffle repeat_interleave _foreach_copy_ _foreach_zero_ complex sgn sign abs neg neg_
""".split())


def of_operator(function, sizes, op):
    """The kernels that an operator of the dispatcher starts, as [Work]. `sizes` are those of its
    arguments, `op` has the shapes of its results."""
    name, out = function.removeprefix("aten::"), op["out"]
    if function in PRODUCTS:
        # A product of complex numbers is four of real ones.
        times = 4 if op.get("type", "").startswith("c10::complex") else 1
        bias = elements(out) if name in ("addmm", "baddbmm") else 0
        out = [shape for shape in out if shape is not None]
        again = attention(sizes[1:4],
                          "E") if name.startswith("_scaled") and name.endswith("_backward") else 0
        kernel = "cgemm" if times > 1 else name.strip("_")
        return [
            Work(kernel, times * PRODUCTS[function](sizes), bias * (2 if times > 1 else 1),
                 again)
        ]
    if name in ("convolution", "_convolution"):
        macs = convolution(op["args"], sizes[0], sizes[1], out[0])
        return [Work("convolution", macs)] + [Work("add_bias", 0, elements(out))] * bool(sizes[2])
    if name == "convolution_backward":
        gradient, x, weight = sizes[:3]
        macs = convolution(op["args"], x, weight, gradient)
        by_input, by_weight, by_bias = op["args"]["output_mask"]
        # Not in the result where the bias needs none: the mask says what was computed.
        return ([Work("convolution_input_gradient", macs)] * by_input +
                [Work("convolution_weight_gradient", macs)] * by_weight +
                [Work("sum", 0, prod(gradient))] * by_bias)
    if name in NO_ARITHMETIC:
        return [Work(name.strip("_"))]
    if name in REDUCTIONS:
        return [Work(name.strip("_"), 0, prod(sizes[0]))]
    return [Work(name.strip("_"), 0, elements(out))]
