// What counts for the model, and how it is marked: each case is a few products of known sizes, so
// that what the model needed is worked out by hand.
#include <cmath>

#include "catch.h"
#include "operator_scene.h"
#include "sections/parts/cells.h"

using namespace flopinj::test;

namespace {

const std::string kMm = "aten::mm, sizes = [[64, 64], [64, 64]]";
constexpr double kProduct = 64.0 * 64 * 64;  // multiply-adds
constexpr auto kFlop = static_cast<u128>(2 * kProduct);

std::string mark_of(const Report& report) { return marks_text(report.operators.model.marks()); }

// A forward pass of one product, and one of its gradients.
struct Trained : Scene {
  uint32_t gemm = kernel("gemm", kProduct);
  explicit Trained(bool with_range = true) : Scene(true) {
    if (with_range) launch(kMain, {call(gemm, path({"forward", kMm}), 1)});
    launch(kAutograd, {call(gemm, path({kNode + "MmBackward0", "MmBackward0", kMm}), 1)});
  }
  void run(uint32_t kernel, const std::vector<std::string>& names, uint32_t thread = kMain) {
    launch(thread, {call(kernel, path(names))});
  }
};
constexpr u128 kTrained = 2 * kFlop;

}  // namespace

TEST_CASE("model: products that have a formula are all that counts, without a mark") {
  Trained s;
  const Report r = s.reduce();
  CHECK(model_flop(r) == kTrained);
  CHECK(mark_of(r).empty());
  CHECK(r.operators.model.coverage() == "all matrix FLOP covered");
}

TEST_CASE("model: matrix work without a formula makes a lower bound, of whatever kernel") {
  // An operator of a library, one of PyTorch's without sizes, a kernel outside of all operators.
  for (const char* name : {"mylib::attention, sizes = [[64, 64]]", "aten::mm", "a range"})
    for (const bool tensor : {true, false}) {
      INFO(name << ", tensor cores " << tensor);
      Trained s;
      s.run(s.kernel("attention", tensor ? 0 : 2 * kProduct, 0, tensor ? 4 * kProduct : 0),
            {"forward", name});
      const Report r = s.reduce();
      CHECK(model_flop(r) == kTrained);
      CHECK(mark_of(r) == ">=");
      CHECK(r.operators.model.coverage() == "50 % of matrix FLOP covered");
    }
}

TEST_CASE("model: elementwise work without a formula makes none") {
  Trained s;
  // Additions, and so few multiply-adds as normalisations and the like have.
  s.run(s.kernel("grid_sampler", kProduct / 100, 5 * kProduct),
        {"forward", "aten::grid_sampler_2d, sizes = [[1, 8, 8, 8], [1, 8, 8, 2]]"});
  const Report r = s.reduce();
  CHECK(model_flop(r) == kTrained);
  CHECK(mark_of(r).empty());
  // As many on tensor cores are of a product.
  Trained product;
  product.run(product.kernel("tiny", 0, 0, 2 * kProduct / 100), {"forward", "mylib::tiny"});
  CHECK(mark_of(product.reduce()) == ">=");
}

TEST_CASE("model: elementwise work counts as executed where that is less, without a mark") {
  const std::vector<std::string> add = {"forward", "aten::add, sizes = [[1024, 1024], []]"};
  constexpr u128 kFormula = 1024 * 1024;  // an addition for each element
  Trained less;
  less.run(less.kernel("add", 0, 0.5 * 1024 * 1024), add);
  const Report executed = less.reduce();
  CHECK(model_flop(executed) == kTrained + kFormula / 2);
  CHECK(mark_of(executed).empty());
  Trained more;
  more.run(more.kernel("add", 0, 3.0 * 1024 * 1024), add);
  CHECK(model_flop(more.reduce()) == kTrained + kFormula);
  // Without a count nobody knows whether it was less.
  Trained uncounted;
  uncounted.run(uncounted.unmeasured("add"), add);
  const Report r = uncounted.reduce();
  CHECK(model_flop(r) == kTrained + kFormula);
  CHECK(mark_of(r) == "~");
}

TEST_CASE("model: launches without a count and without a formula make a lower bound") {
  Trained s;
  s.run(s.unmeasured("secret"), {"forward", "mylib::secret"});
  CHECK(mark_of(s.reduce()) == ">=");
  // With a formula it is known what the model needs of them.
  Trained known;
  known.run(known.unmeasured("secret_gemm"), {"forward", kMm});
  const Report r = known.reduce();
  CHECK(model_flop(r) == kTrained + kFlop);
  CHECK(mark_of(r).empty());
}

