// Which forward operator backward work belongs to, on ranges as PyTorch 2.15 emits them: every
// operator carries the number that the next node will get. Executed figures are samples made up
// here.
#include "operator_scene.h"
#include "passes/sequence/sequence_pass.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

std::string engine(const std::string& node) { return kNode + node; }

// A scene of additions: each kernel does as many as told, so that FLOP tell whose launches they
// are.
struct Additions : Scene {
  Launch add(uint32_t path, double flop, uint64_t sequence) {
    return at(kernel("k" + std::to_string(++made), 0, flop), path, sequence);
  }
  int made = 0;
};

void check_row(const Report& r, const std::string& name, double forward, double backward) {
  INFO(name);
  const ForwardBackward& row = by_forward(r, name);
  CHECK(row.forward.flop == static_cast<u128>(forward));
  CHECK(row.backward.flop == static_cast<u128>(backward));
}

const std::string kNormSizes = "sizes = [[4, 8, 16, 16], [8], [8], [8], [8], [], [], [], []]";

}  // namespace

// nn.BatchNorm2d in training: num_batches_tracked.add_(1) makes no node and has the number of the
// next.
TEST_CASE("join: a counter of batches does not take the place of the batch norm behind it") {
  Additions s;
  const auto counter = s.path({"forward", "aten::add_, sizes = [[], [], []]"});
  const auto norm = s.path(
      {"forward", "aten::batch_norm, " + kNormSizes, "aten::_batch_norm_impl_index, " + kNormSizes,
       "aten::cudnn_batch_norm, sizes = [[4, 8, 16, 16], [8], [8], [8], [8], [], [], []]"});
  const auto gradient = s.path(
      {engine("CudnnBatchNormBackward0"), "CudnnBatchNormBackward0, sizes = [[4, 8, 16, 16]]",
       "aten::cudnn_batch_norm_backward, sizes = [[4, 8, 16, 16], [4, 8, 16, 16], [8], [8], "
       "[8], [8], [8], [], [0]]"});
  for (uint64_t step = 0; step < 3; ++step) {
    s.launch(kMain, {s.add(counter, 1, step), s.add(norm, 100, step)});
    s.launch(kAutograd, {s.add(gradient, 300, step)});
  }
  const Report r = s.reduce();
  CHECK(r.operators.joined == 3);
  CHECK(r.operators.other_operator == 0);
  check_row(r, "aten::batch_norm", 300, 900);
  // What has no node is still forward by its range.
  check_row(r, "aten::add_", 3, 0);
  // Its gradient's name tells that the batch's own statistics were taken: 3 additions and 2
  // multiply-adds for each of 4 x 8 x 16 x 16 elements, in 3 calls.
  CHECK(type_of(r, "aten::batch_norm", "forward").formula_flop == u128{8192 * 7 * 3});
}

// (images - mean) / std, where nothing needs a gradient: both have the number of the convolution's
// node.
TEST_CASE("join: data that needs no gradient leaves the first layer its node") {
  Additions s;
  const auto sub = s.path({"aten::sub, sizes = [[4, 3, 8, 8], [3, 1, 1], []]"});
  const auto div = s.path({"aten::div, sizes = [[4, 3, 8, 8], [3, 1, 1]]"});
  const std::string sizes = "[4, 3, 8, 8], [8, 3, 3, 3], [], [], [], []";
  const auto convolution = s.path({"aten::conv2d, sizes = [" + sizes + ", []]",
                                   "aten::convolution, sizes = [" + sizes + ", [], [], []]"});
  const auto gradient = s.path(
      {engine("ConvolutionBackward0"), "ConvolutionBackward0, sizes = [[4, 8, 8, 8]]",
       "aten::convolution_backward, sizes = [[4, 8, 8, 8], [4, 3, 8, 8], [8, 3, 3, 3], [], []]"});
  constexpr double kProducts = 4 * 8 * 64 * 27;
  const uint32_t product = s.kernel("implicit_gemm", kProducts);
  s.launch(kMain, {s.add(sub, 768, 0), s.add(div, 768, 0), s.at(product, convolution, 0)});
  s.launch(kAutograd, {s.at(s.kernel("wgrad", kProducts), gradient, 0)});
  const Report r = s.reduce();
  CHECK(r.operators.joined == 1);
  check_pair(by_forward(r, "aten::conv2d"), 2 * kProducts, 2 * kProducts, 1, 1);
  CHECK(type_of(r, "aten::conv2d", "forward").ratio == 1.0);
}

