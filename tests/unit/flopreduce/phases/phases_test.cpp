// Which launch belongs to which part of training.
#include "catch.h"
#include "reduce_bytes.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

// The phase of a launch in nested ranges, outermost first, on a thread. "DOMAIN|NAME" is a range of
// an NVTX domain.
std::string phase_of(const std::vector<std::string>& ranges, const std::string& thread = "python",
                     PhaseRules rules = {}) {
  TraceBuilder t;
  t.header();
  t.device();
  t.stream();
  t.thread(1, thread);
  t.kernel(1, "k", 11);
  uint32_t id = 0;
  for (const auto& range : ranges) {
    ++id;
    const size_t bar = range.find('|');
    const bool domain = bar != std::string::npos;
    if (domain) t.string(10'000 + id, range.substr(0, bar));
    t.path(id, id - 1, range.substr(domain ? bar + 1 : 0), domain ? 10'000 + id : 0);
  }
  t.launches({{1, 5, id}});
  t.end();
  const Report r = reduce_bytes({t.bytes()}, {.fma = 2, .rules = std::move(rules)});
  REQUIRE(r.phases.size() == 1);
  return r.phases[0].name;
}

}  // namespace

TEST_CASE("range names decide by whole words") {
  CHECK(phase_of({"forward"}) == "forward");
  CHECK(phase_of({"Forward pass"}) == "forward");
  CHECK(phase_of({"model_fwd"}) == "forward");
  CHECK(phase_of({"BACKWARD"}) == "backward");
  CHECK(phase_of({"loss.backward"}) == "backward");
  CHECK(phase_of({"optimizer.step"}) == "optimizer");
  CHECK(phase_of({"loss"}) == "loss");
  CHECK(phase_of({"fast-forwarding"}) == "other");
  CHECK(phase_of({"straightforward"}) == "other");
  CHECK(phase_of({"lossless"}) == "other");
  CHECK(phase_of({}) == "other");
}

TEST_CASE("the innermost range that decides wins") {
  CHECK(phase_of({"step", "forward", "layer:fc1"}) == "forward");
  CHECK(phase_of({"forward", "backward"}) == "backward");
  CHECK(phase_of({"forward", "loss"}) == "loss");
}

TEST_CASE("torch.profiler names calls of modules") {
  CHECK(phase_of({"nn.Module: Net_0", "nn.Module: Linear_3", "aten::linear"}) == "forward");
  const std::string node = "autograd::engine::evaluate_function: CheckpointFunctionBackward";
  CHECK(phase_of({node, "nn.Module: Linear_3", "aten::linear"}) == "recompute");
  CHECK(phase_of({"(no call in the recording)"}) == "unknown");
}

TEST_CASE("a name that speaks for two phases decides nothing") {
  CHECK(phase_of({"forward-backward"}) == "other");
  CHECK(phase_of({"optimizer", "forward_backward_step"}) == "optimizer");
}

TEST_CASE("words inside the names of modules decide nothing in what is called forward") {
  for (const char* module :
       {"backward_warp", "elmo.backward_lstm", "optimizer_state_encoder", "remat_block",
        "all_gather_tokens", "net/bwd-conv", "layer optim 3", "moe_all_to_all_mlp"})
    CHECK(phase_of({"step", "forward", "net", module}) == "forward");
  CHECK(phase_of({"forward", "backward"}) == "backward");
  CHECK(phase_of({"forward", "all_reduce"}) == "communication");
  CHECK(phase_of({"forward", "Optimizer.step#SGD.step"}) == "optimizer");
  CHECK(phase_of({"backward_warp"}) == "backward");  // nothing around it says what it is
}

TEST_CASE("feed-forward is a module, no pass over the network") {
  for (const char* name : {"feed_forward", "Feed-Forward", "feed forward", "layers.0.feed_forward",
                           "FeedForward", "feedforward"}) {
    INFO(name);
    CHECK(phase_of({name}) == "other");
    CHECK(phase_of({"forward", name}) == "forward");
    CHECK(phase_of({"backward", name}) == "backward");
    CHECK(phase_of({name, "backward"}) == "backward");
  }
  CHECK(phase_of({"feed_forward/fwd"}) == "other");  // two words cancel out, as ever
  CHECK(phase_of({"transpose(jvp(feed_forward))"}) == "backward");
  CHECK(phase_of({"backward", "forward"}) == "recompute");
}

TEST_CASE("a rule for no phase leaves a name to what is around it") {
  PhaseRules rules;
  REQUIRE_FALSE(rules.add_rule_file("mine", "- range word backward\n- range prefix loss_scale\n"));
  CHECK(phase_of({"forward", "backward hook"}, "python", rules) == "forward");
  CHECK(phase_of({"loss_scale forward"}, "python", rules) == "other");
  CHECK(phase_of({"forward"}, "python", rules) == "forward");
}

TEST_CASE("PyTorch's names") {
  CHECK(phase_of({"autograd::engine::evaluate_function: ConvolutionBackward0"}) == "backward");
  CHECK(phase_of({"ConvolutionBackward0, sizes = [[1, 2]]"}) == "backward");
  CHECK(phase_of({"AddmmBackward#"}) == "backward");
  CHECK(phase_of({"Optimizer.step#SGD.step"}) == "optimizer");
  CHECK(phase_of({"torch::autograd::AccumulateGrad"}) == "backward");
  CHECK(phase_of({"NotBackwardAtAll"}) == "other");
}

TEST_CASE("products in hooks of a leaf are no gradients, also where the leaf's node does not run") {
  const std::string leaf = "torch::autograd::AccumulateGrad";
  const std::string evaluates = "autograd::engine::evaluate_function: ";
  const std::string product = "aten::mm, sizes = [[8, 4], [4, 8]]";
  // By backward(), once the gradient is there; by torch.autograd.grad(), which takes it.
  CHECK(phase_of({evaluates + leaf, leaf, product}, "pt_autograd_0") == "other");
  CHECK(phase_of({evaluates + leaf, product}, "pt_autograd_0") == "other");
  CHECK(phase_of({evaluates + leaf, "aten::mul, sizes = [[8, 4], []]"}, "pt_autograd_0") ==
        "backward");
  CHECK(phase_of({evaluates + "MmBackward0", product}, "pt_autograd_0") == "backward");
}

TEST_CASE("threads decide where no range does") {
  CHECK(phase_of({}, "pt_autograd_0") == "backward");
  CHECK(phase_of({"layer:fc1"}, "pt_autograd_12") == "backward");
  CHECK(phase_of({}, "autograd") == "backward");
}

TEST_CASE("forward work inside backward is recomputation") {
  CHECK(phase_of({"backward", "forward"}) == "recompute");
  CHECK(phase_of({"backward", "layer3", "model_fwd"}) == "recompute");
  CHECK(phase_of({"forward"}, "pt_autograd_0") == "recompute");
  CHECK(phase_of({"backward", "forward-backward"}) == "backward");
  const std::string node = "autograd::engine::evaluate_function: ";
  CHECK(phase_of({node + "CheckpointFunctionBackward", "aten::mm, sizes = [[2, 2], [2, 2]]"}) ==
        "recompute");
  CHECK(phase_of({node + "CheckpointFunctionBackward", node + "MmBackward0"}) == "backward");
  // Not re-entrant: the forward operators run inside the node that needs what they save.
  CHECK(phase_of({node + "AddmmBackward0", "AddmmBackward0", "aten::linear, sizes = [[2, 2]]"},
                 "pt_autograd_0") == "recompute");
  CHECK(phase_of({node + "AddmmBackward0", "AddmmBackward0", "aten::mm, sizes = [[2, 2]]"},
                 "pt_autograd_0") == "backward");
  CHECK(phase_of({"aten::linear, sizes = [[2, 2]]"}) == "other");
}

// PyTorch runs forward work again inside of nodes only. Ranges by hand are on the thread that calls
// backward(), and may hold more than that call.
TEST_CASE("in a backward range by hand, forward work runs for the first time") {
  const std::string node = "autograd::engine::evaluate_function: ";
  const std::vector<std::string> names{"forward",
                                       "aten::linear, sizes = [[2, 2], [2, 2], []]",
                                       "aten::layer_norm, sizes = [[2, 2], [], [2], [2], [], []]",
                                       "aten::relu, sizes = [[2, 2]]",
                                       "aten::log_softmax, sizes = [[2, 2], [], []]",
                                       "aten::cross_entropy_loss, sizes = [[2, 2], [2]]",
                                       "aten::nll_loss, sizes = [[2, 2], [2], [], [], []]",
                                       "flash_attn::_flash_attn_forward, sizes = [[2, 2, 2, 2]]"};
  for (const std::string& name : names) {
    INFO(name);
    TraceBuilder t;
    t.header();
    t.device();
    t.stream();
    t.thread(1, "python");
    t.thread(2, "pt_autograd_0");
    t.kernel(1, "k", 11);
    t.path(1, 0, "## backward ##");
    t.path(2, 1, name);
    t.path(3, 0, node + "MulBackward0");
    t.path(4, 3, name);
    t.path(5, 1, "aten::mul, sizes = [[2, 2], []]");
    const bool gradient = name.starts_with("aten::nll_loss,");
    // A range by hand inside of a node is inside of the node.
    t.path(6, 3, "backward of mine");
    t.path(7, 6, name);
    for (const uint32_t path : {2U, 5U}) t.launches({{1, 5, path}});
    for (const uint32_t path : {4U, 7U}) t.launches({{1, 5, path}}, 2);
    t.end();
    std::map<std::string, uint64_t> launches;
    for (const PhaseReport& phase : reduce_bytes({t.bytes()}).phases)
      launches[phase.name] = phase.work.launches;
    if (gradient)
      CHECK(launches == std::map<std::string, uint64_t>{{"forward", 1}, {"backward", 3}});
    else
      CHECK(launches ==
            std::map<std::string, uint64_t>{{"forward", 1}, {"backward", 1}, {"recompute", 2}});
  }
  // On autograd's thread without any nodes' names; and on the calling thread, which nodes have.
  CHECK(phase_of({"backward", names[1]}, "pt_autograd_0") == "recompute");
  CHECK(phase_of({node + "AddmmBackward0", "backward", names[1]}) == "recompute");
  // A program without autograd, whose ranges are all made by hand.
  CHECK(phase_of({"backward", "forward"}) == "recompute");
}

// The interpreter has a range for each method that it runs, with the sizes of its arguments.
TEST_CASE("names of TorchScript's methods are no phases") {
  for (const char* method : {"forward, sizes = [[], []]", "<forward op>, sizes = [[300], []]",
                             "loss, sizes = [[4]]", "backward, sizes = [[4], [4]]"}) {
    INFO(method);
    const std::string inner = "fbgemm::permute_sparse_features, sizes = [[300], [300, 2048]]";
    CHECK(phase_of({"## prepare next batch ##", method, inner}) == "other");
    CHECK(phase_of({"forward", method, inner}) == "forward");
    CHECK(phase_of({"forward", method, inner}, "pt_autograd_0") == "recompute");
  }
  CHECK(phase_of({"forward"}) == "forward");
}

TEST_CASE("inside recomputation forward words stay recomputation, at any depth") {
  const std::string node = "autograd::engine::evaluate_function: ";
  const std::vector<std::string> checkpoint = {node + "CheckpointFunctionBackward",
                                               "CheckpointFunctionBackward"};
  const auto inside = [&](std::vector<std::string> ranges) {
    ranges.insert(ranges.begin(), checkpoint.begin(), checkpoint.end());
    return phase_of(ranges, "pt_autograd_0");
  };
  CHECK(inside({"forward"}) == "recompute");
  CHECK(inside({"megatron.core.transformer.transformer_layer.forward.mlp",
                "megatron.core.transformer.mlp.forward.linear_fc1"}) == "recompute");
  CHECK(inside({"transformer_engine._Linear.forward.gemm"}) == "recompute");
  CHECK(inside({"block", "model_fwd", "aten::mm, sizes = [[2, 2], [2, 2]]"}) == "recompute");
  CHECK(inside({"loss", "aten::nll_loss_nd, sizes = [[2, 2], [2], [], [], []]"}) == "recompute");
  CHECK(inside({"aten::scaled_dot_product_attention, sizes = [[1, 2, 4, 8]]",
                "aten::_flash_attention_forward, sizes = [[1, 4, 2, 8]]"}) == "recompute");
  // Reentrant: a whole backward pass runs inside of the node, and what it recomputes in turn.
  CHECK(inside({node + "AddmmBackward0", "AddmmBackward0", "aten::mm, sizes = [[2, 2], [2, 2]]"}) ==
        "backward");
  CHECK(inside({node + "CheckpointFunctionBackward", "CheckpointFunctionBackward", "forward"}) ==
        "recompute");
  CHECK(inside({node + "_LinearBackward", "_LinearBackward",
                "transformer_engine._Linear.backward.dgrad_gemm"}) == "backward");
  // Nodes of TransformerEngine's and Megatron's own checkpoints.
  for (const char* own : {"_CheckpointFunctionBackward", "CheckpointWithoutOutputFunctionBackward"})
    CHECK(phase_of({node + own, own, "forward"}, "pt_autograd_0") == "recompute");
  // Not re-entrant: what the hooks of saved tensors run lies in the node that asks for them.
  for (const char* name : {"aten::scaled_dot_product_attention, sizes = [[1, 2, 4, 8]]", "forward",
                           "aten::rms_norm, sizes = [[2, 2], [], [2], []]",
                           "aten::cross_entropy_loss, sizes = [[2, 2], [2], [], [], [], []]"})
    CHECK(phase_of({node + "MulBackward0", "MulBackward0", name}, "pt_autograd_0") == "recompute");
  // A function of the user's may take products in its backward.
  CHECK(phase_of({node + "OwnFunctionBackward", "OwnFunctionBackward",
                  "aten::matmul, sizes = [[2, 2], [2, 2]]", "aten::mm, sizes = [[2, 2], [2, 2]]"},
                 "pt_autograd_0") == "backward");
  CHECK(phase_of({node + "NllLossBackward0", "NllLossBackward0",
                  "aten::nll_loss_backward, sizes = [[], [2, 2], [2], [], [], [], []]"},
                 "pt_autograd_0") == "backward");
  // It is linear, so that it is its gradient's gradient (PyTorch 2.15, derivatives.yaml:
  // nll_loss_backward, grad_output).
  const std::string loss = "aten::nll_loss, sizes = [[2, 2], [2], [], [], []]";
  CHECK(phase_of({node + "NllLossBackwardBackward0", "NllLossBackwardBackward0", loss},
                 "pt_autograd_0") == "backward");
  CHECK(phase_of({node + "MulBackward0", "MulBackward0",
                  "aten::nll_loss_nd, sizes = [[2, 2], [2], [], [], []]", loss},
                 "pt_autograd_0") == "recompute");
}

TEST_CASE("names of operators decide nothing by their words") {
  for (const char* name :
       {"aten::_flash_attention_forward, sizes = [[1, 4, 2, 8], [1, 4, 2, 8], [1, 4, 2, 8]]",
        "aten::_efficient_attention_forward, sizes = [[1, 4, 2, 8]]",
        "aten::nll_loss_forward, sizes = [[4, 10], [4], [], [], []]",
        "aten::mse_loss, sizes = [[4, 10], [4, 10], []]", "aten::nll_loss_forward",
        "mylib::fused_forward, seq = 3, op_id = 7, sizes = [[2, 2]]",
        "mylib::detail::loss, sizes = [[2, 2]]",
        "aten::native_layer_norm_backward, sizes = [[2, 2]]"}) {
    INFO(name);
    CHECK(phase_of({name}) == "other");
    CHECK(phase_of({"forward", name}) == "forward");
    CHECK(phase_of({"loss", name}) == "loss");
    CHECK(phase_of({"optimizer", "training", "backward", name}) != "optimizer");
  }
  PhaseRules rules;  // a user's rule may say so
  REQUIRE_FALSE(rules.add_user_rule("loss=nll_loss"));
  CHECK(phase_of({"aten::nll_loss_forward, sizes = [[4, 10]]"}, "python", rules) == "loss");
  // Made up: a C++ program's ranges look like operators without sizes.
  CHECK(phase_of({"Network::forward"}) == "forward");
  CHECK(phase_of({"FSDP::pre_forward"}) == "forward");
}

TEST_CASE("a network without gradients is in no phase of training") {
  CHECK(phase_of({"evaluation"}) == "other");
  for (const char* around : {"step", "forward", "Optimizer.step#SGD.step"})
    CHECK(phase_of({around, "evaluation", "layer:net.0",
                    "aten::linear, sizes = [[4, 8], [8, 8], [8]]"}) == "other");
  for (const char* layer : {"layer:forward_net", "layer:criterion", "layer:head.loss"})
    CHECK(phase_of({"evaluation", layer}) == "other");
  CHECK(phase_of({"layer:head.loss"}) == "loss");
  CHECK(phase_of({"forward", "layer:evaluation"}) == "forward");
  PhaseRules rules;  // a user's rule goes first
  REQUIRE_FALSE(rules.add_user_rule("evaluation=^evaluation$"));
  CHECK(phase_of({"evaluation", "layer:net.0"}, "python", rules) == "evaluation");
}

TEST_CASE("a closure inside an optimizer's step") {
  // Lightning 2.6 with PyTorchProfiler(emit_nvtx=True).
  const std::vector<std::string> step = {"[pl][profile][LightningModule]Net.optimizer_step",
                                         "Optimizer.step#SGD.step"};
  const auto inside = [&](std::vector<std::string> ranges) {
    ranges.insert(ranges.begin(), step.begin(), step.end());
    return phase_of(ranges);
  };
  const std::string training = "[pl][profile][Strategy]SingleDeviceStrategy.training_step";
  CHECK(inside({}) == "optimizer");
  CHECK(inside({training, "aten::conv2d, sizes = [[4, 3, 8, 8], [8, 3, 3, 3]]"}) == "forward");
  CHECK(inside({training, "aten::add, sizes = [[4, 8], [4, 8], []]"}) == "forward");
  CHECK(inside({training, "[pl][module]torch.nn.modules.linear.Linear: net.0",
                "aten::linear, sizes = [[4, 8], [8, 8], [8]]",
                "aten::addmm, sizes = [[8], [4, 8], [8, 8], [], []]"}) == "forward");
  CHECK(inside({"[pl][profile][Strategy]SingleDeviceStrategy.backward",
                "aten::ones_like, sizes = [[]]"}) == "backward");
  CHECK(inside({"[pl][profile][LightningModule]Net.configure_gradient_clipping",
                "aten::_foreach_norm, sizes = [[[8, 8], [8]], []]"}) == "optimizer");
  CHECK(inside({"aten::_foreach_addcdiv_, sizes = [[[8]], [[8]], [[8]], []]"}) == "optimizer");
  CHECK(phase_of({"[pl][profile][Strategy]SingleDeviceStrategy.validation_step"}) == "other");
  // A closure without ranges of its own, as for LBFGS.
  const std::string lbfgs = "Optimizer.step#LBFGS.step";
  CHECK(phase_of({lbfgs, "aten::linear, sizes = [[4, 8], [8, 8], [8]]",
                  "aten::addmm, sizes = [[8], [4, 8], [8, 8], [], []]"}) == "forward");
  CHECK(phase_of({lbfgs, "aten::mse_loss, sizes = [[4, 10], [4, 10], []]"}) == "forward");
  CHECK(phase_of({lbfgs, "aten::dot, sizes = [[80], [80]]"}) == "optimizer");
  CHECK(phase_of({lbfgs, "autograd::engine::evaluate_function: MseLossBackward0",
                  "MseLossBackward0"}) == "backward");
  // Muon's Newton-Schulz products are the optimizer's.
  CHECK(phase_of({"Optimizer.step#Muon.step", "aten::matmul, sizes = [[8, 8], [8, 8]]",
                  "aten::mm, sizes = [[8, 8], [8, 8]]"}) == "optimizer");
}

TEST_CASE("JAX and XLA") {
  const std::string module =
      "XlaModule:#prefix=jit(train_step)/jit(main),hlo_module=jit_train_step,program_id=5#";
  const auto thunk = [&](const std::string& name) {
    return phase_of({module, "Thunk:#name=" + name + ",hlo_op=fusion.1#"});
  };
  CHECK(thunk("jvp(Transformer)/layer_0/dot_general") == "forward");
  CHECK(thunk("transpose(jvp(Transformer))/layer_0/dot_general") == "backward");
  CHECK(thunk("transpose(jvp(T))/checkpoint/rematted_computation/dot_general") == "recompute");
  CHECK(thunk("add") == "other");
  CHECK(phase_of({"forward", "TSL:XlaAutotunerMeasurement:#module=x#"}) == "other");
}

TEST_CASE("TensorFlow's names") {
  struct Node {
    const char* op;
    const char* name;
    const char* phase;
  };
  const Node nodes[] = {
      {"Conv2D", "model/conv2d_4/Conv2D", "forward"},
      {"_FusedConv2D", "sequential/resnet50v2/conv1_conv/BiasAdd", "forward"},
      {"MatMul", "StatefulPartitionedCall/sequential/dense/MatMul", "forward"},
      {"FusedBatchNormV3", "while/body/_1/while/resnet50/bn_conv1/FusedBatchNormV3", "forward"},
      {"Conv2DBackpropInput", "model/conv2d_transpose/conv2d_transpose", "forward"},
      {"Mul", "model/dropout/dropout/Mul_1", "forward"},
      {"Conv2DBackpropFilter", "gradient_tape/model/conv/Conv2D/Conv2DBackpropFilter", "backward"},
      {"MatMul", "gradient_tape/model/dense/MatMul/MatMul", "backward"},
      {"MatMul", "gradients/dense/MatMul_grad/MatMul", "backward"},
      {"AddN", "tower_0/gradients_1/AddN_3", "backward"},
      {"MatMul", "cond_1/then/_10/gradient_tape/model/dense/MatMul_1", "backward"},
      {"BiasAddGrad", "BiasAddGrad", "backward"},
      {"FusedBatchNormGradV3", "FusedBatchNormGradV3_2", "backward"},
      {"Conv2DBackpropInput", "Conv2DBackpropInput", "backward"},
      {"Mul", "gradient_tape/sparse_categorical_crossentropy/mul", "backward"},
      {"ResourceApplyAdam", "Adam/Adam/update_12/ResourceApplyAdam", "optimizer"},
      {"ResourceApplyKerasMomentum", "cond_1/then/_10/SGD/SGD/update/ResourceApplyKerasMomentum",
       "optimizer"},
      {"Sqrt", "Adam/Sqrt_1", "optimizer"},
      {"AssignSubVariableOp", "StatefulPartitionedCall/adam/AssignSubVariableOp_3", "optimizer"},
      {"Mul", "LossScaleOptimizer/mul", "optimizer"},
      {"Mul", "AdamWeightDecayOptimizer_1/mul", "optimizer"},
      {"SparseSoftmaxCrossEntropyWithLogits",
       "sparse_categorical_crossentropy/SparseSoftmaxCrossEntropyWithLogits/"
       "SparseSoftmaxCrossEntropyWithLogits",
       "loss"},
      {"Mean", "compile_loss/mean_squared_error/Mean", "loss"},
      {"Equal", "metrics/accuracy/Equal", "other"},
      {"MatMul", "MatMul", "other"},  // eager, without a tape's scope: nothing tells
      {"AddN", "AddN_3", "other"},
  };
  for (const Node& n : nodes) {
    const std::string op = n.op, name = n.name;
    INFO(op << ": " << name);
    CHECK(phase_of({op + ": " + name}) == n.phase);
    CHECK(phase_of({name + ":" + op}) == n.phase);
    CHECK(phase_of({R"({"op":")" + op + R"(","name":")" + name +
                    R"(","args":[{"name":"x","shape":[2,3]}],"attrs":{"T":"float32"}})"}) ==
          n.phase);
  }
  CHECK(phase_of({"HorovodAllreduce: DistributedAdam_Allreduce/HorovodAllreduce_grads_0"}) ==
        "communication");
  CHECK(phase_of({"NcclAllReduce: Adam/NcclAllReduce"}) == "communication");
  // A cluster that XLA compiled holds both passes.
  CHECK(phase_of({"fusion: cluster_0_1/xla_run/fusion_24"}) == "other");
  // The names of nodes alone, and inside of XLA's.
  const auto thunk = [](const std::string& name) {
    return phase_of({"Thunk:#name=" + name + ",hlo_op=fusion.1#"});
  };
  for (const char* name : {"model/dense/MatMul", "model/bn/FusedBatchNormV3", "model/Relu_2"}) {
    CHECK(phase_of({name}) == "forward");
    CHECK(thunk(name) == "forward");
    CHECK(thunk(std::string("gradient_tape/") + name) == "backward");
  }
  CHECK(thunk("SGD/SGD/update/ResourceApplyGradientDescent") == "optimizer");
  CHECK(thunk("model/dropout/Mul") == "other");
}

