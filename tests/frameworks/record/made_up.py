"""Streams that no framework gave us here: the frameworks need a GPU for them. Names and nesting
of the ranges are those that the sources make, which each function names; the work of each launch
is a product whose size we chose. Their headers say "made_up": true.

JAX's are half real: the names of the operations are those that JAX gave to a training step here."""

import re

MADE_UP = {}


def made_up(function):
    MADE_UP["made_up_" + function.__name__] = function
    return function


class Writer:
    def __init__(self):
        self.events = []

    def note(self, text):
        self.events.append(["!", 1, text])

    def inside(self, names, phase, *macs, domain=None):
        """One kernel for each of `macs`, inside ranges of these names."""
        place = [] if domain is None else [{"domain": domain}]
        self.note(f"phase {phase}")
        self.events += [["+", 1, name, *place] for name in names]
        for number in macs:
            self.note(f"launch gemm {number} 0")
        self.events += [["-", 1, *place] for _ in names]
        self.note("phase end")


@made_up
def megatron():
    """Megatron-LM with --profile: nvtx_range_push of megatron/core/utils.py names a range
    "MODULE.CLASS.METHOD.SUFFIX" after the calling function (megatron/core/transformer/mlp.py:
    suffix linear_fc1, activation, linear_fc2; attention.py: qkv, core_attention, linear_proj).
    Full recomputation (tensor_parallel/random.py, CheckpointFunction) runs them once more inside
    CheckpointFunctionBackward."""
    w = Writer()
    layer = [("megatron.core.transformer.attention.SelfAttention.forward.qkv", 300),
             ("megatron.core.transformer.attention.SelfAttention.forward.core_attention", 200),
             ("megatron.core.transformer.attention.SelfAttention.forward.linear_proj", 100),
             ("megatron.core.transformer.mlp.MLP.forward.linear_fc1", 400),
             ("megatron.core.transformer.mlp.MLP.forward.linear_fc2", 400)]
    for name, macs in layer:
        w.inside([name], "forward", macs)
    w.note("engine 5")
    node = [
        "autograd::engine::evaluate_function: CheckpointFunctionBackward",
        "CheckpointFunctionBackward"
    ]
    for name, macs in layer:
        w.inside([*node, name], "recompute", macs)
    for number, (_, macs) in enumerate(reversed(layer)):
        w.inside([
            *node,
            "autograd::engine::evaluate_function: " +
            "LinearWithGradAccumulationAndAsyncCommunicationBackward",
            f"LinearWithGradAccumulationAndAsyncCommunicationBackward, seq = {number}"
        ], "backward", macs, macs)
    w.note("engine end 5")
    w.inside(["Optimizer.step#FusedAdam.step"], "optimizer", 0)
    return w.events


@made_up
def transformer_engine():
    """TransformerEngine (transformer_engine/pytorch/module/linear.py and layernorm_linear.py):
    nvtx_label "transformer_engine._Linear.forward" or ".backward", then the name of the layer
    and of the part: gemm, dgrad_gemm, wgrad_gemm. Its layers under te.checkpoint run forward
    again."""
    w = Writer()
    node = "autograd::engine::evaluate_function: "
    for name in ("qkv", "proj", "fc1", "fc2"):
        w.inside([f"transformer_engine._Linear.forward.{name}.gemm"], "forward", 500)
    w.note("engine 4")
    for name in ("qkv", "proj", "fc1", "fc2"):
        w.inside([
            f"{node}_CheckpointFunctionBackward", "_CheckpointFunctionBackward",
            f"transformer_engine._Linear.forward.{name}.gemm"
        ], "recompute", 500)
    for name in ("fc2", "fc1", "proj", "qkv"):
        for part in ("dgrad_gemm", "wgrad_gemm"):
            w.inside([
                f"{node}_LinearBackward", "_LinearBackward, seq = 1",
                f"transformer_engine._Linear.backward.{name}.{part}"
            ], "backward", 500)
    w.note("engine end 4")
    return w.events


@made_up
def deepspeed():
    """DeepSpeed (deepspeed/utils/nvtx.py, instrument_w_nvtx: the function's __qualname__, since
    2025 in the domain "DeepSpeed"; runtime/engine.py, runtime/zero/stage3.py)."""
    w = Writer()
    for domain in (None, "DeepSpeed"):
        w.inside(["DeepSpeedEngine.forward"], "forward", 600, 700, domain=domain)
        w.note("engine 2")
        w.inside(["autograd::engine::evaluate_function: AddmmBackward0", "AddmmBackward0, seq = 1"],
                 "backward", 700, 700)
        w.note("engine end 2")
        w.inside([
            "DeepSpeedEngine.step", "DeepSpeedZeroOptimizer_Stage3.step",
            "DeepSpeedZeroOptimizer_Stage3._optimizer_step"
        ], "optimizer", 0, domain=domain)
        w.inside([
            "DeepSpeedEngine.step", "DeepSpeedZeroOptimizer_Stage3.step",
            "DeepSpeedZeroOptimizer_Stage3._overflow_check_and_loss_scale_update"
        ], "optimizer", 0, domain=domain)
    return w.events


