#include "model/phases.h"

namespace flopinj::reduce {

// Where the names are from: PyTorch torch/csrc/profiler/util.cpp (getNvtxStr), torch/optim/optimizer.py,
// torch/utils/checkpoint.py; JAX jax/_src/source_info_util.py and XLA xla/service/gpu/
// nvtx annotations (XlaModule, Thunk); TensorFlow python/eager/backprop.py and ops/gradients_util.py, for
// the form of its ranges core/profiler/nvtx_utils.cc of NVIDIA's TensorFlow ("OpType: node", or JSON with
// "op" and "name"; TF_ENABLE_NVTX_RANGES) and tsl/profiler/lib/traceme_encode.h ("node:OpType");
// Megatron-LM megatron/training/training.py (timers); DeepSpeed deepspeed/utils/timer.py and
// runtime/engine.py (instrument_w_nvtx). Kernels: the list of collector/waiting_kernels.cpp, and a test
// compares the two.
std::string_view PhaseRules::built_in() {
  return R"(# Rules that tell the phases of training apart. One rule a line, tried in this order:
#   PHASE SUBJECT [in:PHASE] MATCH PATTERN
# SUBJECT  range    the name of an NVTX range; the innermost one that a rule matches decides
#          thread   the name of the launching thread; decides where no range does
#          kernel   the kernel's mangled name; goes before ranges and threads
# PHASE    any name; "-" for names that decide nothing
# in:PHASE          only inside a range, or on a thread, that belongs to that phase
# MATCH    word       a whole word of the name, any case
#          lone-word  the same; lone words of different phases in one name cancel out
#          prefix     the beginning of the name
#          contains   any part of the name, any case
#          node       the end of the name's first part, before a number (autograd nodes)
#          regex      a regular expression (RE2 syntax), found anywhere in the name, any case
# PATTERN  the rest of the line

# Activation checkpointing: forward work inside backward.
recompute     range              regex     \bCheckpointFunctionBackward\b
recompute     range              contains  rematted_computation
recompute     range              word      recompute
recompute     range              word      recomputation
recompute     range              word      remat
recompute     range  in:backward lone-word forward
recompute     range  in:backward lone-word fwd
# What autograd's own formulas never call, so that it is the forward pass run again.
recompute     range  in:backward regex     ^aten::(linear|conv[123]d|conv_transpose[123]d|layer_norm|group_norm|batch_norm|embedding|scaled_dot_product_attention|gelu|relu|silu|dropout|softmax)_?(,|$)

# Communication, before words: bwd_allreduce, backward-params-all-reduce.
communication range              prefix    nccl
communication range              prefix    c10d::
communication range              prefix    HOROVOD_
communication range              regex     (^|[^a-z])(all[-_ ]?reduce|all[-_ ]?gather|reduce[-_ ]?scatter|all[-_ ]?to[-_ ]?all|broadcast_coalesced)([^a-z]|$)
communication range              regex     ^(forward|backward)(-(send|recv|forward|backward))*-(send|recv)$
communication range              regex     ^all-grads-sync$
communication range              prefix    FSDP::post_backward_reduce

# PyTorch
backward      range              prefix    autograd::engine::evaluate_function
backward      range              prefix    torch::autograd::
backward      range              node      Backward
optimizer     range              prefix    Optimizer.step#
optimizer     range              prefix    Optimizer.zero_grad#

# JAX and XLA: transforms in the names of operations. Compilation and autotuning are no training.
other         range              regex     ^(TSL:)?Xla(Compile|Pass|Autotuner|CreateGpuExecutable)
backward      range              contains  transpose(jvp(
backward      range              contains  transpose(vmap(jvp(
forward       range              contains  jvp(

# TensorFlow: ranges are "OpType: scope/node", "scope/node:OpType", or JSON that begins with "op" and
# "name". Scopes tell: gradients have one of their own, the optimizer and the loss have their names.
communication range              regex     ^_?(Nccl|Horovod|Collective(Reduce|Gather|Bcast|AllToAll))\w*:
backward      range              contains  gradient_tape/
backward      range              regex     (^|[/ ":=])gradients(_[0-9]+)?/
backward      range              regex     (^|[/ ":])(?-i:[A-Z]\w*Grad(V[0-9])?)(_[0-9]+)?($|[,": ])
optimizer     range              regex     (^|[/:"])(Resource)?(Sparse)?Apply(Adam|AdamWithAmsgrad|Adagrad|Adadelta|Ftrl|RMSProp|Momentum|KerasMomentum|GradientDescent)
optimizer     range              regex     (^|[/ ":=])((Adam|Lamb)(W|WeightDecay)?|Adamax|Nadam|NovoGrad|Adagrad|Adadelta|Adafactor|Ftrl|RMSprop|SGD|Momentum|GradientDescent|Lion|LossScale)(Optimizer)?(_[0-9]+)?/
loss          range              regex     (^|[/ ":=])(\w+_)?(loss|crossentropy|cross_entropy|mean_(squared|absolute)_error|kl_divergence)(_[0-9]+)?/
-             range              regex     (^|[/ ":=])(\w+_)?metrics(_[0-9]+)?/
forward       range              regex     ^_?(?-i:[A-Z]\w*): [A-Za-z.][^ ]*/
forward       range              regex     ^[A-Za-z.][^ :]*/[^ :]*:_?(?-i:[A-Z])\w*$
forward       range              regex     ^\{"op":"\w+","name":"[^ "]*/
forward       range              regex     (^|[ =])[A-Za-z.][^ =]*/(?-i:(Batch)?MatMul|Einsum|Conv[123]D|DepthwiseConv2dNative|BiasAdd|FusedBatchNorm|Relu|Softmax|MaxPool|AvgPool)(V[0-9])?6?(_[0-9]+)?($|,)
# Without a scope only this tells; with one, it is how transposed convolutions run forward.
backward      range              regex     Backprop(Input|Filter)

# DeepSpeed
optimizer     range              regex     ^(DeepSpeedEngine|.*Optimizer[A-Za-z0-9_]*)\.(step|_?take_model_step|unscale_and_clip_grads)$
optimizer     range              regex     ^step_microstep$

# Words, as people write them: "forward-compute", "fwd_microstep", "loss.backward".
forward       range              lone-word forward
forward       range              lone-word fwd
backward      range              lone-word backward
backward      range              lone-word bwd
backward      range              lone-word backprop
optimizer     range              lone-word optimizer
optimizer     range              lone-word optim
# The module of a transformer is no pass over the network.
-             range              lone-word feed_forward
-             range              lone-word feed-forward
-             range              lone-word feed forward
-             range              lone-word feed.forward
loss          range              word      loss
loss          range              word      criterion

backward      thread             prefix    pt_autograd_
backward      thread             word      autograd

# Kernels that wait for other devices or processes; they are never measured either.
communication kernel             contains  nccl
communication kernel             contains  nvshmem
communication kernel             contains  multimem
communication kernel             contains  mnnvl
communication kernel             contains  userbuffer
communication kernel             contains  gpunetio
communication kernel             contains  doca_gpu
communication kernel             contains  ibgda
communication kernel             contains  nixl_
communication kernel             contains  oneccl
communication kernel             contains  rccl_
communication kernel             contains  msccl
communication kernel             contains  ucc_ec
communication kernel             contains  ucc_tl
communication kernel             contains  hpcx
communication kernel             contains  sharp_coll
communication kernel             contains  horovod
communication kernel             contains  deep_ep
communication kernel             contains  deepep
communication kernel             contains  pplx_
communication kernel             contains  internode
communication kernel             contains  intranode
communication kernel             contains  fused_dispatch
communication kernel             contains  symmetric_memory
communication kernel             contains  symm_mem
communication kernel             contains  4c10d
communication kernel             contains  allreduce
communication kernel             contains  all_reduce
communication kernel             contains  reducescatter
communication kernel             contains  reduce_scatter
communication kernel             contains  allgather
communication kernel             contains  all_gather
communication kernel             contains  alltoall
communication kernel             contains  all_to_all
communication kernel             contains  all2all
communication kernel             contains  sendrecv
communication kernel             contains  send_recv
communication kernel             contains  cross_device_reduce
communication kernel             contains  quickreduce
communication kernel             contains  distributed_gemm
communication kernel             contains  barrier_kernel
communication kernel             contains  barrierkernel
communication kernel             contains  multi_gpu
communication kernel             contains  multigpu
communication kernel             contains  gpu_barrier
communication kernel             contains  wait_signal
communication kernel             contains  wait_kernel
)";
}

}  // namespace flopinj::reduce