TEST_CASE("names that only look like TensorFlow's") {
  for (const char* name :
       {"Epoch: 1/10", "epoch: train/1", "step 3/100", "data/loader", "Loading: a / b",
        "ProfilerStep#3", "http://host/path:80", "src/train.py:42", "NVTX: done", "adam",
        "model/layers/3", "gradients", "MaxPool"}) {
    INFO(name);
    CHECK(phase_of({name}) == "other");
    CHECK(phase_of({"backward", name}) == "backward");
  }
}

TEST_CASE("Megatron's ranges") {
  const std::string core = "megatron.core.";
  CHECK(phase_of({core + "transformer.mlp.forward.linear_fc1"}) == "forward");
  CHECK(phase_of({core + "fusions.fused_bias_swiglu.backward"}) == "backward");
  CHECK(phase_of({"layer_3f-layer_5b", "mlp wgrad"}) == "backward");
  CHECK(phase_of({core + "pipeline_parallel.schedules."
                         "forward_backward_pipelining_with_interleaving.steady"}) == "other");
  for (const char* name :
       {"recv_forward", "recv_backward", "send_forward", "send_backward",
        "send_forward_recv_backward", "send_backward_recv_forward", "send_forward_recv_forward",
        "send_backward_recv_backward", "send_forward_backward_recv_forward_backward"}) {
    INFO(name);
    CHECK(phase_of({core + "pipeline_parallel.p2p_communication." + name}) == "communication");
  }
}

