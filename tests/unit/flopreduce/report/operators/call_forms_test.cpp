// Formulas where one range is not one kind of call, and what operators cover: on ranges as PyTorch
// 2.15 emits them. Executed figures are samples made up here; expected ones are worked out by hand.
#include "operator_scene.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

std::string engine(const std::string& node) { return kNode + node; }

// Ranges of aten::conv2d and of its gradient; `inner`: the input that aten::convolution gets.
uint32_t conv(Scene& s, const std::string& input, const std::string& inner,
              const std::string& weight, const std::vector<std::string>& around = {}) {
  std::vector<std::string> names = around;
  names.push_back("aten::conv2d, sizes = [" + input + ", " + weight + ", [], [], [], [], []]");
  names.push_back("aten::convolution, sizes = [" + inner + ", " + weight +
                  ", [], [], [], [], [], [], []]");
  names.push_back("aten::_convolution, sizes = [" + inner + ", " + weight +
                  ", [], [], [], [], [], [], [], [], [], [], []]");
  names.push_back("aten::cudnn_convolution, sizes = [" + inner + ", " + weight +
                  ", [], [], [], [], [], [], []]");
  return s.path(names);
}
uint32_t conv_back(Scene& s, const std::string& result, const std::string& input,
                   const std::string& weight) {
  return s.path({engine("ConvolutionBackward0"), "ConvolutionBackward0, sizes = [" + result + "]",
                 "aten::convolution_backward, sizes = [" + result + ", " + input + ", " + weight +
                     ", [], [], [], [], [], [], [], []]"});
}

const UtilizationMethod& method_of(const Report& r, const std::string& name) {
  for (const auto& m : r.utilization.methods)
    if (m.name == name) return m;
  FAIL("no method " << name);
  return r.utilization.methods[0];
}

// Two layers alike but for their stride, 1 and 2: 8 x 8 and 4 x 4 positions of 4 filters of 3 x 3 x
// 4.
constexpr double kWide = 2 * 4 * 64 * 36, kNarrow = 2 * 4 * 16 * 36;
struct Twins {
  explicit Twins(Scene& s)
      : forward(conv(s, "[2, 4, 8, 8]", "[2, 4, 8, 8]", "[4, 4, 3, 3]")),
        wide_back(conv_back(s, "[2, 4, 8, 8]", "[2, 4, 8, 8]", "[4, 4, 3, 3]")),
        narrow_back(conv_back(s, "[2, 4, 4, 4]", "[2, 4, 8, 8]", "[4, 4, 3, 3]")),
        wide(s.kernel("implicit_gemm_a", kWide)),
        narrow(s.kernel("implicit_gemm_b", kNarrow)) {}
  void run_forward(Scene& s, uint64_t sequence) const {
    s.launch(kMain, {s.at(wide, forward, sequence), s.at(narrow, forward, sequence + 1),
                     s.at(wide, forward, sequence + 2)});
  }
  void run_backward(Scene& s, uint64_t sequence) const {
    s.launch(kAutograd, {s.at(wide, wide_back, sequence + 2), s.at(wide, wide_back, sequence + 2),
                         s.at(narrow, narrow_back, sequence + 1),
                         s.at(narrow, narrow_back, sequence + 1), s.at(wide, wide_back, sequence)});
  }
  uint32_t forward, wide_back, narrow_back, wide, narrow;
};

}  // namespace

TEST_CASE("forms: one range without sizes, and two of other sizes inside of it") {
  Scene s(true);
  // As where a trace has more sizes than are kept: of the innermost ranges only.
  const auto conv = [&](const std::string& input, const std::string& weight) {
    return s.path({"aten::conv2d", "aten::convolution",
                   "aten::_convolution, sizes = [" + input + ", " + weight +
                       ", [], [], [], [], [], [], [], [], [], [], []]"});
  };
  const uint32_t wide = conv("[2, 4, 8, 8]", "[4, 4, 3, 3]");
  const uint32_t narrow = conv("[2, 2, 8, 8]", "[4, 2, 3, 3]");
  const uint32_t back =
      s.path({engine("ConvolutionBackward0"), "ConvolutionBackward0, sizes = [[2, 4, 8, 8]]",
              "aten::convolution_backward"});
  const double each = 2.0 * 4 * 64 * 9;  // multiply-adds for each channel of the input
  const uint32_t k_wide = s.kernel("conv_wide", 4 * each),
                 k_narrow = s.kernel("conv_narrow", 2 * each);
  s.launch(kMain, {s.call(k_wide, wide, 0), s.call(k_narrow, narrow, 1)});
  s.launch(kAutograd, {s.call(k_narrow, back, 1), s.call(k_wide, back, 0)});
  const Report r = s.reduce();
  CHECK(type_of(r, "aten::conv2d", "forward").formula_flop == static_cast<u128>(2 * 6 * each));
}