// In aten::conv2d autocast casts bias and weight, each with a node of its own, and the input, with
// none.
TEST_CASE("join: autocast's casts are their own operators' nodes") {
  Additions s;
  const std::string outer =
      "aten::conv2d, sizes = [[4, 3, 8, 8], [8, 3, 3, 3], [8], [], [], [], []]";
  const auto cast = [&](const std::string& sizes) {
    return s.path({outer, "aten::to, sizes = [" + sizes + ", [], [], [], []]",
                   "aten::_to_copy, sizes = [" + sizes + ", [], [], [], [], [], []]",
                   "aten::copy_, sizes = [" + sizes + ", " + sizes + ", []]"});
  };
  const auto cast_back = [&](const std::string& sizes) {
    return s.path({engine("ToCopyBackward0"), "ToCopyBackward0, sizes = [" + sizes + "]",
                   "aten::to, sizes = [" + sizes + ", [], [], [], []]",
                   "aten::_to_copy, sizes = [" + sizes + ", [], [], [], [], [], []]",
                   "aten::copy_, sizes = [" + sizes + ", " + sizes + ", []]"});
  };
  const auto convolution =
      s.path({outer, outer,
              "aten::convolution, sizes = [[4, 3, 8, 8], [8, 3, 3, 3], [8], [], [], [], [], "
              "[], []]"});
  const auto gradient = s.path(
      {engine("ConvolutionBackward0"), "ConvolutionBackward0, sizes = [[4, 8, 8, 8]]",
       "aten::convolution_backward, sizes = [[4, 8, 8, 8], [4, 3, 8, 8], [8, 3, 3, 3], [], []]"});
  constexpr double kProducts = 4 * 8 * 64 * 27;
  const uint32_t product = s.kernel("implicit_gemm", kProducts);
  const uint32_t copy = s.kernel("copy", 0);
  s.launch(kMain, {s.at(copy, cast("[8]"), 0), s.at(copy, cast("[8, 3, 3, 3]"), 1),
                   s.at(copy, cast("[4, 3, 8, 8]"), 2), s.at(product, convolution, 2)});
  s.launch(kAutograd, {s.at(s.kernel("wgrad", kProducts), gradient, 2),
                       s.at(copy, cast_back("[8, 3, 3, 3]"), 1), s.at(copy, cast_back("[8]"), 0)});
  const Report r = s.reduce();
  CHECK(r.operators.joined == 3);
  check_pair(by_forward(r, "aten::conv2d"), 2 * kProducts, 2 * kProducts, 1, 1);
}

// PyTorch's own kind of name without Backward: its type in C++. It says nothing, and the last
// operator with the number is the one that took it.
TEST_CASE("join: where the node's name does not say, the last operator has the number") {
  Additions s;
  const auto before = s.path({"forward", "aten::mul, sizes = [[4, 4], []]"});
  const auto align = s.path({"forward", "torchvision::roi_align, sizes = [[1, 8, 4, 4], [2, 5]]"});
  const std::string node = "torch::autograd::CppNode<vision::ops::ROIAlignFunction>";
  const auto gradient = s.path({engine(node), node + ", sizes = [[2, 8, 2, 2]]",
                                "torchvision::_roi_align_backward, sizes = [[2, 8, 2, 2]]"});
  s.launch(kAutograd, {s.add(gradient, 30, 5)});
  s.launch(kMain, {s.add(before, 1, 5), s.add(align, 10, 5)});
  const Report r = s.reduce();
  check_row(r, "torchvision::roi_align", 10, 30);
  check_row(r, "aten::mul", 1, 0);
}

TEST_CASE("join: a class in Python has a range and a node of its name") {
  Additions s;
  const auto forward =
      s.path({"forward", "MyFunction, sizes = [[4, 4]]", "aten::mul, sizes = [[4, 4]]"});
  const auto plain = s.path({"forward", "Unshaped"});  // without record_shapes
  const auto back = [&](const std::string& node) { return s.path({engine(node), node}); };
  s.launch(kMain, {s.add(forward, 1, 5), s.add(plain, 2, 6)});
  s.launch(kAutograd,
           {s.add(back("UnshapedBackward"), 20, 6), s.add(back("MyFunctionBackward"), 10, 5)});
  CHECK(s.reduce().operators.joined == 2);
}

TEST_CASE("join: names are compared whole") {
  Additions s;
  const auto addmm = s.path({"forward", "aten::addmm, sizes = [[4], [2, 3], [3, 4], [], []]"});
  s.launch(kMain, {s.add(addmm, 1, 5)});
  s.launch(kAutograd, {s.add(s.path({engine("MmBackward0"), "MmBackward0"}), 10, 5)});
  const Report r = s.reduce();
  CHECK(r.operators.joined == 0);
  CHECK(r.operators.other_operator == 1);
}