// Made up of the names of Megatron's and DeepSpeed's timers, which are no NVTX ranges: for programs
// that make ranges of them.
TEST_CASE("names of timers") {
  CHECK(phase_of({"forward-compute"}) == "forward");
  CHECK(phase_of({"backward-compute"}) == "backward");
  CHECK(phase_of({"forward-backward"}) == "other");
  CHECK(phase_of({"optimizer-inner-step"}) == "optimizer");
  for (const char* name : {"all-grads-sync", "params-all-gather", "layernorm-grads-all-reduce",
                           "backward-params-all-reduce", "forward-send", "backward-recv",
                           "forward-send-backward-recv", "bwd_allreduce_microstep", "bwd_allreduce",
                           "nccl:all_reduce", "c10d::allreduce_", "ncclAllReduce"})
    CHECK(phase_of({name}) == "communication");
  CHECK(phase_of({"fwd_microstep"}) == "forward");
  CHECK(phase_of({"bwd_inner_microstep"}) == "backward");
  CHECK(phase_of({"step_microstep"}) == "optimizer");
}

TEST_CASE("DeepSpeed's ranges, in its NVTX domain or in none") {
  const std::string stage3 = "DeepSpeedZeroOptimizer_Stage3.";
  for (const std::string domain : {"", "DeepSpeed|"}) {
    CHECK(phase_of({domain + "DeepSpeedEngine.forward"}) == "forward");
    CHECK(phase_of({domain + "DeepSpeedEngine.backward"}) == "backward");
    CHECK(phase_of({domain + "DeepSpeedEngine.allreduce_gradients"}) == "communication");
    for (const char* name :
         {"step", "zero_grad", "unscale_and_clip_grads", "_overflow_check_and_loss_scale_update",
          "_get_norm_groups", "get_grad_norm_direct", "has_overflow", "_prepare_sub_group",
          "_release_sub_group", "_prepare_fp32_grad_for_sub_group", "_post_step",
          "_reassign_or_swap_out_partitioned_parameters"}) {
      INFO(name);
      CHECK(phase_of({domain + stage3 + name}) == "optimizer");
    }
    CHECK(phase_of({domain + "DeepSpeedEngine.step"}) == "optimizer");
    CHECK(phase_of({domain + "SuperOffloadOptimizer_Stage3.check_clip_grads"}) == "optimizer");
    CHECK(phase_of({domain + "unscale_and_clip_grads"}) == "optimizer");  // ZenFlow's
    CHECK(phase_of({"backward", domain + stage3 + "__add_grad_to_ipg_bucket"}) == "backward");
  }
  // ZenFlow's step is a function of no class: any program may call a range so.
  CHECK(phase_of({"DeepSpeed|step"}) == "optimizer");
  CHECK(phase_of({"step"}) == "other");
  CHECK(phase_of({"mine|step"}) == "other");
}