TEST_CASE("formulas: layers alike but for their stride, by the sizes of their results") {
  Scene s;
  const Twins twins(s);
  for (uint64_t step = 0; step < 3; ++step) {
    twins.run_forward(s, 10 * step);
    twins.run_backward(s, 10 * step);
  }
  const Report r = s.reduce();
  const auto& forward = type_of(r, "aten::conv2d", "forward");
  CHECK(forward.calls == 9);
  CHECK(forward.calls_counted);
  CHECK(forward.formula_flop == static_cast<u128>(3 * 2 * (2 * kWide + kNarrow)));
  CHECK(forward.ratio == 1.0);
  CHECK(forward.cause.empty());
}

TEST_CASE("formulas: calls without backward are dealt out like the others") {
  Scene s;
  const Twins twins(s);
  twins.run_forward(s, 0);
  twins.run_forward(s, 10);
  twins.run_backward(s, 0);
  const Report r = s.reduce();
  // Nothing tells whether the second pass, which has no gradients, is training.
  for (const char* phase : {"forward", "other"}) {
    const auto& type = type_of(r, "aten::conv2d", phase);
    CHECK(type.calls == 3);
    CHECK(type.formula_flop == static_cast<u128>(2 * (2 * kWide + kNarrow)));
  }
}

// A teacher's layer: a result as large as the student's would have the same formula.
TEST_CASE("formulas: a call without backward may be another layer, where it does another work") {
  for (const bool alike : {true, false}) {
    Scene s(true);
    const Twins twins(s);
    const uint32_t forward = conv(s, "[2, 4, 8, 8]", "[2, 4, 8, 8]", "[4, 4, 3, 3]", {"forward"});
    s.launch(kMain,
             {s.call(twins.wide, forward, 0), s.call(alike ? twins.wide : twins.narrow, forward)});
    s.launch(kAutograd, {s.call(twins.wide, twins.wide_back, 0)});
    const OperatorReport type = type_of(s.reduce(), "aten::conv2d", "forward");
    CHECK(type.calls == 2);
    CHECK(type.formula_flop.has_value() == alike);
    if (alike) CHECK(type.formula_flop == static_cast<u128>(2 * 2 * kWide));
  }
}

// Checkpointing stops in the second layer, once for each pass over a graph that is kept.
TEST_CASE("formulas: of twins that run again it is unknown which did, whatever their number") {
  Scene s(true);
  const Twins twins(s);
  const std::string again =
      "aten::conv2d, seq = #, sizes = [[2, 4, 8, 8], [4, 4, 3, 3], [], [], [], [], []]";
  const uint32_t inside = s.path(
      {engine("ConvolutionBackward0"), "ConvolutionBackward0, sizes = [[2, 4, 4, 4]]", again});
  s.launch(kMain, {s.call(twins.wide, twins.forward, 0), s.call(twins.narrow, twins.forward, 1)});
  for (uint64_t pass = 0; pass < 2; ++pass)
    s.launch(kAutograd,
             {s.call(twins.wide, inside, 2 * pass), s.call(twins.narrow, twins.narrow_back, 1),
              s.call(twins.wide, twins.wide_back, 0)});
  const OperatorReport type = type_of(s.reduce(), "aten::conv2d", "recompute");
  CHECK(type.calls == 2);
  CHECK_FALSE(type.formula_flop.has_value());
}

