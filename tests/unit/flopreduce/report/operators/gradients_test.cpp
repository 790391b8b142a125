// Which gradients were computed, what backward / forward should be for that, and what counts for
// MFU. Executed figures are samples made up here; expected ones are worked out by hand.
#include <algorithm>

#include "operator_scene.h"
#include "sections/sections.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

// A convolution as autograd runs it: both gradients in one operator.
struct Convolution {
  // `mask`: further fields of backward's name.
  Convolution(Scene& s, const std::string& layer, int in, int out, const std::string& mask = "") {
    const auto text = [](int n) { return std::to_string(n); };
    const std::string x = "[2, " + text(in) + ", 8, 8]", y = "[2, " + text(out) + ", 8, 8]",
                      w = "[" + text(out) + ", " + text(in) + ", 3, 3]";
    forward = s.path({"forward", layer, "aten::conv2d, sizes = [" + x + ", " + w + ", []]",
                      "aten::convolution, sizes = [" + x + ", " + w + "]"});
    backward = s.path(
        {kNode + "ConvolutionBackward0", "ConvolutionBackward0",
         "aten::convolution_backward, sizes = [" + y + ", " + x + ", " + w + ", []]" + mask});
    products = 2.0 * out * 64 * in * 9;
  }
  uint32_t forward = 0, backward = 0;
  double products = 0;  // multiply-adds of one direction
};

// A linear layer: two products in backward, one for each gradient.
struct Linear {
  Linear(Scene& s, const std::string& layer, int rows, int in, int out) {
    const auto text = [](int a, int b) {
      return "[" + std::to_string(a) + ", " + std::to_string(b) + "]";
    };
    forward = s.path({"forward", layer,
                      "aten::linear, sizes = [" + text(rows, in) + ", " + text(out, in) + "]",
                      "aten::addmm, sizes = [[], " + text(rows, in) + ", " + text(in, out) + "]"});
    const auto back = [&](const std::string& a, const std::string& b) {
      return s.path(
          {kNode + "AddmmBackward0", "AddmmBackward0", "aten::mm, sizes = [" + a + ", " + b + "]"});
    };
    by_input = back(text(rows, out), text(out, in));
    by_weight = back(text(out, rows), text(rows, in));
    gemm = s.kernel("gemm_" + layer, products = 1.0 * rows * in * out);
  }
  uint32_t forward = 0, by_input = 0, by_weight = 0, gemm = 0;
  double products = 0;
};

const ForwardBackward& layer_of(const Report& report, const std::string& name) {
  for (const auto& row : report.operators.layers)
    if (row.name == name) return row;
  FAIL("no layer " << name);
  return report.operators.layers[0];
}

void check_expected(const std::optional<ExpectedRatio>& expected, double least, double most) {
  REQUIRE(expected);
  INFO(expected->basis);
  CHECK(expected->least == Approx(least));
  CHECK(expected->most == Approx(most));
}

}  // namespace

TEST_CASE("gradients: a block behind a trained embedding has its input's too") {
  Scene s;
  const uint32_t embedding =
      s.path({"forward", "embed", "aten::embedding, sizes = [[100, 8], [6]]"});
  const uint32_t embedding_back = s.path({kNode + "EmbeddingBackward0", "EmbeddingBackward0",
                                          "aten::embedding_dense_backward, sizes = [[6, 8]]"});
  const Linear up(s, "block", 6, 8, 24), down(s, "block", 6, 24, 8);
  const uint32_t copy = s.kernel("gather", 0);
  s.launch(kMain, {s.at(copy, embedding, 1), s.at(up.gemm, up.forward, 2),
                   s.at(down.gemm, down.forward, 3)});
  s.launch(kAutograd, {s.at(down.gemm, down.by_input, 3), s.at(down.gemm, down.by_weight, 3),
                       s.at(up.gemm, up.by_input, 2), s.at(up.gemm, up.by_weight, 2),
                       s.at(copy, embedding_back, 1)});
  const Report r = s.reduce();
  check_expected(by_forward(r, "aten::linear").expected, 2, 2);
  check_expected(layer_of(r, "block").expected, 2, 2);
  check_expected(r.ratio.expected, 2, 2);
  CHECK(r.ratio.matrix_ratio.number() == 2.0);
}

TEST_CASE("gradients: a first layer of two products needs one gradient less, not half of all") {
  Scene s;
  const Linear up(s, "block", 6, 8, 24), down(s, "block", 6, 24, 8);
  s.launch(kMain, {s.at(up.gemm, up.forward, 2), s.at(down.gemm, down.forward, 3)});
  s.launch(kAutograd, {s.at(down.gemm, down.by_input, 3), s.at(down.gemm, down.by_weight, 3),
                       s.at(up.gemm, up.by_weight, 2)});
  const Report r = s.reduce();
  check_expected(layer_of(r, "block").expected, 1.5, 1.5);
  check_expected(r.ratio.expected, 1.5, 1.5);  // 2 - f1: up is half of forward
  CHECK(r.ratio.matrix_ratio.number() == 1.5);
  // Three products forward and backward each counted once.
  CHECK(model_flop(r) == static_cast<u128>(2 * 5 * up.products));
}

TEST_CASE("gradients: FLOP of both are evidence for causes, not for what FLOP should be") {
  Scene s;
  const Convolution conv(s, "conv1", 3, 4);
  const uint32_t kernel = s.kernel("implicit_gemm", conv.products);
  s.launch(kMain, {s.at(kernel, conv.forward, 1)});
  s.launch(kAutograd, {s.at(kernel, conv.backward, 1), s.at(kernel, conv.backward, 1)});
  const Report r = s.reduce();
  const auto& row = by_forward(r, "aten::conv2d");
  CHECK(row.ratio == 2.0);
  check_expected(row.expected, 1, 2);  // the kernel's name does not say which gradient it computes
  check_expected(r.ratio.expected, 1, 2);
  CHECK(r.ratio.verdict == RatioVerdict::kInside);
  CHECK(type_of(r, "aten::convolution_backward", "backward").cause.empty());
}

TEST_CASE("gradients: without evidence the first layer has a range, and says what is assumed") {
  Scene s;
  const Convolution one(s, "conv1", 3, 4), two(s, "conv2", 4, 3);
  const uint32_t kernel = s.kernel("implicit_gemm", one.products);
  const uint32_t secret = s.unmeasured("some_kernel");
  s.launch(kMain, {s.at(kernel, one.forward, 1), s.at(kernel, two.forward, 2)});
  s.launch(kAutograd, {s.at(secret, two.backward, 2), s.at(secret, one.backward, 1)});
  const Report r = s.reduce();
  check_expected(layer_of(r, "conv1").expected, 1, 2);
  check_expected(layer_of(r, "conv2").expected, 2, 2);
  CHECK(layer_of(r, "conv2").expected->basis.find("assumed") != std::string::npos);
  check_expected(r.ratio.expected, 1.5, 2);
  const auto j = json_of(r);
  CHECK(row_of(j, "ratio", "figure", "expected of matrix work, least")["value"] == 1.5);
  CHECK(row_of(j, "ratio", "figure", "expected of matrix work, most")["value"] == 2.0);
  CHECK(j["layers"][0]["expected_ratio"].is_null());
}