// As the examples of NVIDIA's plugins for TensorFlow choose messages and domains.
TEST_CASE("domains tell TensorFlow's passes apart") {
  CHECK(phase_of({"Forward|Dense Block"}) == "forward");
  CHECK(phase_of({"Gradient|Dense Block"}) == "backward");
  CHECK(phase_of({"forward|Dense 1"}) == "forward");
  CHECK(phase_of({"backwards|Dense 1 grad"}) == "backward");
  CHECK(phase_of({"Forward|Loss"}) == "forward");
  CHECK(phase_of({"Dense Block"}) == "other");
  CHECK(phase_of({"Forward pass|Dense Block"}) == "other");
}

TEST_CASE("a rule may name a domain") {
  PhaseRules rules;
  REQUIRE_FALSE(rules.add_rule_file("mine",
                                    "eval range domain:Validation regex .\n"
                                    "inner range in:eval domain:my-lib word go\n"));
  CHECK(phase_of({"validation|anything"}, "python", rules) == "eval");
  CHECK(phase_of({"anything"}, "python", rules) == "other");
  CHECK(phase_of({"validation|x", "my-lib|go on"}, "python", rules) == "inner");
  CHECK(phase_of({"validation|x", "go on"}, "python", rules) == "eval");
  CHECK(PhaseRules::describe(rules.rules()[1]) ==
        "inside eval, range of domain 'my-lib' has the word 'go'");
  CHECK(PhaseRules::line_of(rules.rules()[1]) == "inner range in:eval domain:my-lib word go");
}

