// Which forward operator backward work belongs to, on ranges as PyTorch 2.15 emits them: every
// operator carries the number that the next node will get. Executed figures are samples made up
// here.
#include <algorithm>
#include <random>

#include "operator_scene.h"
#include "passes/sequence/sequence_pass.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

std::string engine(const std::string& node) { return kNode + node; }

// A scene of additions: each kernel does as many as told, so that FLOP tell whose launches they
// are.
struct Additions : Scene {
  using Scene::Scene;
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

bool is_forward(const Report& r, const std::string& name) {
  return std::ranges::any_of(r.operators.by_forward,
                             [&](const ForwardBackward& row) { return row.name == name; });
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

// PyTorch's own operators have nodes with names. A table lookup of FBGEMM's is no dispatched
// operator while gradients are on, so that it has no number; data that was prepared before shows
// the next.
TEST_CASE("join: a library's node is of no operator of PyTorch's") {
  Additions s;
  const auto zero = s.path({"prepare", "aten::zero_, sizes = [[16]]"});
  const auto lookup = s.path({"forward", "fbgemm::lookup_function, sizes = [[1000, 64], [16]]"});
  const auto mm = s.path({"forward", "aten::mm, sizes = [[4, 4], [4, 4]]"});
  const std::string node = "torch::autograd::CppNode<SplitLookupFunction>";
  s.launch(kMain, {s.add(zero, 1, 10), s.add(lookup, 2, UINT64_MAX), s.add(mm, 4, 11)});
  s.launch(kAutograd, {s.add(s.path({engine("MmBackward0"), "MmBackward0"}), 8, 11),
                       s.add(s.path({engine(node), node}), 100, 10)});
  const Report r = s.reduce();
  CHECK_FALSE(is_forward(r, "aten::zero_"));
  check_row(r, "aten::mm", 4, 8);
  CHECK(r.operators.other_operator == 1);
  CHECK(r.operators.joined == 1);
}

TEST_CASE("join: of what has no number nothing is known, where it may have had the node") {
  enum Behind { kNothing, kOfTheSame, kOfNext };
  const std::string node = "torch::autograd::CppNode<LibraryFunction>";
  for (const Behind behind : {kNothing, kOfTheSame, kOfNext}) {
    Additions s;
    const auto data = s.path({"prepare", "library::data, sizes = [[16]]"});
    const auto own = s.path({"forward", "library::function, sizes = [[16]]"});
    const auto cat = s.path({"forward", "aten::cat, sizes = [[8], [8], []]"});
    const auto without = s.path({"forward", "library::unnumbered, sizes = [[16]]"});
    std::vector<Launch> launches{s.add(data, 1, 10), s.add(own, 2, 10), s.add(cat, 4, 10)};
    if (behind != kNothing) launches.push_back(s.add(without, 8, UINT64_MAX));
    if (behind == kOfTheSame) launches.push_back(s.add(own, 16, 10));
    launches.push_back(s.add(cat, 32, 11));
    if (behind == kNothing) launches.push_back(s.add(without, 8, UINT64_MAX));  // of the next one
    s.launch(kMain, launches);
    s.launch(kAutograd, {s.add(s.path({engine(node), node}), 100, 10)});
    const Report r = s.reduce();
    INFO(behind);
    CHECK(r.operators.joined == (behind == kOfNext ? 0 : 1));
    CHECK(r.operators.other_operator == (behind == kOfNext ? 1 : 0));
    if (behind != kOfNext) check_row(r, "library::function", behind == kNothing ? 2 : 18, 100);
    CHECK_FALSE(is_forward(r, "library::data"));
  }
}

// An operation in place on a view has a node of that type.
TEST_CASE("join: what has no gradient has no node, whatever its number") {
  Additions s;
  const auto add = s.path({"forward", "aten::add_, sizes = [[4], [4], []]"});
  const std::string node = "torch::autograd::CopySlices";
  std::vector<Launch> launches{s.add(add, 1, 5)};
  for (const char* name : {"aten::eq", "aten::zeros_like", "aten::argmax", "aten::isfinite",
                           "aten::logical_and_", "aten::item"})
    launches.push_back(s.add(s.path({"forward", std::string(name) + ", sizes = [[4]]"}), 2, 5));
  s.launch(kMain, launches);
  s.launch(kAutograd, {s.add(s.path({engine(node), node}), 10, 5)});
  check_row(s.reduce(), "aten::add_", 1, 10);
}

// The recorder writes what threads launched on streams in batches, whenever these are full or old.
TEST_CASE("join: which launches were written together says nothing") {
  constexpr uint64_t kSteps = 6, kNumbers = 8;
  struct Placed {
    uint32_t thread, stream;
    Launch launch;
  };
  const auto report = [&](size_t every, unsigned order) {
    Additions s(true);
    s.trace().stream(2, 1);
    std::vector<Placed> program;
    std::map<std::pair<uint32_t, double>, uint32_t> kernels;
    const auto run = [&](uint32_t thread, uint32_t stream, const std::vector<std::string>& path,
                         double flop, uint64_t number) {
      const uint32_t id = s.path(path);
      const auto [kernel, fresh] = kernels.try_emplace({id, flop}, 0);
      if (fresh) kernel->second = s.kernel("k" + std::to_string(kernels.size()), 0, flop);
      program.push_back(
          {thread,
           stream,
           {.signature = kernel->second, .path = id, .sequence = number + 1, .call = true}});
    };
    const auto op = [](const std::string& name) { return name + ", sizes = [[4, 4], [4, 4]]"; };
    const auto node = [&](uint32_t stream, const std::string& name, double flop, uint64_t number) {
      run(kAutograd, stream, {engine(name), name}, flop, number);
    };
    for (uint64_t n = 0; n < kSteps * kNumbers; n += kNumbers) {
      run(kMain, 2, {"prepare", op("aten::cat")}, 1, n);
      run(kMain, 1, {"a", op("aten::mm")}, 2, n);
      run(kMain, 1, {"a", op("aten::cos")}, 3, UINT64_MAX);
      run(kMain, 1, {"a", op("aten::relu")}, 4, n + 1);
      run(kMain, 2, {"prepare", op("aten::relu")}, 5, n + 1);  // either may have the node
      run(kMain, 1, {"b", op("aten::mul")}, 6, n + 2);         // on both streams
      run(kMain, 2, {"b", op("aten::mul")}, 7, n + 2);
      run(kMain, 1, {"b", op("library::one")}, 8, n + 3);
      run(kMain, 2, {"b", op("library::other")}, 9, n + 3);
      run(kMain, 1, {"c", op("library::function")}, 10, n + 4);
      run(kMain, 2, {"c", op("aten::sin")}, 11, UINT64_MAX);
      run(kMain, 1, {"c", op("aten::exp")}, 12, n + 5);
      run(kMain, 1, {"c", op("library::function")}, 13, n + 6);
      run(kMain, 1, {"c", op("library::unnumbered")}, 16, UINT64_MAX);
      run(kMain, 1, {"c", op("aten::mm")}, 14, n + 7);
      node(1, "MmBackward0", 100, n + 7);
      node(2, "MmBackward0", 101, n + 7);
      node(1, "torch::autograd::CppNode<G>", 102, n + 6);
      node(1, "ExpBackward0", 103, n + 5);
      node(2, "torch::autograd::CppNode<F>", 104, n + 4);
      node(1, "torch::autograd::CppNode<O>", 105, n + 3);
      node(2, "MulBackward0", 106, n + 2);
      node(1, "ReluBackward0", 107, n + 1);
      node(2, "MmBackward0", 108, n);
      run(kMain, 1, {"Optimizer.step#SGD.step", op("aten::add_")}, 15, UINT64_MAX);
    }
    std::mt19937 random(order);
    std::map<std::pair<uint32_t, uint32_t>, std::vector<Launch>> pending;
    const auto flush = [&] {
      std::vector<std::pair<uint32_t, uint32_t>> lanes;
      for (const auto& [lane, launches] : pending) lanes.push_back(lane);
      std::ranges::shuffle(lanes, random);
      for (const auto& lane : lanes) s.trace().launches(pending[lane], lane.first, lane.second);
      pending.clear();
    };
    for (size_t i = 0; i < program.size(); ++i) {
      pending[{program[i].thread, program[i].stream}].push_back(program[i].launch);
      if ((i + 1) % every == 0) flush();
    }
    flush();
    return s.reduce();
  };
  const Report whole = report(SIZE_MAX, 0);
  CHECK(whole.operators.ambiguous == 2 * kSteps);  // aten::relu, library::one
  CHECK(by_forward(whole, "library::function").backward.flop == kSteps * 104);
  CHECK(by_forward(whole, "aten::mul").backward.flop == kSteps * 106);
  CHECK(whole.operators.other_operator == kSteps);  // the second library::function
  const auto tables = timeless_json_of(whole);
  for (const size_t every : {1, 2, 5, 13, 24, 100})
    for (const unsigned order : {1U, 2U, 3U}) {
      INFO(every << " " << order);
      CHECK(timeless_json_of(report(every, order)) == tables);
    }
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