// torch/_functorch: the batching rule of aten::mm calls aten::matmul with all samples.
TEST_CASE("formulas: an operator under vmap has the sizes of one sample, and does all") {
  Scene s;
  const std::string mm = "aten::mm, sizes = [[8, 12], [12, 16]]";
  const uint32_t forward = s.path({"aten::linear, sizes = [[8, 12], [16, 12], []]", mm,
                                   "aten::matmul, sizes = [[3, 8, 12], [12, 16]]",
                                   "aten::mm, sizes = [[24, 12], [12, 16]]"});
  const uint32_t kernel = s.kernel("gemm", 24 * 12 * 16);
  s.launch(kMain, {s.at(kernel, forward, 0), s.at(kernel, forward, 1)});
  const OperatorReport type = type_of(s.reduce(), "aten::linear", "other");
  CHECK(type.formula_flop == u128{2 * 2 * 24 * 12 * 16});
  CHECK(type.cause.empty());
}

// autocast_mode.h: aten::conv2d casts, and calls itself.
TEST_CASE("formulas: autocast's casts are no convolution's result") {
  Scene s;
  const std::string outer =
      "aten::conv2d, sizes = [[2, 4, 8, 8], [4, 4, 3, 3], [], [], [], [], []]";
  const uint32_t cast = s.path({outer, "aten::to, sizes = [[4, 4, 3, 3], [], [], [], []]",
                                "aten::_to_copy, sizes = [[4, 4, 3, 3], [], [], [], [], [], []]",
                                "aten::copy_, sizes = [[4, 4, 3, 3], [4, 4, 3, 3], []]"});
  const uint32_t cast_back =
      s.path({engine("ToCopyBackward0"), "ToCopyBackward0, sizes = [[4, 4, 3, 3]]",
              "aten::to, sizes = [[4, 4, 3, 3], [], [], [], []]",
              "aten::_to_copy, sizes = [[4, 4, 3, 3], [], [], [], [], [], []]",
              "aten::copy_, sizes = [[4, 4, 3, 3], [4, 4, 3, 3], []]"});
  const uint32_t forward = conv(s, "[2, 4, 8, 8]", "[2, 4, 8, 8]", "[4, 4, 3, 3]", {outer});
  const uint32_t backward = conv_back(s, "[2, 4, 8, 8]", "[2, 4, 8, 8]", "[4, 4, 3, 3]");
  const uint32_t copy = s.kernel("copy", 0), product = s.kernel("implicit_gemm", kWide);
  s.launch(kMain, {s.at(copy, cast, 0), s.at(product, forward, 1)});
  s.launch(kAutograd, {s.at(product, backward, 1), s.at(copy, cast_back, 0)});
  CHECK(type_of(s.reduce(), "aten::conv2d", "forward").ratio == 1.0);
}

// padding='same' with an even kernel pads in an operator of its own, whose gradient is not the
// result's.
TEST_CASE("formulas: a padded input's gradient is no convolution's result") {
  Scene s;
  const std::string outer =
                        "aten::conv2d, sizes = [[2, 3, 8, 8], [4, 3, 2, 2], [], [], [], [], []]",
                    mode =
                        "aten::_convolution_mode, sizes = [[2, 3, 8, 8], [4, 3, 2, 2], [], [], [], "
                        "[], []]";
  const uint32_t pad = s.path({outer, mode, "aten::constant_pad_nd, sizes = [[2, 3, 8, 8], [], []]",
                               "aten::copy_, sizes = [[2, 3, 8, 8], [2, 3, 8, 8], []]"});
  const uint32_t pad_back =
      s.path({engine("ConstantPadNdBackward0"), "ConstantPadNdBackward0, sizes = [[2, 3, 9, 9]]",
              "aten::constant_pad_nd, sizes = [[2, 3, 9, 9], [], []]",
              "aten::clone, sizes = [[2, 3, 8, 8], []]"});
  const uint32_t forward = s.path(
      {outer, mode,
       "aten::convolution, sizes = [[2, 3, 9, 9], [4, 3, 2, 2], [], [], [], [], [], [], []]"});
  const uint32_t backward = conv_back(s, "[2, 4, 8, 8]", "[2, 3, 9, 9]", "[4, 3, 2, 2]");
  constexpr double kProducts = 2 * 4 * 64 * 12;
  const uint32_t copy = s.kernel("copy", 0), product = s.kernel("implicit_gemm", kProducts);
  s.launch(kMain, {s.at(copy, pad, 0), s.at(product, forward, 1)});
  s.launch(kAutograd, {s.at(s.kernel("dgrad", kProducts), backward, 1),
                       s.at(s.kernel("wgrad", kProducts), backward, 1), s.at(copy, pad_back, 0)});
  const Report r = s.reduce();
  CHECK(type_of(r, "aten::conv2d", "forward").ratio == 1.0);
  check_pair(by_forward(r, "aten::conv2d"), 2 * kProducts, 4 * kProducts, 2, 2);
}