TEST_CASE("kernels decide before ranges, user's rules before kernels") {
  const auto of = [](const std::string& kernel, PhaseRules rules = {}) {
    TraceBuilder t = started();
    t.kernel(1, kernel, 11);
    t.path(1, 0, "backward");
    t.launches({{1, 5, 1}});
    t.end();
    const Report r = reduce_bytes({t.bytes()}, {.fma = 2, .rules = std::move(rules)});
    REQUIRE(r.phases.size() == 1);
    return r.phases[0].name;
  };
  CHECK(of("_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE") ==
        "communication");
  CHECK(of("ampere_sgemm_128x64_tn") == "backward");
  PhaseRules rules;
  CHECK_FALSE(rules.add_rule_file("f", "update kernel contains sgemm\nmine range word backward\n"));
  CHECK(of("ampere_sgemm_128x64_tn", rules) == "update");
  CHECK(of("ncclKernel", rules) == "mine");
}

TEST_CASE("user rules come first, in their order") {
  PhaseRules rules;
  CHECK_FALSE(rules.add_user_rule("again=checkpoint").has_value());
  CHECK_FALSE(rules.add_user_rule("special=^check").has_value());
  CHECK(phase_of({"backward", "Checkpoint forward"}, "main", rules) == "again");
  CHECK(phase_of({"forward"}, "main", rules) == "forward");
  for (const char* bad : {"nonsense", "x=(", "=x", "x=", "a b=c", "x=(?=a)"})
    CHECK(rules.add_user_rule(bad).has_value());
  CHECK(rules.add_user_rule("x=" + std::string(2000, 'a')).has_value());
}