TEST_CASE("gradients: a forward pass alone tells nothing of the first product") {
  Scene s;
  const Linear up(s, "block", 6, 8, 24), down(s, "block", 6, 24, 8);
  s.launch(kMain, {s.at(up.gemm, up.forward, 2), s.at(down.gemm, down.forward, 3)});
  check_expected(s.reduce().ratio.expected, 1.5, 2);
}

TEST_CASE("gradients: kernels' names tell, anywhere in the network") {
  Scene s;
  const Convolution one(s, "conv1", 3, 4), two(s, "conv2", 4, 5), three(s, "conv3", 5, 6);
  const auto kernel = [&](const Convolution& c, const char* name) {
    return s.kernel(name, c.products);
  };
  s.launch(kMain, {s.at(kernel(one, "f"), one.forward, 1), s.at(kernel(two, "f"), two.forward, 2),
                   s.at(kernel(three, "f"), three.forward, 3)});
  s.launch(kAutograd, {s.at(kernel(three, "sm80_dgrad_x"), three.backward, 3),
                       s.at(kernel(three, "sm80_wgrad_x"), three.backward, 3),
                       s.at(kernel(two, "sm80_dgrad_y"), two.backward, 2),
                       s.at(kernel(one, "sm80_wgrad_z"), one.backward, 1)});
  const Report r = s.reduce();
  check_expected(layer_of(r, "conv1").expected, 1, 1);
  check_expected(layer_of(r, "conv2").expected, 1, 1);  // its weights are frozen
  check_expected(layer_of(r, "conv3").expected, 2, 2);
  const std::string all = type_of(r, "aten::convolution_backward", "backward").cause;
  CHECK(all.find("no input gradient") != std::string::npos);
  CHECK(all.find("no weight gradient") != std::string::npos);
  CHECK(all.find("unexplained") == std::string::npos);
  // Gradients that nobody computed do not count for MFU.
  CHECK(model_flop(r) ==
        static_cast<u128>(2 * (2 * one.products + 2 * two.products + 3 * three.products)));
}

TEST_CASE("gradients: frozen layers at the start have none") {
  Scene s;
  const Linear frozen(s, "body", 6, 8, 16), head(s, "head", 6, 16, 4);
  s.launch(kMain, {s.at(frozen.gemm, frozen.forward, 1), s.at(head.gemm, head.forward, 2)});
  s.launch(kAutograd, {s.at(head.gemm, head.by_weight, 2)});
  const Report r = s.reduce();
  check_expected(layer_of(r, "body").expected, 0, 0);
  check_expected(layer_of(r, "head").expected, 1, 1);
  check_expected(r.ratio.expected, head.products / (head.products + frozen.products),
                 head.products / (head.products + frozen.products));
  CHECK(*r.ratio.matrix_ratio.number() == Approx(r.ratio.expected->most));
}

TEST_CASE("gradients: half of the work of a later convolution is not explained away") {
  Scene s;
  const Convolution one(s, "conv1", 3, 4), two(s, "conv2", 4, 5);
  const uint32_t a = s.kernel("a", one.products), b = s.kernel("b", two.products);
  s.launch(kMain, {s.at(a, one.forward, 1), s.at(b, two.forward, 2)});
  s.launch(kAutograd, {s.at(b, two.backward, 2), s.at(a, one.backward, 1)});
  const Report r = s.reduce();
  check_expected(layer_of(r, "conv1").expected, 1, 2);
  check_expected(layer_of(r, "conv2").expected, 2, 2);
  CHECK(layer_of(r, "conv2").ratio == 1.0);
  // Backward does as much as forward. The products' sizes are as 3 x 4 to 4 x 5 channels; expected
  // are one or two gradients of the first, two of the second.
  check_expected(r.ratio.expected, (12 + 2 * 20) / 32.0, 2);
  CHECK(r.ratio.verdict == RatioVerdict::kUndecided);
  CHECK(r.ratio.undecided == "both gradients are assumed of 62 % of its matrix work");
  CHECK(type_of(r, "aten::convolution_backward", "backward").cause.find("unexplained") == 0);
}

// Both gradients were computed, as kernels' names say, and one of them is of half the work, or
// twice.
TEST_CASE("verdicts: work that is missing or doubled raises the alarm where gradients are known") {
  for (const auto& [part, verdict] :
       std::vector<std::pair<double, RatioVerdict>>{{0.5, RatioVerdict::kOutside},
                                                    {1, RatioVerdict::kInside},
                                                    {2, RatioVerdict::kOutside}}) {
    INFO(part);
    Scene s;
    const Convolution one(s, "conv1", 3, 4), two(s, "conv2", 4, 5);
    s.launch(kMain, {s.at(s.kernel("a", one.products), one.forward, 1),
                     s.at(s.kernel("b", two.products), two.forward, 2)});
    s.launch(kAutograd, {s.at(s.kernel("dgrad2", part * two.products), two.backward, 2),
                         s.at(s.kernel("wgrad2", two.products), two.backward, 2),
                         s.at(s.kernel("wgrad1", one.products), one.backward, 1)});
    const Report r = s.reduce();
    check_expected(r.ratio.expected, (12 + 2 * 20) / 32.0, (12 + 2 * 20) / 32.0);
    CHECK(r.ratio.verdict == verdict);
  }
  // Linear layers: each gradient is a product with sizes of its own.
  for (const auto& [part, verdict] :
       std::vector<std::pair<double, RatioVerdict>>{{0.5, RatioVerdict::kOutside},
                                                    {1, RatioVerdict::kInside},
                                                    {2, RatioVerdict::kOutside}}) {
    INFO(part);
    Scene s(true);
    const Linear linear(s, "net", 6, 8, 16);
    const uint32_t kernel = s.kernel("gemm_x", part * linear.products);
    s.launch(kMain, {s.call(linear.gemm, linear.forward, 2)});
    s.launch(kAutograd,
             {s.call(linear.gemm, linear.by_input, 2), s.call(kernel, linear.by_weight, 2)});
    const Report r = s.reduce();
    check_expected(r.ratio.expected, 2, 2);
    CHECK(r.ratio.verdict == verdict);
  }
}