// aten::conv2d of an image without a batch dimension adds one: its node's gradient has it.
TEST_CASE("formulas: an image without a batch dimension is the convolution's inside") {
  Scene s;
  const uint32_t forward = conv(s, "[3, 8, 8]", "[1, 3, 8, 8]", "[4, 3, 3, 3]");
  const uint32_t backward = conv_back(s, "[1, 4, 4, 4]", "[1, 3, 8, 8]", "[4, 3, 3, 3]");
  constexpr double kProducts = 4 * 16 * 27;  // in steps of 2
  const uint32_t product = s.kernel("implicit_gemm", kProducts);
  s.launch(kMain, {s.at(product, forward, 4)});
  s.launch(kAutograd, {s.at(product, backward, 4)});
  CHECK(type_of(s.reduce(), "aten::conv2d", "forward").ratio == 1.0);
}

TEST_CASE("coverage: one place with a formula does not cover another of its function") {
  Scene s;
  const Twins known(s);
  // No backward work tells its result.
  const uint32_t unknown = conv(s, "[2, 4, 8, 8]", "[2, 4, 8, 8]", "[4, 4, 5, 5]", {"forward"});
  const uint32_t trained = conv(s, "[2, 4, 8, 8]", "[2, 4, 8, 8]", "[4, 4, 3, 3]", {"forward"});
  const uint32_t product = s.kernel("implicit_gemm_c", 3 * kWide);
  s.launch(kMain, {s.at(known.wide, trained, 0), s.at(product, unknown, 1)});
  s.launch(kAutograd, {s.at(known.wide, known.wide_back, 0)});
  const Report r = s.reduce();
  // 1 of forward's 4 parts, 2 of all 5; the gradient by weights is one part.
  CHECK(method_of(r, "formula").flop_basis ==
        "by operators' formulas, 40 % of matrix FLOP covered");
  CHECK(method_of(r, "formula").flop.number() == 2 * 2 * kWide);
  CHECK(method_of(r, "theory").flop_basis ==
        "3 x forward as executed (25 % of matrix FLOP covered by formulas), forward and backward "
        "time");
  CHECK(method_of(r, "theory").flop.number() == 3 * 2 * 4 * kWide);
}

TEST_CASE("coverage: all is all, and what nobody measured is not covered") {
  const auto report = [](bool more) {
    Scene s;
    const Twins twins(s);
    const uint32_t trained = conv(s, "[2, 4, 8, 8]", "[2, 4, 8, 8]", "[4, 4, 3, 3]", {"forward"});
    s.launch(kMain, {s.at(twins.wide, trained, 0)});
    s.launch(kAutograd, {s.at(twins.wide, twins.wide_back, 0)});
    if (more) s.launch(kMain, {s.at(s.unmeasured("secret"), s.path({"forward", "mine"}), 1)});
    return s.reduce();
  };
  const Report all = report(false), part = report(true);
  CHECK(method_of(all, "formula").flop_basis == "by operators' formulas, all matrix FLOP covered");
  CHECK(method_of(all, "theory").flop_basis == "3 x forward by formula, forward and backward time");
  CHECK(method_of(all, "theory").flop.number() == 3 * 2 * kWide);
  CHECK(method_of(part, "formula").flop_basis ==
        "by operators' formulas, 99 % of matrix FLOP covered");
  CHECK(method_of(part, "theory").flop_basis.find("as executed (99 % of matrix FLOP covered") !=
        std::string::npos);
}