TEST_CASE("a rule file") {
  PhaseRules rules;
  REQUIRE_FALSE(rules.add_rule_file("rules",
                                    "# mine\n\n  warm-up range prefix  step 0 \r\n"
                                    "eval thread word worker\n"
                                    "inner range in:eval contains [x]\n"
                                    "last range regex ^a.*b$"));
  CHECK(rules.user_rules() == 4);
  CHECK(phase_of({"step 0 of 7"}, "main", rules) == "warm-up");
  CHECK(phase_of({"a to b"}, "main", rules) == "last");
  CHECK(phase_of({}, "worker_3", rules) == "eval");
  CHECK(phase_of({"some [X] here"}, "worker_3", rules) == "inner");
  CHECK(phase_of({"some [X] here"}, "main", rules) == "other");
}

TEST_CASE("several patterns in one line of a rule file are a rule each") {
  PhaseRules rules;
  REQUIRE_FALSE(rules.add_rule_file("rules",
                                    "fruit range word apple | blood orange|lime | |\n"
                                    "nut range regex hazel | wal\n"));
  REQUIRE(rules.user_rules() == 4);
  const auto line = [&](size_t rule) { return PhaseRules::line_of(rules.rules()[rule]); };
  CHECK(line(0) == "fruit range word apple");
  CHECK(line(1) == "fruit range word blood orange|lime");
  CHECK(line(2) == "fruit range word |");
  CHECK(line(3) == "nut range regex hazel | wal");
  CHECK(rules.add_rule_file("rules", "fruit range word apple |  | lime\n").has_value());
}