// Multiply-adds of a norm beside a product with known gradients: a twenty-fifth of forward's.
TEST_CASE("verdicts: a few multiply-adds of operators that are no products leave the verdict") {
  const auto report = [](double beside, double part) {
    Scene s(true);
    const Linear linear(s, "net", 6, 8, 16);
    const uint32_t norm =
        s.path({"forward", "net", "aten::layer_norm, sizes = [[6, 16], [], [16], [16], [], []]"});
    s.launch(kMain, {s.call(linear.gemm, linear.forward, 1),
                     s.call(s.kernel("norm", beside * linear.products), norm, 2)});
    s.launch(kAutograd, {s.call(s.kernel("gemm_x", part * linear.products), linear.by_input, 1),
                         s.call(linear.gemm, linear.by_weight, 1)});
    return s.reduce();
  };
  const Report few = report(1 / 24.0, 1);
  CHECK(few.ratio.verdict == RatioVerdict::kInside);
  const auto figures = screen_figures(few);
  const auto ratio = std::ranges::find_if(figures, [](const ShownFigure& figure) {
    return std::string(figure.name) == "Backward/fwd";
  });
  REQUIRE(ratio != figures.end());
  CHECK(ratio->note.find("as expected ~2.00") != std::string::npos);
  CHECK(report(1 / 24.0, 0.5).ratio.verdict == RatioVerdict::kOutside);
  CHECK(report(1 / 24.0, 2).ratio.verdict == RatioVerdict::kOutside);
  CHECK(report(1 / 10.0, 1).ratio.verdict == RatioVerdict::kUndecided);  // too many
}

// A fused product of a library: of its forward work no theory is known.
TEST_CASE("verdicts: theory of a part of forward decides nothing, and the screen says so") {
  for (const double backward : {1.0, 2.0, 5.0}) {
    INFO(backward);
    Scene s(true);
    const Linear linear(s, "net", 6, 8, 16);
    const uint32_t own = s.path({"forward", "net", "mylib::fused, sizes = [[6, 8], [8, 8]]"}),
                   back = s.path({kNode + "GeneratedBackwardFor_mylib_fused_defaultBackward",
                                  "GeneratedBackwardFor_mylib_fused_defaultBackward",
                                  "mylib::fused_backward, sizes = [[6, 8], [6, 8], [8, 8]]"});
    const double work = linear.products / 2;
    s.launch(kMain, {s.call(linear.gemm, linear.forward, 1), s.call(s.kernel("f", work), own, 2)});
    s.launch(kAutograd,
             {s.call(s.kernel("b", backward * work), back, 2),
              s.call(linear.gemm, linear.by_input, 1), s.call(linear.gemm, linear.by_weight, 1)});
    const Report r = s.reduce();
    REQUIRE(r.ratio.expected);
    CHECK(r.ratio.verdict == RatioVerdict::kUndecided);
    CHECK(r.ratio.undecided == "theory is of 66 % of forward's matrix work");
    const auto j = json_of(r);
    CHECK(row_of(j, "ratio", "figure", "matrix work only")["verdict"] == "undecided");
    CHECK(text_of(r).find("undecided: theory is of 66 % of forward's matrix work") !=
          std::string::npos);
    const auto figures = screen_figures(r);
    const auto ratio = std::ranges::find_if(figures, [](const ShownFigure& figure) {
      return std::string(figure.name) == "Backward/fwd";
    });
    REQUIRE(ratio != figures.end());
    CHECK(
        ratio->note.find("undecided: expected ~2.00, theory is of 66 % of forward's matrix work") !=
        std::string::npos);
    CHECK(ratio->tone == Tone::kTitle);
  }
}

TEST_CASE("gradients: layers of plain ranges have the names of their kernels as evidence") {
  // Of forward 10 + 100 + 300 matrix FLOP; the first layer with backward work computes one
  // gradient.
  const auto report = [](const char* wgrad, const char* dgrad) {
    Scene s;
    const auto forward = [&](const char* layer) { return s.path({"step", "forward", layer}); };
    const auto backward = [&](const char* layer) { return s.path({"step", "backward", layer}); };
    const uint32_t scale = s.kernel("scale", 10), first = s.kernel("first", 100),
                   second = s.kernel("second", 300);
    const std::string weight = wgrad, input = dgrad;
    s.launch(kMain, {s.at(scale, forward("normalise"), 0), s.at(first, forward("conv1"), 0),
                     s.at(second, forward("conv2"), 0),
                     s.at(s.kernel(input + "2", 300), backward("conv2"), 0),
                     s.at(s.kernel(weight + "2", 300), backward("conv2"), 0),
                     s.at(s.kernel(weight + "1", 100), backward("conv1"), 0)});
    return s.reduce();
  };
  const Report named = report("conv_wgrad_", "conv_dgrad_");
  check_expected(layer_of(named, "normalise").expected, 0, 0);
  check_expected(layer_of(named, "conv1").expected, 1, 1);
  check_expected(layer_of(named, "conv2").expected, 2, 2);
  check_expected(named.ratio.expected, 700.0 / 410, 700.0 / 410);
  CHECK(*named.ratio.matrix_ratio.number() == Approx(700.0 / 410));
  CHECK(named.ratio.verdict == RatioVerdict::kInside);

  const Report plain = report("gemm_a", "gemm_b");
  check_expected(layer_of(plain, "conv1").expected, 1, 2);  // though its own ratio is 1
  CHECK(layer_of(plain, "conv1").ratio == 1.0);
  check_expected(layer_of(plain, "conv2").expected, 2, 2);
  check_expected(plain.ratio.expected, 700.0 / 410, 800.0 / 410);
  CHECK(plain.ratio.verdict == RatioVerdict::kUndecided);  // of conv2 both are assumed
}

TEST_CASE(
    "gradients: a plain layer of two products that lacks one gradient is not taken for whole") {
  Scene s;
  const uint32_t forward = s.path({"forward", "block"}), backward = s.path({"backward", "block"});
  const uint32_t product = s.kernel("f", 50), dgrad = s.kernel("dgrad", 50),
                 wgrad = s.kernel("wgrad", 50);
  s.launch(kMain, {s.at(product, forward, 0), s.at(product, forward, 0), s.at(dgrad, backward, 0),
                   s.at(wgrad, backward, 0), s.at(wgrad, backward, 0)});
  const Report r = s.reduce();
  CHECK(layer_of(r, "block").ratio == 1.5);
  check_expected(layer_of(r, "block").expected, 1, 2);
}

TEST_CASE(
    "gradients: where backward names no layer nothing is decided, whatever backward's work is") {
  for (const double backward : {400, 700, 4000}) {
    Scene s;
    const uint32_t first = s.kernel("first", 100), second = s.kernel("second", 300);
    s.launch(kMain,
             {s.at(first, s.path({"forward", "a"}), 0), s.at(second, s.path({"forward", "b"}), 0),
              s.at(s.kernel("g", backward), s.path({"backward"}), 0)});
    const Report r = s.reduce();
    check_expected(r.ratio.expected, 1.75, 2);
    CHECK(r.ratio.verdict == RatioVerdict::kUndecided);
  }
}