// PyTorch names the nodes of nll_loss_forward and copy_ so.
TEST_CASE("join: functions whose nodes leave out a word or have one of their own") {
  Additions s;
  const auto loss =
      s.path({"forward", "aten::nll_loss_forward, sizes = [[4, 10], [4], [], [], []]"});
  const auto copy = s.path({"forward", "aten::copy_, sizes = [[4], [4], []]"});
  const std::string copied = "torch::autograd::CopyBackwards";
  s.launch(kMain, {s.add(loss, 1, 5), s.add(copy, 2, 6)});
  s.launch(kAutograd, {s.add(s.path({engine(copied), copied}), 20, 6),
                       s.add(s.path({engine("NllLossBackward0"), "NllLossBackward0"}), 10, 5)});
  CHECK(s.reduce().operators.joined == 2);
}

// The engine sums a bias gradient beside the node: the recorder gives it the node's number.
TEST_CASE("join: the sum of a bias gradient beside the node is the linear layer's") {
  Additions s;
  const auto linear = s.path({"forward", "aten::linear, sizes = [[4, 16], [10, 16], [10]]",
                              "aten::addmm, sizes = [[10], [4, 16], [16, 10], [], []]"});
  const auto node = s.path({engine("AddmmBackward0"), "AddmmBackward0, sizes = [[4, 10]]",
                            "aten::mm, sizes = [[10, 4], [4, 16]]"});
  const auto beside =
      s.path({engine("AddmmBackward0"), "aten::sum, sizes = [[4, 10], [], [], []]"});
  s.launch(kMain, {s.add(linear, 640, 10)});
  s.launch(kAutograd, {s.add(node, 640, 10), s.add(beside, 40, 10)});
  const Report r = s.reduce();
  CHECK(r.operators.by_forward.size() == 1);
  check_row(r, "aten::linear", 640, 680);
}

// torch.utils.checkpoint(use_reentrant=True): forward runs without gradients inside
// CheckpointFunction, and again, with numbers, inside its node, which then evaluates the new nodes.
// On a GPU both are on autograd's thread, whose numbers begin at 0 and meet the main thread's.
TEST_CASE("join: a reentrant checkpoint's nodes belong to what ran again inside of it") {
  Additions s;
  const std::string x = "aten::linear, sizes = [[4, 16], [10, 16], [10]]",
                    addmm = "aten::addmm, sizes = [[10], [4, 16], [16, 10], [], []]";
  const std::vector<std::string> outer = {engine("CheckpointFunctionBackward"),
                                          "CheckpointFunctionBackward, sizes = [[4, 10]]"};
  const auto inside = [&](std::vector<std::string> names) {
    names.insert(names.begin(), outer.begin(), outer.end());
    return s.path(names);
  };
  const auto other = s.path({"forward", "head", x, addmm});
  const auto first = s.path({"forward", "CheckpointFunction, sizes = [[4, 16]]", x, addmm});
  const auto again = inside({x, addmm});
  const auto gradient = inside({engine("AddmmBackward0"), "AddmmBackward0, sizes = [[4, 10]]",
                                "aten::mm, sizes = [[4, 10], [10, 16]]"});
  const auto leaf = inside({engine("torch::autograd::AccumulateGrad"),
                            "torch::autograd::AccumulateGrad, sizes = [[10]]",
                            "aten::add_, sizes = [[10], [10], []]"});
  const auto own = s.path({engine("AddmmBackward0"), "AddmmBackward0, sizes = [[4, 10]]",
                           "aten::mm, sizes = [[4, 10], [10, 16]]"});
  for (uint64_t step = 0; step < 2; ++step) {
    const uint64_t main = 10 * step, autograd = 10 * step;  // numbers meet
    s.launch(kMain, {s.add(other, 1, main), s.add(first, 2, main + 1)});
    s.launch(kAutograd, {s.add(own, 10, main), s.add(again, 4, autograd),
                         s.add(gradient, 100, autograd), s.add(leaf, 1000, main + 1)});
  }
  const Report r = s.reduce();
  CHECK(r.operators.joined == 4);
  CHECK(r.operators.other_operator + r.operators.without_forward + r.operators.ambiguous == 0);
  const ForwardBackward& linear = by_forward(r, "aten::linear");
  CHECK(linear.forward.flop == u128{2 * 3});
  CHECK(linear.recompute.flop == u128{2 * 4});
  CHECK(linear.backward.flop == u128{2 * 110});
  // Only the layer's own gradient is in its row.
  for (const auto& layer : r.operators.layers)
    if (layer.name == "head") CHECK(layer.backward.flop == u128{2 * 10});
}