TEST_CASE("a wrong rule file is refused as a whole, with the line") {
  const auto error = [](const std::string& text) {
    PhaseRules rules;
    const size_t before = rules.rules().size();
    const auto said = rules.add_rule_file("my.rules", text);
    CHECK(rules.rules().size() == before);
    return said.value_or("");
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(has(error("a range word x\nb rang word x\n"), "my.rules:2: 'rang'"));
  CHECK(has(error("a range words x"), "my.rules:1: 'words'"));
  CHECK(has(error("\n\na range word"), "my.rules:3: the pattern is missing"));
  CHECK(has(error("a range regex ("), "not a regular expression"));
  CHECK(has(error("a/b range word x"), "no name of a phase"));
  CHECK(has(error("a kernel in:b word x"), "is for ranges"));
  CHECK(has(error("a kernel domain:b word x"), "is for ranges"));
  CHECK(has(error("a range domain: word x"), "domain:NAME names an NVTX domain"));
  CHECK_FALSE(has(error("a\033[31m range word x"), "\033"));
  std::string many;
  for (int i = 0; i < 5000; ++i) many += "a range word x\n";
  CHECK(has(error(many), "more than 4096 rules"));
}

TEST_CASE("several patterns of a line may have any blanks between") {
  std::string error;
  const auto parsed = PhaseRules::parse_line("eval thread word  a  |   b c  |  d \t", error);
  REQUIRE(parsed.size() == 3);
  for (const auto& [rule, pattern] : {std::pair(0, "a"), {1, "b c"}, {2, "d"}}) {
    CHECK(parsed[static_cast<size_t>(rule)].pattern == pattern);
    CHECK(PhaseRules::line_of(parsed[static_cast<size_t>(rule)]) ==
          std::string("eval thread word ") + pattern);
  }
  CHECK(PhaseRules::parse_line("eval thread word a |  | b", error).empty());
  CHECK(error.find("the pattern is missing") != std::string::npos);
}

TEST_CASE("the built-in rules are a rule file, and every line says itself") {
  PhaseRules built_in, again;
  REQUIRE_FALSE(again.add_rule_file("built-in", PhaseRules::built_in()));
  REQUIRE(again.user_rules() + 1 == built_in.rules().size());
  for (uint32_t i = 0; i < again.user_rules(); ++i) {
    std::string error;
    const auto parsed = PhaseRules::parse_line(PhaseRules::line_of(built_in.rules()[i]), error);
    REQUIRE(parsed.size() == 1);
    CHECK(PhaseRules::line_of(parsed[0]) == PhaseRules::line_of(again.rules()[i]));
  }
}

TEST_CASE("a user rule cannot be made to run for ever") {
  PhaseRules rules;
  REQUIRE_FALSE(rules.add_user_rule("slow=(a+)+$").has_value());
  CHECK(phase_of({std::string(5000, 'a') + "b"}, "main", rules) == "slow");  // cut before the b
  CHECK(phase_of({std::string(300, 'a') + "!"}, "main", rules) == "other");
}

TEST_CASE("rules report their share") {
  TraceBuilder t = started();
  t.kernel(1, "k", 11);
  t.path(1, 0, "forward");
  t.path(2, 0, "bwd");
  t.samples(1, 1, {sass(1, 0, 0)});
  t.tally({{1, 10, 0, 0, 1}, {1, 20, 0, 0, 2}, {1, 40, 0, 0, 0}});
  t.end();
  const auto j = json_of(reduce_bytes({t.bytes()}));
  uint64_t launches = 0;
  for (const auto& rule : j["rules"]) launches += rule["launches"].get<uint64_t>();
  CHECK(launches == 70);
  CHECK(j["rules"].back()["rule"] == "no rule matched");
  CHECK(j["rules"].back()["flop"] == 40);
}

TEST_CASE("backward / forward and what it should be") {
  TraceBuilder t = started();
  t.kernel(1, "gemm", 11);
  t.kernel(2, "add", 12);
  t.path(1, 0, "step");
  t.path(2, 1, "forward");
  t.path(3, 2, "fc1");
  t.path(4, 2, "relu");
  t.path(5, 2, "fc2");
  t.path(6, 1, "backward");
  t.path(7, 6, "fc2");
  t.path(8, 6, "fc1");
  t.samples(1, 1, {sass(0, 0, 50)});  // 100 FLOP of matrix work
  t.samples(1, 2, {sass(10, 0, 0)});
  // Forward: fc1 100, relu 10, fc2 300. Backward: fc2 600, fc1 100 (no input gradient).
  t.launches({{1, 1, 3}, {2, 1, 4}, {1, 1, 5}, {1, 1, 5}, {1, 1, 5}});
  t.launches({{1, 1, 7}, {1, 1, 7}, {1, 1, 7}, {1, 1, 7}, {1, 1, 7}, {1, 1, 7}, {1, 1, 8}});
  t.end();
  const auto j = json_of(reduce_bytes({t.bytes()}));
  const auto ratio = [&](const char* name) { return row_of(j, "ratio", "figure", name); };
  CHECK(j["figures"]["ratio"].get<double>() == Approx(700.0 / 410));
  CHECK(j["figures"]["matrix_ratio"].get<double>() == Approx(1.75));
  CHECK(ratio("first layer's share of matrix work")["value"].get<double>() == Approx(0.25));
  // The kernel's name does not say which gradients fc1 has: one or both, and both of fc2.
  CHECK(ratio("expected of matrix work, least")["value"] == 1.75);
  CHECK(ratio("expected of matrix work, most")["value"] == 2.0);
  CHECK(ratio("matrix work only")["verdict"] == "undecided");
  REQUIRE(j["first_layers"].size() == 2);
  CHECK(j["first_layers"][0]["layer"] == "step/forward/fc1");
  CHECK(j["first_layers"][0]["first"] == true);
  CHECK(j["first_layers"][1]["forward_matrix_flop"] == 300);
}

TEST_CASE("inclusive range figures hold everything below, exclusive ones do not") {
  TraceBuilder t = started();
  t.kernel(1, "k", 11);
  t.path(1, 0, "a");
  t.path(2, 1, "b");
  t.path(3, 2, "c");
  t.samples(1, 1, {sass(1, 0, 0)});
  t.tally({{1, 1, 0, 0, 1}, {1, 10, 0, 0, 2}, {1, 100, 0, 0, 3}, {1, 1000, 0, 0, 0}});
  t.end();
  const auto j = json_of(reduce_bytes({t.bytes()}));
  REQUIRE(j["ranges"].size() == 3);
  CHECK(row_of(j, "ranges", "range", "a")["flop"] == 111);
  CHECK(row_of(j, "ranges_exclusive", "range", "a")["flop"] == 1);
  CHECK(row_of(j, "ranges", "range", "a/b")["flop"] == 110);
  CHECK(row_of(j, "ranges_exclusive", "range", "a/b/c")["launches"] == 100);
  for (const auto& row : j["ranges_exclusive"])
    if (row["range"].is_null()) CHECK(row["flop"] == 1000);
}