TEST_CASE("gradients: a range that is known is judged at both ends, and chooses nothing") {
  // Kernels' names say both gradients of the second layer, and nothing of the first.
  const auto ratio = [](double backward) {
    Scene s;
    const uint32_t first = s.kernel("first", 100), second = s.kernel("second", 300),
                   by_input = s.kernel("dgrad", 300), by_weight = s.kernel("wgrad", 300);
    const uint32_t back = s.path({"backward", "b"});
    s.launch(kMain,
             {s.at(first, s.path({"forward", "a"}), 0), s.at(second, s.path({"forward", "b"}), 0),
              s.at(by_input, back, 0), s.at(by_weight, back, 0),
              s.at(s.kernel("g", backward - 600), s.path({"backward", "a"}), 0)});
    return s.reduce();
  };
  // The first layer has 100 of 400 in forward: 2 - 1/4 to 2, and one hundredth beyond.
  const std::vector<std::pair<double, RatioVerdict>> cases = {
      {700, RatioVerdict::kInside}, {750, RatioVerdict::kInside},  {800, RatioVerdict::kInside},
      {694, RatioVerdict::kInside}, {692, RatioVerdict::kOutside}, {600, RatioVerdict::kOutside},
      {807, RatioVerdict::kInside}, {809, RatioVerdict::kOutside}, {4000, RatioVerdict::kOutside}};
  for (const auto& [backward, verdict] : cases) {
    INFO(backward);
    const Report r = ratio(backward);
    check_expected(r.ratio.expected, 1.75, 2);
    CHECK(r.ratio.verdict == verdict);
  }
  const Report inside = ratio(700), outside = ratio(600);
  const auto row = [](const Report& r, const char* name) {
    return row_of(json_of(r), "ratio", "figure", name);
  };
  CHECK(row(inside, "expected of matrix work, least")["value"] !=
        row(inside, "expected of matrix work, most")["value"]);
  CHECK(row(inside, "matrix work only")["verdict"] == "inside");
  CHECK(text_of(inside).find("inside the expected range") != std::string::npos);
  CHECK(row(outside, "matrix work only")["verdict"] == "outside");
  // 1.5 of 1.75.
  CHECK(text_of(outside).find("OUTSIDE the expected range, below by 14.3 %") != std::string::npos);
}

TEST_CASE("attention: a causal mask and recomputed scores are told, and do not count for MFU") {
  // 256 queries and keys of width 64 in 8 heads.
  constexpr double kScores = 8 * 256 * 256, kWidth = 64, kProduct = 2 * kScores * kWidth;
  const auto report = [&](double done, const std::string& values = "") {
    Scene s;
    const std::string x = "[1, 8, 256, 64]", qkv = x + ", " + x + ", " + x;
    const uint32_t forward =
        s.path({"forward", "attention", "aten::scaled_dot_product_attention, sizes = [" + qkv + "]",
                "aten::_scaled_dot_product_flash_attention, sizes = [" + qkv + "]"});
    const uint32_t backward =
        s.path({kNode + "ScaledDotProductFlashAttentionBackward0",
                "ScaledDotProductFlashAttentionBackward0",
                "aten::_scaled_dot_product_flash_attention_backward, sizes = [" + x + ", " + qkv +
                    ", " + x + ", [1, 8, 256]]"});
    s.launch(kMain,
             {s.at(s.kernel("flash_fwd_kernel" + values, 0, 0, done * 2 * kProduct), forward, 1)});
    s.launch(kAutograd,
             {s.at(s.kernel("flash_bwd_kernel" + values, 0, 0, done * 5 * kProduct), backward, 1)});
    return s.reduce();
  };
  const std::string kForward = "aten::scaled_dot_product_attention",
                    kBackward = "aten::_scaled_dot_product_flash_attention_backward";

  const Report whole = report(1);
  CHECK(type_of(whole, kForward, "forward").cause.empty());
  CHECK(*type_of(whole, kBackward, "backward").ratio == Approx(1.25));
  CHECK(type_of(whole, kBackward, "backward").cause == "recompute inside the fused backward");
  CHECK(model_flop(whole) == static_cast<u128>(6 * kProduct));
  check_expected(by_forward(whole, kForward).expected, 2.5, 2.5);

  // With tiles of 64 rows and columns 10 of 16 are on or below the diagonal.
  const Report causal = report(10.0 / 16);
  CHECK(type_of(causal, kForward, "forward").cause == "about half of the products");
  CHECK(type_of(causal, kForward, "forward").evidence.find("0.625") == 0);
  CHECK(type_of(causal, kBackward, "backward").cause ==
        "about half of the products, recompute inside the fused backward");
  CHECK(model_flop(causal) == static_cast<u128>(3 * kProduct));
  CHECK(causal.operators.model.marks() == Mark::kEstimate);  // nothing says that it is causal
  check_expected(by_forward(causal, kForward).expected, 2.5, 2.5);

  // FlashAttention's values say it: Is_dropout, Is_causal. As PyTorch 2.5.1 (cu124) names them.
  const std::string traits =
      "INS_23Flash_fwd_kernel_traitsILi64ELi128ELi128ELi4ELb0ELb0EN7cutlass6half_tE"
      "NS_19Flash_kernel_traitsILi64ELi128ELi128ELi4ES3_EEEE";
  const Report told = report(10.0 / 16, traits + "Lb0ELb1ELb0ELb0ELb1ELb1ELb0EEE");
  CHECK(type_of(told, kForward, "forward").cause == "causal mask");
  CHECK(type_of(told, kBackward, "backward").cause ==
        "causal mask, recompute inside the fused backward");
  CHECK(model_flop(told) == static_cast<u128>(3 * kProduct));
  CHECK(told.operators.model.marks() == Mark::kNone);
  CHECK(report(10.0 / 16, traits + "Lb1ELb0ELb0EEE").operators.model.marks() == Mark::kEstimate);

  // A window that leaves in a tenth is no causal mask.
  CHECK(type_of(report(0.1), kForward, "forward").cause == "unexplained");
}