TEST_CASE("model: phases that train nothing do not count") {
  const Report alone = Trained().reduce();
  for (const auto& names : std::vector<std::vector<std::string>>{
           {"Optimizer.step#Muon.step", kMm},
           {"evaluation", kMm},
           // No rule knows it: other. One of the weights' size may be a gradient that no node has.
           {"rollout", "aten::mm, sizes = [[8, 16], [16, 32]]"},
           {kNode + "CheckpointFunctionBackward", kMm},
           {"Optimizer.step#Muon.step", "mylib::newton_schulz"}}) {
    INFO(names.front());
    Trained s;
    s.run(s.kernel("more", 10 * kProduct), names,
          names.front().starts_with(kNode) ? kAutograd : kMain);
    s.run(s.unmeasured("secret"), {"Optimizer.step#Muon.step"});
    const Report r = s.reduce();
    CHECK(model_flop(r) == kTrained);
    CHECK(mark_of(r).empty());
    CHECK(r.total.flop > alone.total.flop);
  }
}

TEST_CASE("model: where nothing says forward, what has no phase counts") {
  Trained s(false);
  s.run(s.gemm, {kMm});
  s.run(s.gemm, {"Optimizer.step#Muon.step", kMm});
  const Report r = s.reduce();
  CHECK(model_flop(r) == kTrained);
  CHECK(mark_of(r).empty());
}

TEST_CASE("model: a graph's launches without a phase may be forward's") {
  Trained s;
  Launch launch = s.at(s.gemm, s.path({kMm}), 1);
  launch.graph = true;
  s.launch(kMain, {launch});
  const Report r = s.reduce();
  CHECK(model_flop(r) == kTrained);
  CHECK(mark_of(r) == ">=");
}

TEST_CASE("model: what is more than was executed counts as executed, about") {
  const std::string x = "[1, 512, 8, 64]";
  // Queries times keys, and the result times values.
  constexpr double kAttention = 2.0 * 8 * 512 * 512 * 64;
  for (const double left : {0.127, 0.25, 0.4, 0.8}) {
    INFO(left);
    Scene s;
    const std::string q = x + ", " + x + ", " + x;
    const uint32_t forward =
        s.path({"forward", "flash_attn::_flash_attn_forward, sizes = [" + q + ", []]"});
    const uint32_t backward = s.path({kNode + "FlashAttnFuncBackward", "FlashAttnFuncBackward",
                                      "flash_attn::_flash_attn_backward, sizes = [" + x + ", " + q +
                                          ", " + x + ", [1, 8, 512], " + q + "]"});
    const double tiles = std::round(left * kAttention);
    s.launch(kMain, {s.at(s.kernel("flash_fwd", 0, 0, 2 * tiles), forward, 1)});
    s.launch(kAutograd, {s.at(s.kernel("flash_bwd", 0, 0, 5 * tiles), backward, 1)});
    const Report r = s.reduce();
    CHECK(static_cast<double>(model_flop(r)) == Approx(3 * 2 * tiles));
    CHECK(mark_of(r) == "~");
  }
  // Launches without a count: how much a mask left out is not known.
  Scene s;
  s.launch(kMain, {s.at(s.unmeasured("flash_fwd"),
                        s.path({"forward", "flash_attn::_flash_attn_forward, sizes = [" + x + ", " +
                                               x + ", " + x + ", []]"}),
                        1)});
  const Report r = s.reduce();
  CHECK(model_flop(r) == static_cast<u128>(2 * kAttention));
  CHECK(mark_of(r) == "<=");
}

TEST_CASE("model: an algorithm that needs less than the formula does not make it less") {
  Scene s(true);
  const std::string conv =
      "aten::conv2d, sizes = [[1, 16, 10, 10], [16, 16, 3, 3], [], [], [], [], []], stride = [1, "
      "1],"
      " padding = [0, 0], dilation = [1, 1]";
  constexpr double kConv = 8.0 * 8 * 16 * 16 * 9;
  s.launch(kMain, {s.call(s.kernel("winograd_nonfused", kConv / 2.25), s.path({"forward", conv}))});
  const Report r = s.reduce();
  CHECK(model_flop(r) == static_cast<u128>(2 * kConv));
  CHECK(mark_of(r).empty());
}

TEST_CASE(
    "model: a product that executes its formula several times, unexplained, is a lower bound") {
  for (const double times : {2, 3, 4}) {
    INFO(times);
    Trained s;
    s.run(s.kernel("kernel", times * kProduct), {"forward", "layer", kMm});
    const Report r = s.reduce();
    CHECK(model_flop(r) == kTrained + kFlop);
    CHECK(mark_of(r) == ">=");
  }
  // Padding, or a tile of which no name says anything, is no other product.
  Trained padded;
  padded.run(padded.kernel("kernel", 1.25 * kProduct), {"forward", "layer", kMm});
  CHECK(mark_of(padded.reduce()).empty());
}

TEST_CASE("model: what is small beside the model makes no mark") {
  Trained s;
  const uint32_t large = s.kernel("large", 4096.0 * 4096 * 4096);
  s.run(large, {"forward", "aten::mm, sizes = [[4096, 4096], [4096, 4096]]"});
  s.run(s.kernel("half", kProduct / 2), {"forward", "layer", kMm});
  CHECK(mark_of(s.reduce()).empty());
}