// torch.complex64 is in no name: sizes are those of the real product.
TEST_CASE("causes: complex numbers are told by the kernel, and by no ratio alone") {
  const auto cause = [](const char* kernel) {
    Scene s;
    const uint32_t path = s.path({"forward", "aten::mm, sizes = [[100, 100], [100, 100]]"});
    s.launch(kMain, {s.at(s.kernel(kernel, 4e6), path, 3)});
    return type_of(s.reduce(), "aten::mm", "forward").cause;
  };
  CHECK(cause("ampere_cgemm_64x64_nn") == "complex numbers");
  CHECK(cause("gemm_kernel") == "unexplained");  // a batch of four under vmap looks the same
}

// An addition of complex numbers is two: with a bias the whole is not four times the formula.
TEST_CASE("causes: a complex product with a bias is told by its multiply-adds") {
  Scene s;
  const uint32_t path = s.path({"forward", "aten::addmm, sizes = [[10], [20, 30], [30, 10]]"});
  s.launch(kMain, {s.at(s.kernel("cgemm_kernel", 4 * 6000, 2 * 200), path, 3)});
  CHECK(type_of(s.reduce(), "aten::addmm", "forward").cause == "complex numbers");
}

// A graph of 1,000 nodes and 50 edges: sizes say 1,000 x 1,000.
TEST_CASE("formulas: none where operands are sparse, by ranges or kernels") {
  const std::string sizes = "[[1000, 1000], [1000, 8]]", add = "[[8], [1000, 1000], [1000, 8]]";
  const auto formula = [](std::vector<std::string> names, const char* kernel) {
    Scene s;
    names.insert(names.begin(), "forward");
    s.launch(kMain, {s.at(s.kernel(kernel, 400), s.path(names), 3)});
    const Report r = s.reduce();
    REQUIRE(r.operators.types.size() == 1);
    const bool known = r.operators.types[0].formula_flop.has_value();
    for (const auto& row : r.operators.by_forward) CHECK(row.expected.has_value() == known);
    return r.operators.types[0].formula_flop;
  };
  const std::string mm = "aten::mm, sizes = " + sizes, addmm = "aten::addmm, sizes = " + add;
  CHECK(formula({mm}, "gemm") == u128{2 * 1000 * 1000 * 8});
  CHECK_FALSE(
      formula({"aten::_sparse_mm, sizes = " + sizes, "aten::_sparse_addmm, sizes = " + add, addmm},
              "gemm"));
  CHECK_FALSE(formula({mm, "aten::_sparse_addmm, sizes = " + add, addmm}, "gemm"));
  CHECK_FALSE(formula({mm, addmm}, "gemm"));  // compressed rows
  CHECK_FALSE(formula({addmm}, "void cusparse::csrmm_kernel<float>"));
  CHECK_FALSE(formula(
      {kNode + "SparseAddmmBackward0", "SparseAddmmBackward0, sizes = [[8, 8]]", mm}, "gemm"));
}

// Checkpointing runs it in backward, in the range of a node that is another's.
TEST_CASE("formulas: what runs again has the result that it had in forward") {
  Scene s;
  const Twins twins(s);
  const uint32_t again = conv(s, "[2, 4, 8, 8]", "[2, 4, 8, 8]", "[4, 4, 3, 3]",
                              {engine("ReluBackward0"), "ReluBackward0, sizes = [[2, 4, 8, 8]]"});
  twins.run_forward(s, 0);
  twins.run_backward(s, 0);
  s.launch(kAutograd, {s.at(twins.wide, again, 100), s.at(twins.narrow, again, 101),
                       s.at(twins.wide, again, 102)});
  const Report r = s.reduce();
  const auto& recompute = type_of(r, "aten::conv2d", "recompute");
  CHECK(recompute.calls_counted);
  CHECK(recompute.formula_flop == static_cast<u128>(2 * (2 * kWide + kNarrow)));
  CHECK(recompute.ratio == 1.0);
}