TEST_CASE("attention: where the mask is named, what it leaves in counts, without a mark") {
  // 256 queries and keys of width 64 in 8 heads; 64 keys before each query, and its own.
  constexpr u128 kLength = 256, kLeft = 64, kWidth = 64;
  u128 pairs = 0;
  for (u128 query = 0; query < kLength; ++query)
    for (u128 key = 0; key < kLength; ++key) pairs += key <= query && key + kLeft >= query ? 1 : 0;
  const u128 product = 2 * 8 * pairs * kWidth;
  // Blocks of 64 x 64 that have a pair: of 16, those on the diagonal and left of it.
  constexpr double kBlocks = 7.0 / 16;
  const double done = kBlocks * static_cast<double>(2 * 8 * kLength * kLength * kWidth);
  const auto report = [&](const std::string& mask, const std::string& inside) {
    Scene s;
    const std::string x = "[1, 256, 8, 64]", qkv = x + ", " + x + ", " + x;
    std::vector<std::string> levels = {
        "forward", "attention", "flash_attn::_flash_attn_forward, sizes = [" + qkv + "]" + mask};
    if (!inside.empty()) levels.push_back(inside);
    const uint32_t forward = s.path(levels);
    const uint32_t backward = s.path(
        {kNode + "torch::autograd::FlashAttnFuncBackward", "FlashAttnFuncBackward",
         "flash_attn::_flash_attn_backward, sizes = [" + x + ", " + qkv + ", " + x + "]" + mask});
    s.launch(kMain, {s.at(s.kernel("flash_fwd_kernel", 0, 0, 2 * done), forward, 1)});
    s.launch(kAutograd, {s.at(s.kernel("flash_bwd_kernel", 0, 0, 5 * done), backward, 1)});
    return s.reduce();
  };
  const std::string mask = ", causal = True, window_size_left = 64, window_size_right = 0";
  const Report named = report(mask, "");
  const std::string kForward = "flash_attn::_flash_attn_forward",
                    kBackward = "flash_attn::_flash_attn_backward";
  CHECK(type_of(named, kForward, "forward").formula_flop == 2 * product);
  CHECK(type_of(named, kForward, "forward").cause == "blocks on the mask's edge");
  CHECK(type_of(named, kBackward, "backward").cause ==
        "blocks on the mask's edge, recompute inside the fused backward");
  CHECK(model_flop(named) == 6 * product);
  CHECK(named.operators.model.marks() == Mark::kNone);
  check_expected(by_forward(named, kForward).expected, 2.5, 2.5);
  // Of single products nothing is left out.
  const Report single = report(mask, "aten::bmm, sizes = [[8, 256, 64], [8, 64, 256]]");
  CHECK(type_of(single, kForward, "forward").formula_flop ==
        2 * 2 * 8 * kLength * kLength * kWidth);
}

// A view launches nothing, and its node does: zeros, a copy, a sum. That is no product that was
// lost.
TEST_CASE("gradients: nodes of views do not spoil what is missing as evidence") {
  Scene s;
  const Linear frozen(s, "body", 6, 8, 16), head(s, "head", 6, 16, 4);
  const uint32_t slice =
      s.path({kNode + "SliceBackward0", "SliceBackward0, sizes = [[6, 4]]",
              "aten::slice_backward, sizes = [[6, 4], [], [], [], [], []]",
              "aten::zeros, sizes = [[], [], [], [], []]", "aten::zero_, sizes = [[6, 8]]"});
  const uint32_t zero = s.kernel("fill", 0);
  s.launch(kMain, {s.at(frozen.gemm, frozen.forward, 1), s.at(head.gemm, head.forward, 2)});
  s.launch(kAutograd,
           {s.at(zero, slice, 4), s.at(zero, slice, 3), s.at(head.gemm, head.by_weight, 2)});
  const Report r = s.reduce();
  CHECK(r.operators.without_forward == 2);
  check_expected(layer_of(r, "body").expected, 0, 0);
  check_expected(layer_of(r, "head").expected, 1, 1);
}

// A checkpoint runs its operators without gradients: that nothing has their number says nothing.
TEST_CASE("gradients: inside of a function with a gradient of its own nothing is known") {
  Scene s;
  const std::string linear = "aten::linear, sizes = [[6, 8], [16, 8]]";
  const uint32_t inside =
      s.path({"forward", "body", "CheckpointFunction, sizes = [[6, 8]]", linear});
  const Linear head(s, "head", 6, 16, 4);
  s.launch(kMain,
           {s.at(s.kernel("gemm", 6 * 8 * 16), inside, 1), s.at(head.gemm, head.forward, 2)});
  s.launch(kAutograd, {s.at(head.gemm, head.by_input, 2), s.at(head.gemm, head.by_weight, 2)});
  const Report r = s.reduce();
  const auto& body = layer_of(r, "body");
  check_expected(body.expected, 2, 2);
  CHECK(body.expected->basis.find("CheckpointFunction, which has a gradient of its own") !=
        std::string::npos);
}

// bitsandbytes' product with weights of 4 bits, and two small products with trained weights beside
// it: the function's node computes the input's gradient, and its weights have none.
TEST_CASE("gradients: a function's node is judged by its own products") {
  const auto report = [](double part, double scaled = 0) {
    Scene s(true);
    const Linear before(s, "before", 6, 8, 8), down(s, "block", 6, 8, 2), up(s, "block", 6, 2, 16);
    const std::string function = "MatMul4Bit, sizes = [[6, 8], [64, 1], [], [], []]";
    const auto forward = [&](const std::string& name) {
      return s.path({"forward", "block", function, name});
    };
    const auto back = [&](const std::string& name) {
      return s.path({kNode + "MatMul4BitBackward", "MatMul4BitBackward", name});
    };
    const std::string unpack = "bitsandbytes::dequantize_4bit, sizes = [[64, 1], [], [], [], []]";
    const uint32_t copy = s.kernel("unpack", 0), product = s.kernel("gemm", 6 * 8 * 16);
    s.launch(kMain, {s.call(before.gemm, before.forward, 1), s.call(copy, forward(unpack), 2),
                     s.at(product, forward("aten::linear, sizes = [[6, 8], [16, 8], []]"), 2),
                     s.call(down.gemm, down.forward, 3), s.call(up.gemm, up.forward, 4)});
    s.launch(kAutograd, {s.call(up.gemm, up.by_input, 4), s.call(up.gemm, up.by_weight, 4),
                         s.call(down.gemm, down.by_input, 3), s.call(down.gemm, down.by_weight, 3),
                         s.call(s.kernel("unpack_back", scaled), back(unpack), 2),
                         s.call(s.kernel("gemm_back", part * 6 * 8 * 16),
                                back("aten::matmul, sizes = [[6, 16], [16, 8]]"), 2),
                         s.call(before.gemm, before.by_weight, 1)});
    return s.reduce();
  };
  const double before = 6 * 8 * 8, packed = 6 * 8 * 16, low_rank = 6 * 8 * 2 + 6 * 2 * 16;
  const double expected = (before + packed + 2 * low_rank) / (before + packed + low_rank);
  const Report whole = report(1);
  check_expected(whole.ratio.expected, expected, expected);
  CHECK_FALSE(whole.ratio.expected->assumed());
  CHECK(*whole.ratio.matrix_ratio.number() == Approx(expected));
  CHECK(whole.ratio.verdict == RatioVerdict::kInside);
  // The product in its node ran half, or twice.
  CHECK(report(0.5).ratio.verdict == RatioVerdict::kOutside);
  CHECK(report(2).ratio.verdict == RatioVerdict::kOutside);
  // Something in its node does matrix work, and is no product.
  const Report unknown = report(1, packed);
  CHECK(unknown.ratio.verdict == RatioVerdict::kUndecided);
  CHECK(unknown.ratio.expected->assumed());
}