// torch.autograd.grad(create_graph=True): what a node runs has numbers of its own, of autograd's
// thread, and nodes. Those are no operators that forward called.
TEST_CASE("join: what runs inside of a node is not taken for an operator of forward") {
  Additions s;
  const auto inner =
      s.path({engine("MulBackward0"), "MulBackward0, sizes = [[4]]", "aten::tanh, sizes = [[4]]"});
  const auto outer = s.path({engine("TanhBackward0"), "TanhBackward0, sizes = [[4]]",
                             "aten::tanh_backward, sizes = [[4], [4]]"});
  s.launch(kAutograd, {s.add(inner, 4, 17), s.add(outer, 8, 17)});
  const Report r = s.reduce();
  CHECK(r.operators.joined == 0);
  CHECK(r.operators.without_forward == 2);
  check_row(r, "TanhBackward", 0, 8);
}

TEST_CASE(
    "join: threads may share a number where names tell them apart, and not where they do not") {
  const auto report = [](const std::string& other) {
    Additions s;
    s.trace().thread(3, "worker");
    const auto mul = s.path({"forward", "aten::mul, sizes = [[4], [4]]"});
    s.launch(kMain, {s.add(mul, 1, 5)});
    s.launch(3, {s.add(s.path({"forward", other + ", sizes = [[8], [8]]"}), 2, 5)});
    s.launch(kAutograd, {s.add(s.path({engine("MulBackward0"), "MulBackward0"}), 10, 5)});
    return s.reduce();
  };
  CHECK(report("aten::div").operators.joined == 1);
  CHECK(report("aten::mul").operators.ambiguous == 1);
}

// Preprocessing on the GPU may run any number of operators with one number.
TEST_CASE("join: of many operators with one number the last ones are kept") {
  const auto report = [](int behind) {
    Additions s;
    const auto node = s.path({engine("ExpBackward0"), "ExpBackward0"});
    std::vector<Launch> launches = {s.add(s.path({"forward", "aten::exp, sizes = [[4]]"}), 1, 5)};
    for (int i = 0; i < behind; ++i)
      launches.push_back(
          s.add(s.path({"forward", "aten::f" + std::to_string(i) + ", sizes = [[4]]"}), 1, 5));
    s.launch(kMain, launches);
    s.launch(kAutograd, {s.add(node, 10, 5)});
    return s.reduce();
  };
  CHECK(report(SequencePass::kMaxOperators - 1).operators.joined == 1);
  CHECK(report(SequencePass::kMaxOperators).operators.out_of_window == 1);
}

// torch.compile: CompiledFunction has the number, and no operator inside of it has one.
TEST_CASE("join: a compiled function's node belongs to all that ran inside of it") {
  Additions s;
  const std::string compiled = "CompiledFunction, sizes = [[4, 16], [16, 16]]",
                    mm = "aten::mm, sizes = [[4, 16], [16, 16]]";
  const auto inside = [&](const std::string& name) { return s.path({"forward", compiled, name}); };
  const auto back = [&](const std::string& name) {
    return s.path({engine("CompiledFunctionBackward"), "CompiledFunctionBackward", name});
  };
  s.launch(kMain, {s.add(inside(mm), 1, 5), s.add(inside("aten::relu, sizes = [[4, 16]]"), 2, 5)});
  s.launch(kAutograd, {s.add(back(mm), 10, 5), s.add(back("aten::mul, sizes = [[4, 16]]"), 20, 5)});
  const Report r = s.reduce();
  CHECK(r.operators.joined == 2);
  check_row(r, "aten::mm", 1, 0);
  check_row(r, "aten::relu", 2, 0);
  check_row(r, "CompiledFunctionBackward", 0, 30);
}

TEST_CASE("join: a function with one operator inside gives it its node's work") {
  Additions s;
  const std::string mm = "aten::mm, sizes = [[4, 16], [16, 16]]";
  const auto forward = s.path({"forward", "OwnLinear, sizes = [[4, 16]]", mm});
  const auto back = s.path({engine("OwnLinearBackward"), "OwnLinearBackward", mm});
  s.launch(kMain, {s.add(forward, 1, 5)});
  s.launch(kAutograd, {s.add(back, 10, 5)});
  check_row(s.reduce(), "aten::mm", 1, 10);
}