@made_up
def tensorflow():
    """NVIDIA's TensorFlow with TF_ENABLE_NVTX_RANGES=1 (tensorflow/core/profiler/nvtx_utils.cc:
    "OPERATION: NODE" in the domain "tensorflow-core"), nodes as Keras and GradientTape name
    them."""
    w = Writer()
    nodes = [("Conv2D", "model/conv2d/Conv2D", "forward", 900),
             ("MatMul", "model/dense/MatMul", "forward", 300),
             ("SparseSoftmaxCrossEntropyWithLogits",
              "sparse_categorical_crossentropy/SparseSoftmaxCrossEntropyWithLogits", "loss", 0),
             ("MatMul", "gradient_tape/model/dense/MatMul/MatMul", "backward", 300),
             ("MatMul", "gradient_tape/model/dense/MatMul/MatMul_1", "backward", 300),
             ("Conv2DBackpropFilter", "gradient_tape/model/conv2d/Conv2D/Conv2DBackpropFilter",
              "backward", 900),
             ("ResourceApplyAdam", "Adam/Adam/update/ResourceApplyAdam", "optimizer", 0)]
    for operation, node, phase, macs in nodes:
        w.inside([f"{operation}: {node}"], phase, macs, domain="tensorflow-core")
    return w.events


@made_up
def tensorflow_plugins():
    """nvtx-plugins for TensorFlow (nvtx_plugins/python/nvtx/plugins/tf): forward and gradient of
    one range have the same message by default, and differ by their domains, which its
    documentation calls "Forward" and "Gradient"."""
    w = Writer()
    w.inside(["Dense 1"], "forward", 250, domain="Forward")
    w.inside(["Dense 2"], "forward", 350, domain="Forward")
    w.inside(["Dense 2"], "backward", 350, 350, domain="Gradient")
    w.inside(["Dense 1"], "backward", 250, domain="Gradient")
    return w.events


@made_up
def jax():
    """A training step of a network of three layers, the second under jax.checkpoint, as JAX
    hands it to XLA; on a GPU each operation is a thunk whose range is
    "Thunk:#name=OP_NAME,hlo_op=INSTRUCTION#" inside "XlaModule:#...#"
    (xla/service/gpu/gpu_executable.cc, tsl/profiler/lib/nvtx_utils.h; domain "TSL"). The
    multiply-adds are those of its products; which phase they are of is worked out from what they
    contract, not from names."""
    import jax as library
    from jax import numpy as jnp
    batch, widths = 8, (6, 10, 14, 4)

    def network(weights, x):
        for number, weight in enumerate(weights):
            layer = library.checkpoint(lambda v, w: jnp.tanh(v @ w)) if number == 1 else (
                lambda v, w: jnp.tanh(v @ w))
            x = layer(x, weight)
        return x

    def step(weights, x, y):
        loss, gradients = library.value_and_grad(lambda w: jnp.mean((network(w, x) - y)**2))(
            weights)
        return loss, [w - 0.1 * g for w, g in zip(weights, gradients)]

    weights = [jnp.ones((a, b)) for a, b in zip(widths, widths[1:])]
    lowered = library.jit(step).lower(weights, jnp.ones((batch, widths[0])),
                                      jnp.ones((batch, widths[-1])))
    text = lowered.compiler_ir("hlo").get_hlo_module().to_string()
    w, before = Writer(), set()
    for m in re.finditer(
            r"%([\w.-]+) = \w+\[([\d,]*)\]\S* dot\(.*lhs_contracting_dims=\{(\d)\}, "
            r"rhs_contracting_dims=\{(\d)\}.*op_name=\"([^\"]+)\"",
            text):
        rows, columns = (int(d) for d in m[2].split(","))
        contracted = (int(m[3]), int(m[4]))
        phase, inner = {
            # x w: the second time that a layer's is computed, it is computed again.
            (1, 0): ("recompute" if columns in before else "forward",
                     widths[max(widths.index(columns) - 1, 0)] if columns in widths else 0),
            (1, 1): ("backward",
                     widths[widths.index(columns) + 1] if columns in widths[:-1] else 0),  # dy w^T
            (0, 0): ("backward", batch)
        }[contracted]  # x^T dy
        if contracted == (1, 0):
            before.add(columns)
        w.inside([
            "XlaModule:#prefix=jit(step)/jit(main),hlo_module=jit_step,program_id=3#",
            f"Thunk:#name={m[5]},hlo_op={m[1]}#"
        ], phase, rows * columns * inner, domain="TSL")
    assert len(w.events) == 9 * 7, "three products forward, one again, two and three gradients"
    return w.events