// As Liger's fused linear layer and loss: all gradients are computed in forward, and scaled later.
TEST_CASE("gradients: a function that computes its gradients in forward has none in backward") {
  Scene s(true);
  const Linear before(s, "before", 6, 8, 8);
  const auto inside = [&](const std::string& sizes) {
    return s.path({"forward", "head", "FusedHeadFunction, sizes = [[6, 8], [100, 8], []]",
                   "aten::mm, sizes = " + sizes});
  };
  const uint32_t scale = s.path({kNode + "FusedHeadFunctionBackward", "FusedHeadFunctionBackward",
                                 "aten::mul, sizes = [[6, 8], []]"});
  const uint32_t product = s.kernel("gemm", 6 * 8 * 100);
  s.launch(kMain, {s.call(before.gemm, before.forward, 1),
                   s.call(product, inside("[[6, 8], [8, 100]]"), 2),
                   s.at(product, inside("[[6, 100], [100, 8]]"), 2),
                   s.at(product, inside("[[100, 6], [6, 8]]"), 2)});
  s.launch(kAutograd,
           {s.call(s.kernel("scale", 0, 48), scale, 2), s.call(before.gemm, before.by_weight, 1)});
  const Report r = s.reduce();
  const double expected = 6 * 8 * 8 / (6 * 8 * 8 + 3 * 6 * 8 * 100.0);
  check_expected(r.ratio.expected, expected, expected);
  CHECK(*r.ratio.matrix_ratio.number() == Approx(expected));
  CHECK(r.ratio.verdict == RatioVerdict::kInside);
}

// The two layers of a time embedding share one range: the first one's input needs no gradient.
TEST_CASE("gradients: of layers that share a range some may have one gradient, products tell") {
  Scene s;
  const Linear both(s, "time", 2, 16, 16);
  s.launch(kMain, {s.at(both.gemm, both.forward, 1), s.at(both.gemm, both.forward, 2)});
  s.launch(kAutograd, {s.at(both.gemm, both.by_input, 2), s.at(both.gemm, both.by_weight, 2),
                       s.at(both.gemm, both.by_weight, 1)});
  const Report r = s.reduce();
  check_expected(layer_of(r, "time").expected, 1.5, 1.5);
  CHECK(layer_of(r, "time").expected->basis.find("not all gradients (products of backward)") !=
        std::string::npos);
  CHECK(layer_of(r, "time").ratio == 1.5);
}

// A discriminator takes real images, which need no gradient, and generated ones, which do.
TEST_CASE("gradients: of layers that share a range some may have one gradient, kernels tell") {
  Scene s;
  const Convolution conv(s, "conv1", 3, 4);
  const uint32_t product = s.kernel("implicit_gemm", conv.products),
                 by_input = s.kernel("sm80_dgrad", conv.products),
                 by_weight = s.kernel("sm80_wgrad", conv.products);
  s.launch(kMain, {s.at(product, conv.forward, 1), s.at(product, conv.forward, 2)});
  s.launch(kAutograd, {s.at(by_input, conv.backward, 2), s.at(by_weight, conv.backward, 2),
                       s.at(by_weight, conv.backward, 1)});
  const Report r = s.reduce();
  check_expected(layer_of(r, "conv1").expected, 1.5, 1.5);
  CHECK(model_flop(r) == static_cast<u128>(2 * (2 + 3) * conv.products));
  CHECK(type_of(r, "aten::convolution_backward", "backward").cause == "one gradient of some calls");
}

// Kernels without counts and without names that say it: the call's output_mask does.
TEST_CASE("gradients: of a convolution are those of its output_mask") {
  struct Case {
    const char* mask;
    double expected;
  };
  for (const auto& [mask, expected] : {Case{"True, True, False", 2}, Case{"False, True, True", 1},
                                       Case{"True, False, False", 1}}) {
    INFO(mask);
    Scene s;
    const Convolution first(s, "conv1", 3, 4),
        conv(s, "conv2", 4, 3, std::string(", output_mask = [") + mask + "]");
    const uint32_t kernel = s.kernel("implicit_gemm", conv.products);
    s.launch(kMain, {s.at(kernel, first.forward, 1), s.at(kernel, conv.forward, 2)});
    s.launch(kAutograd, {s.at(s.unmeasured("some_kernel"), conv.backward, 2),
                         s.at(kernel, first.backward, 1)});
    const Report r = s.reduce();
    check_expected(layer_of(r, "conv2").expected, expected, expected);
    const OperatorReport& backward = type_of(r, "aten::convolution_backward", "backward");
    CHECK_FALSE(backward.formula_at_most);
  }
}

// An attack by gradients takes the input's only, the step that trains the weights' only: of the
// formula of both, half of each call's.
TEST_CASE("gradients: each call may have one, each another one than the call before") {
  for (const bool recorded : {true, false}) {
    Scene s(recorded);
    const Convolution conv(s, "conv1", 3, 4);
    const uint32_t product = s.kernel("implicit_gemm", conv.products),
                   by_input = s.kernel("sm80_dgrad", conv.products),
                   by_weight = s.kernel("sm80_wgrad", conv.products);
    s.launch(kMain, {s.call(product, conv.forward, 1)});
    s.launch(kAutograd, {s.call(by_input, conv.backward, 1)});
    s.launch(kMain, {s.call(product, conv.forward, 2)});
    s.launch(kAutograd, {s.call(by_weight, conv.backward, 2)});
    const Report r = s.reduce();
    check_expected(layer_of(r, "conv1").expected, 1, 1);
    CHECK(r.ratio.verdict == RatioVerdict::kInside);
    CHECK(model_flop(r) == static_cast<u128>(2 * (2 + 2) * conv.products));
    const OperatorReport& backward = type_of(r, "aten::convolution_backward", "backward");
    CHECK(backward.cause == "one gradient of some calls");
    CHECK(whole(backward.model.flop()) == static_cast<u128>(2 * 2 * conv.products));
  }
}

