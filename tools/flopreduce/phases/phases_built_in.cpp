#include "phases/phases.h"

namespace flopinj::reduce {

// Where the names are from: PyTorch torch/csrc/profiler/util.cpp (getNvtxStr),
// torch/optim/optimizer.py, torch/utils/checkpoint.py, torch/distributed/fsdp/_fully_shard; JAX
// jax/_src/source_info_util.py and XLA xla/service/gpu/ nvtx annotations (XlaModule, Thunk);
// TensorFlow python/eager/backprop.py and ops/gradients_util.py, for the form of its ranges
// core/profiler/nvtx_utils.cc of NVIDIA's TensorFlow ("OpType: node", or JSON with "op" and "name";
// TF_ENABLE_NVTX_RANGES), tsl/profiler/lib/traceme_encode.h ("node:OpType"), and for domains the
// documentation and examples of NVIDIA's nvtx-plugins (tf/ops.py, keras/layers.py: their users
// choose them); Megatron-LM megatron/core/utils.py (nvtx_decorator: module and function),
// megatron/core/pipeline_parallel/p2p_communication.py and combined_1f1b (" wgrad"),
// megatron/training/training.py (timers, for those who make ranges of them); TransformerEngine
// pytorch/module (nvtx_range_push); DeepSpeed utils/nvtx.py (instrument_w_nvtx: qualified names in
// the domain "DeepSpeed"; older versions in the default domain), runtime/zero/stage3.py,
// runtime/superoffload, runtime/zenflow/engine_stage3.py; Lightning pytorch/profilers/pytorch.py
// and trainer/call.py (also NeMo, which trains with it). Hugging Face's Trainer and accelerate make
// no ranges of their own. Kernels: the list of collector/identity/never_measured.cpp, and a test
// compares the two.
std::string_view PhaseRules::built_in() {
  return R"(# Rules that tell the phases of training apart. One rule a line, tried in this order:
#   PHASE SUBJECT [in:PHASE] [domain:NAME] MATCH PATTERN
# SUBJECT  range    the name of an NVTX range; the innermost one that a rule matches decides
#          thread   the name of the launching thread; decides where no range does
#          kernel   the kernel's mangled name; goes before ranges and threads
#          number   autograd's sequence number of the launch, where no range nor thread decides;
#                   with in:PHASE also where they decide for that phase
# PHASE    any name; "-" for names that decide nothing
# in:PHASE          only inside a range, or on a thread, that belongs to that phase
# domain:NAME       only ranges of the NVTX domain of that name, any case
# MATCH    word       a whole word of the name, any case
#          lone-word  the same; lone words of different phases in one name cancel out
#          prefix     the beginning of the name
#          contains   any part of the name, any case
#          node       the end of the name's first part, before a number (autograd nodes)
#          regex      a regular expression (RE2 syntax), found anywhere in the name, any case
#          is         of a number: between (those of the first and the last node of one backward
#                     pass: the launch ran in the forward pass before it), or unclear (that of a
#                     first node, or in no pass: data that needs no gradient, frozen layers and
#                     evaluation look the same), or again (an operator inside of an autograd node
#                     has a number of its own, and what is the node's gradient has none: gradients
#                     are on for that operator only, since it runs forward again)
# PATTERN  the rest of the line

# Activation checkpointing: forward work inside backward, and all forward work inside of that.
recompute     range              regex     (^|: )\w*Checkpoint\w*Backward[0-9#]*(,|$)
recompute     range              contains  rematted_computation
recompute     range              word      recompute
recompute     range              word      recomputation
recompute     range              word      remat
recompute     range  in:backward lone-word forward
recompute     range  in:backward lone-word fwd
recompute     range  in:recompute lone-word forward
recompute     range  in:recompute lone-word fwd
recompute     range  in:recompute word     loss
recompute     range  in:recompute word     criterion
# What autograd's own formulas never call, so that it is the forward pass run again. Products
# (aten::matmul) are not in the list: functions of the user's take them in their backward.
recompute     range  in:backward regex     ^aten::(linear|conv[123]d|conv_transpose[123]d)(,|$)
recompute     range  in:backward regex     ^aten::(layer|group|batch|rms|instance)_norm(,|$)
recompute     range  in:backward regex     ^aten::(embedding|scaled_dot_product_attention)(,|$)
recompute     range  in:backward regex     ^aten::(gelu|relu|silu|dropout)_?(,|$)
recompute     range  in:backward regex     ^aten::(log_)?softmax(,|$)
recompute     range  in:backward regex     ^aten::(lstm|gru|rnn_(tanh|relu))(,|$)
recompute     range  in:backward regex     ^aten::(adaptive_)?(max|avg)_pool[123]d(,|$)
recompute     range  in:backward regex     ^aten::(relu6|elu|leaky_relu|hardtanh|hardswish)_?(,|$)
recompute     range  in:backward regex     ^aten::\w*(loss|cross_entropy)(_nd|_with_logits)?(,|$)
recompute     range  in:backward regex     ^flash_attn\w*::\w*fwd|^flash_attn\w*::\w*_forward
# What no optimizer's update calls: forward work of a closure that is handed to its step. Products
# (aten::matmul and the like) are not in the list: Muon, Shampoo and SOAP take them.
forward       range  in:optimizer regex    ^aten::(linear|conv[123]d|conv_transpose[123]d)(,|$)
forward       range  in:optimizer regex    ^aten::(layer|group|batch|rms|instance)_norm(,|$)
forward       range  in:optimizer regex    ^aten::(embedding|scaled_dot_product_attention)(,|$)
forward       range  in:optimizer regex    ^aten::(gelu|relu|silu|dropout)_?(,|$)
forward       range  in:optimizer regex    ^aten::(log_)?softmax(,|$)
forward       range  in:optimizer regex    ^aten::(lstm|gru|rnn_(tanh|relu))(,|$)
forward       range  in:optimizer regex    ^aten::\w*(loss|cross_entropy)(_nd|_with_logits)?(,|$)
forward       range  in:optimizer regex    ^flash_attn\w*::\w*(_fwd|_forward)

# Communication, before words: bwd_allreduce, backward-params-all-reduce, send_forward.
communication range              prefix    nccl
communication range              prefix    c10d::
communication range              prefix    HOROVOD_
communication range              regex     (^|[^a-z])all[-_ ]?(reduce|gather|to[-_ ]?all)([^a-z]|$)
communication range              regex     (^|[^a-z])reduce[-_ ]?scatter([^a-z]|$)
communication range              regex     (^|[^a-z])broadcast_coalesced([^a-z]|$)
communication range              regex     ^(forward|backward)(-(send|recv|forward|backward))*-recv$
communication range              regex     ^(forward|backward)(-(send|recv|forward|backward))*-send$
communication range              regex     (^|\.)(send|recv)_(for|back)ward(_(send|recv|\w+ward))*$
communication range              regex     ^all-grads-sync$
communication range              prefix    FSDP::post_backward_reduce

# PyTorch
backward      range              prefix    autograd::engine::evaluate_function
backward      range              prefix    torch::autograd::
backward      range              node      Backward
optimizer     range              prefix    Optimizer.step#
optimizer     range              prefix    Optimizer.zero_grad#
# Operators' names decide nothing by their words: aten::_flash_attention_forward, aten::nll_loss.
-             range              regex     ^\w+(::\w+)+, (seq|op_id|sizes|input_op_ids) =
-             range              regex     ^(aten|prims?|torchvision|flash_attn\w*|xformers\w*)::

# Lightning, which hands forward and backward to the optimizer's step as a closure.
forward       range              regex     \](\w+)\.training_step$
other         range              regex     \](\w+)\.(validation|test|predict)_step$

# JAX and XLA: transforms in the names of operations. Compilation and autotuning are no training.
other         range              regex     ^(TSL:)?Xla(Compile|Pass|Autotuner|CreateGpuExecutable)
backward      range              contains  transpose(jvp(
backward      range              contains  transpose(vmap(jvp(
forward       range              contains  jvp(

# TensorFlow: ranges are "OpType: scope/node", "scope/node:OpType", or JSON that begins with "op"
# and "name". Scopes tell: gradients have one of their own, the optimizer and the loss their names.
communication range              regex     ^_?(Nccl|Horovod|Collective(Reduce|Gather|Bcast|)"
         R"(AllToAll))\w*:
backward      range              contains  gradient_tape/
backward      range              regex     (^|[/ ":=])gradients(_[0-9]+)?/
backward      range              regex     (^|[/ ":])(?-i:[A-Z]\w*Grad(V[0-9])?)(_[0-9]+)?($|[,": ])
optimizer     range              regex     (^|[/:"])(Resource)?(Sparse)?Apply(Adam|)"
         R"(AdamWithAmsgrad|Adagrad|Adadelta|Ftrl|RMSProp|Momentum|KerasMomentum|GradientDescent)
optimizer     range              regex     (^|[/ ":=])((Adam|Lamb)(W|WeightDecay)?|Adamax|Nadam|)"
         R"(NovoGrad|Adagrad|Adadelta|Adafactor|Ftrl|RMSprop|SGD|Momentum|GradientDescent|Lion|)"
         R"(LossScale)(Optimizer)?(_[0-9]+)?/
loss          range              regex     (^|[/ ":=])(\w+_)?(loss|crossentropy|cross_entropy|)"
         R"(mean_(squared|absolute)_error|kl_divergence)(_[0-9]+)?/
-             range              regex     (^|[/ ":=])(\w+_)?metrics(_[0-9]+)?/
forward       range              regex     ^_?(?-i:[A-Z]\w*): [A-Za-z.][^ ]*/
forward       range              regex     ^[A-Za-z.][^ :]*/[^ :]*:_?(?-i:[A-Z])\w*$
forward       range              regex     ^\{"op":"\w+","name":"[^ "]*/
forward       range              regex     (^|[ =])[A-Za-z.][^ =]*/(?-i:(Batch)?MatMul|Einsum|)"
         R"(Conv[123]D|DepthwiseConv2dNative|BiasAdd|FusedBatchNorm|Relu|Softmax|MaxPool|)"
         R"(AvgPool)(V[0-9])?6?(_[0-9]+)?($|,)
# Without a scope only this tells; with one, it is how transposed convolutions run forward.
backward      range              regex     Backprop(Input|Filter)
# NVIDIA's plugins for TensorFlow give both passes one message and tell them apart by domain.
backward      range domain:gradient  regex .
backward      range domain:gradients regex .
backward      range domain:backward  regex .
backward      range domain:backwards regex .
forward       range domain:forward   regex .

# DeepSpeed. What the hooks of backward call lies inside of backward.
optimizer     range              regex     ^(DeepSpeedEngine|.*Optimizer\w*)\.(_?take_model_)?step$
optimizer     range              regex     ^.*Optimizer\w*\.(zero_grad|_post_step|has_overflow)$
optimizer     range              regex     ^.*Optimizer\w*\.(_prepare|_release)_sub_group$
optimizer     range              regex     ^.*Optimizer\w*\._prepare_fp32_grad_for_sub_group$
optimizer     range              regex     ^.*Optimizer\w*\.(get_grad_norm_direct|_get_norm_groups)$
optimizer     range              regex     ^.*Optimizer\w*\._reassign_or_swap_out_partitioned
optimizer     range              regex     ^(.*Optimizer\w*\.)?_overflow_check_and_loss_scale
optimizer     range              regex     ^(.*Optimizer\w*\.)?(unscale|check)_(and_)?clip_grads$
optimizer     range domain:DeepSpeed regex ^step$
optimizer     range              regex     ^step_microstep$

# Words, as people write them: "forward-compute", "fwd_microstep", "loss.backward".
forward       range              lone-word forward
forward       range              lone-word fwd
backward      range              lone-word backward
backward      range              lone-word bwd
backward      range              lone-word backprop
backward      range              lone-word wgrad
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

# Where no range says forward. Products of a closure inside an optimizer's step are told from those
# of Muon and Shampoo.
forward       number              is        between
forward       number in:optimizer is        between
other         number              is        unclear
# Checkpointing, whatever the operators.
recompute     number in:backward  is        again

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