// A critic is trained by two batches, detached, and then frozen, where the generator is: three
// of six gradients, one for each call.
TEST_CASE("gradients: of a critic that is frozen for the generator's step") {
  Scene s(true);
  const Convolution conv(s, "critic", 3, 4);
  const uint32_t product = s.kernel("implicit_gemm", conv.products),
                 by_input = s.kernel("sm80_dgrad", conv.products),
                 by_weight = s.kernel("sm80_wgrad", conv.products);
  s.launch(kMain, {s.call(product, conv.forward, 1), s.call(product, conv.forward, 2)});
  s.launch(kAutograd, {s.call(by_weight, conv.backward, 2), s.call(by_weight, conv.backward, 1)});
  s.launch(kMain, {s.call(product, conv.forward, 3)});
  s.launch(kAutograd, {s.call(by_input, conv.backward, 3)});
  const Report r = s.reduce();
  check_expected(layer_of(r, "critic").expected, 1, 1);
  CHECK(model_flop(r) == static_cast<u128>(2 * (3 + 3) * conv.products));
}

// Three kernels of one name in two calls: one call may have had both of one gradient's.
TEST_CASE("gradients: kernels that are no one for each call do not say how many had which") {
  Scene s(true);
  const Convolution conv(s, "conv1", 3, 4);
  const uint32_t product = s.kernel("implicit_gemm", conv.products),
                 by_input = s.kernel("sm80_dgrad", conv.products),
                 by_weight = s.kernel("sm80_wgrad_split", conv.products / 2);
  s.launch(kMain, {s.call(product, conv.forward, 1), s.call(product, conv.forward, 2)});
  for (const uint64_t number : {2, 1})
    s.launch(kAutograd,
             {s.call(by_input, conv.backward, number), s.at(by_weight, conv.backward, number),
              s.at(by_weight, conv.backward, number)});
  const Report r = s.reduce();
  check_expected(layer_of(r, "conv1").expected, 2, 2);
  CHECK(model_flop(r) == static_cast<u128>(2 * (2 + 4) * conv.products));
}

// --- calls with and without backward that share a range

// A teacher's layer has the student's sizes, and no number.
TEST_CASE("calls: those without a gradient count as forward, and expect nothing of backward") {
  for (const bool recorded : {true, false}) {
    Scene s(recorded);
    const Linear linear(s, "net", 6, 8, 16);
    s.launch(kMain, {s.call(linear.gemm, linear.forward, 2), s.call(linear.gemm, linear.forward)});
    s.launch(kAutograd,
             {s.call(linear.gemm, linear.by_input, 2), s.call(linear.gemm, linear.by_weight, 2)});
    const Report r = s.reduce();
    CHECK(r.ratio.matrix_ratio.number() == 1.0);
    if (!recorded) {  // one call in two launches looks the same
      CHECK_FALSE(by_forward(r, "aten::linear").expected);
      continue;
    }
    check_expected(r.ratio.expected, 1, 1);
    CHECK(r.ratio.expected->basis.find("no gradient of 1 of 2 calls") != std::string::npos);
    const OperatorReport& forward = type_of(r, "aten::linear", "forward");
    CHECK(forward.calls == 2);
    CHECK(forward.formula_flop == static_cast<u128>(2 * 2 * linear.products));
  }
}

// Frozen layers make no node: their calls have the number of the next trained one.
TEST_CASE("calls: frozen ones that share a trained one's number are calls") {
  Scene s(true);
  const Linear linear(s, "net", 6, 8, 8);
  const uint32_t bias = s.kernel("bias", 0, 48);
  for (int layer = 0; layer < 2; ++layer)
    s.launch(kMain, {s.call(linear.gemm, linear.forward, 2), s.at(bias, linear.forward, 2)});
  s.launch(kMain, {s.call(linear.gemm, linear.forward, 2)});
  s.launch(kAutograd, {s.call(linear.gemm, linear.by_weight, 2)});
  const Report r = s.reduce();
  CHECK(type_of(r, "aten::linear", "forward").calls == 3);
  CHECK(type_of(r, "aten::linear", "forward").formula_flop ==
        static_cast<u128>(3 * 2 * linear.products));
  check_expected(r.ratio.expected, 1 / 3.0, 1 / 3.0);
}

// Autocast casts a teacher's weights with gradients on: the cast has a number, its product none.
TEST_CASE("calls: a call whose cast ran forward has its product elsewhere") {
  Scene s(true);
  const std::string linear = "aten::linear, sizes = [[6, 8], [16, 8]]";
  const uint32_t product = s.path({linear, "aten::addmm, sizes = [[], [6, 8], [8, 16]]"}),
                 cast = s.path({linear, "aten::to, sizes = [[16, 8], [], [], [], []]"});
  const auto back = [&](const std::string& sizes) {
    return s.path({kNode + "AddmmBackward0", "AddmmBackward0", "aten::mm, sizes = " + sizes});
  };
  const uint32_t gemm = s.kernel("gemm", 6 * 8 * 16), copy = s.kernel("copy", 0);
  s.launch(kMain, {s.call(gemm, product, 1), s.call(copy, cast, 2), s.at(gemm, product, UINT64_MAX),
                   s.call(gemm, product, 3)});
  for (const uint64_t number : {3, 1})
    s.launch(kAutograd, {s.call(gemm, back("[[6, 16], [16, 8]]"), number),
                         s.call(gemm, back("[[16, 6], [6, 8]]"), number)});
  const Report r = s.reduce();
  CHECK(r.part(PhasePart::kUnclear).matrix_flop == 2 * 6 * 8 * 16);
  const OperatorReport& forward = type_of(r, "aten::linear", "forward");
  CHECK(forward.work.matrix_flop == 2 * 2 * 6 * 8 * 16);
  CHECK(forward.formula_flop == forward.work.matrix_flop);
  REQUIRE(r.ratio.expected);
  CHECK(r.ratio.expected->most == Approx(2));
}

// Of square layers both gradients have one range and one number.
TEST_CASE("calls: gradients of equal sizes, and graphs that are differentiated twice") {
  for (const int times : {1, 2}) {
    Scene s(true);
    const Linear linear(s, "net", 8, 8, 8);
    s.launch(kMain, {s.call(linear.gemm, linear.forward, 2)});
    for (int i = 0; i < 2 * times; ++i)
      s.launch(kAutograd, {s.call(linear.gemm, linear.by_input, 2)});
    const Report r = s.reduce();
    check_expected(r.ratio.expected, 2 * times, 2 * times);
    CHECK(model_flop(r) == static_cast<u128>((1 + 2 * times) * 2 * linear.products));
  }
}

// A first layer with stride 1 computes one gradient, a layer with stride 2 both: 64 and 16
// positions.
TEST_CASE("calls: convolutions that share a range have each its own gradients") {
  Scene s(true);
  const std::string x = "[2, 4, 8, 8]", w = "[4, 4, 3, 3]", half = "[2, 4, 4, 4]";
  const uint32_t forward = s.path({"forward", "aten::conv2d, sizes = [" + x + ", " + w + "]",
                                   "aten::convolution, sizes = [" + x + ", " + w + "]"});
  const auto node = [&](const std::string& y) {
    return s.path({kNode + "ConvolutionBackward0", "ConvolutionBackward0, sizes = [" + y + "]",
                   "aten::convolution_backward, sizes = [" + y + ", " + x + ", " + w + ", []]"});
  };
  const uint32_t wide = s.kernel("conv", 2 * 4 * 64 * 36),
                 narrow = s.kernel("conv2", 2 * 4 * 16 * 36);
  s.launch(kMain, {s.call(wide, forward, 1), s.call(narrow, forward, 2)});
  const uint32_t first = node(x), second = node(half);
  s.launch(kAutograd, {s.call(s.kernel("dgrad2", 2 * 4 * 16 * 36), second, 2),
                       s.at(s.kernel("wgrad2", 2 * 4 * 16 * 36), second, 2),
                       s.call(s.kernel("wgrad1", 2 * 4 * 64 * 36), first, 1)});
  const Report r = s.reduce();
  check_expected(r.ratio.expected, 1.2, 1.2);
  CHECK(*r.ratio.matrix_ratio.number() == Approx(1.2));
}

// Five steps of a cell, each with a node of its own, are one call of the layer.
TEST_CASE("calls: a recurrent layer that is a product a step is one call") {
  Scene s(true);
  const std::string lstm =
      "aten::lstm, sizes = [[5, 3, 8], [1, 3, 12], [1, 3, 12], [48, 8], [48, 12], [48], [48], [], "
      "[], [], [], [], []]";
  const auto inside = [&](const std::string& name) { return s.path({"forward", lstm, name}); };
  const uint32_t input = inside("aten::addmm, sizes = [[48], [15, 8], [8, 48]]"),
                 state = inside("aten::addmm, sizes = [[48], [3, 12], [12, 48]]");
  const auto back = [&](const std::string& sizes) {
    return s.path({kNode + "AddmmBackward0", "AddmmBackward0", "aten::mm, sizes = " + sizes});
  };
  const uint32_t by_input = s.kernel("a", 15 * 8 * 48), by_state = s.kernel("b", 3 * 12 * 48);
  std::vector<Launch> forward{s.call(by_input, input, 1)}, backward;
  for (uint64_t step = 2; step < 7; ++step) {
    forward.push_back(s.at(by_state, state, step));
    backward.push_back(s.call(by_state, back("[[3, 48], [48, 12]]"), 8 - step));
    backward.push_back(s.call(by_state, back("[[48, 3], [3, 12]]"), 8 - step));
  }
  backward.push_back(s.call(by_input, back("[[48, 15], [15, 8]]"), 1));
  s.launch(kMain, forward);
  s.launch(kAutograd, backward);
  const Report r = s.reduce();
  const OperatorReport& layer = type_of(r, "aten::lstm", "forward");
  CHECK(layer.calls == 1);
  CHECK(layer.formula_flop == static_cast<u128>(2 * (15 * 8 * 48 + 5 * 3 * 12 * 48)));
  const double most = 15 * 8 * 48 + 5 * 3 * 12 * 48.0;
  check_expected(r.ratio.expected, (15 * 8 * 48 + 2 * 5 * 3 * 12 * 48) / most,
                 (15 * 8 * 48 + 2 * 5 * 3 * 12 * 48) / most);
}

// The product of all inputs is of no pass, since nothing before it has a gradient.
TEST_CASE("calls: a recurrent layer whose first product is unclear is one call in forward, too") {
  Scene s(true);
  const std::string lstm =
      "aten::lstm, sizes = [[5, 3, 8], [1, 3, 12], [1, 3, 12], [48, 8], [48, 12], [48], [48], [], "
      "[], [], [], [], []]";
  const uint32_t state = s.path({lstm, "aten::addmm, sizes = [[48], [3, 12], [12, 48]]"});
  const uint32_t back =
      s.path({kNode + "AddmmBackward0", "AddmmBackward0", "aten::mm, sizes = [[3, 48], [48, 12]]"});
  const uint32_t by_state = s.kernel("b", 3 * 12 * 48);
  std::vector<Launch> forward{
      s.call(s.kernel("a", 15 * 8 * 48),
             s.path({lstm, "aten::addmm, sizes = [[48], [15, 8], [8, 48]]"}), 1)};
  for (uint64_t step = 2; step < 7; ++step) forward.push_back(s.at(by_state, state, step));
  s.launch(kMain, forward);
  for (uint64_t step = 6; step > 1; --step) s.launch(kAutograd, {s.call(by_state, back, step)});
  const Report r = s.reduce();
  CHECK(r.part(PhasePart::kUnclear).matrix_flop == 2 * 15 * 8 * 48);
  CHECK(type_of(r, "aten::lstm", "forward").calls == 1);
}

// Three layers alike, of which the first needs no gradient by its input.
TEST_CASE("gradients: of calls in one range, FLOP of nearly two do not tell which") {
  Scene s(true);
  const Convolution c(s, "block", 4, 4);
  const uint32_t forward = s.kernel("conv", c.products), one = s.kernel("bwd_a", c.products),
                 two = s.kernel("bwd_b", c.products);
  s.launch(kMain, {s.call(forward, c.forward, 1), s.call(forward, c.forward, 2),
                   s.call(forward, c.forward, 3)});
  s.launch(kAutograd,
           {s.call(one, c.backward, 3), s.at(two, c.backward, 3), s.call(one, c.backward, 2),
            s.at(two, c.backward, 2), s.call(one, c.backward, 1)});
  CHECK(type_of(s.reduce(), "aten::convolution_backward", "backward").formula_at_most);
}

// The operator with a formula is inside of another one: its calls are counted by numbers.
TEST_CASE("calls: a product inside of an operator without a formula") {
  Scene s(true);
  const uint32_t forward = s.path({"forward", "aten::einsum, sizes = [[6, 8], [8, 4], []]",
                                   "aten::bmm, sizes = [[1, 6, 8], [1, 8, 4]]"});
  const uint32_t weight =
      s.path({kNode + "BmmBackward0", "BmmBackward0", "aten::bmm, sizes = [[1, 8, 6], [1, 6, 4]]"});
  const uint32_t kernel = s.kernel("gemm", 6 * 8 * 4);
  s.launch(kMain, {s.call(kernel, forward, 1)});
  s.launch(kAutograd, {s.call(kernel, weight, 1)});
  check_expected(s.reduce().ratio.expected, 1, 1);
}
