// Operators in reports: calls, formula against executed FLOP, causes, layers, and how backward
// finds its forward. Executed figures are samples made up here; expected ones are worked out by
// hand.
#include "operator_scene.h"
#include "report/explain.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

// One step of conv (2x3x8x8, 4 filters of 3x3, padding 1: 2*4*64*27 products) and linear (2x256,
// 10).
constexpr double kConv = 2 * 4 * 64 * 27, kLinear = 2 * 256 * 10;
struct Network {
  explicit Network(Scene& s)
      : conv(
            s.path({"step", "forward", "conv1",
                    "aten::conv2d, sizes = [[2, 3, 8, 8], [4, 3, 3, 3], [], [], [], [], []]",
                    "aten::convolution, sizes = [[2, 3, 8, 8], [4, 3, 3, 3], [], [], [], [], [], "
                    "[], []]",
                    "aten::_convolution, sizes = [[2, 3, 8, 8], [4, 3, 3, 3], [], [], [], [], [], "
                    "[], [], [], [], [], []]",
                    "aten::cudnn_convolution, sizes = [[2, 3, 8, 8], [4, 3, 3, 3], [], [], [], [], "
                    "[], [], []]"})),
        linear(s.path({"step", "forward", "fc", "aten::linear, sizes = [[2, 256], [10, 256], [10]]",
                       "aten::addmm, sizes = [[10], [2, 256], [256, 10], [], []]"})),
        linear_input(s.path({kNode + "AddmmBackward0", "AddmmBackward0, sizes = [[2, 10]]",
                             "aten::mm, sizes = [[2, 10], [10, 256]]"})),
        linear_weight(s.path({kNode + "AddmmBackward0", "AddmmBackward0, sizes = [[2, 10]]",
                              "aten::mm, sizes = [[10, 2], [2, 256]]"})),
        conv_back(
            s.path({kNode + "ConvolutionBackward0", "ConvolutionBackward0, sizes = [[2, 4, 8, 8]]",
                    "aten::convolution_backward, sizes = [[2, 4, 8, 8], [2, 3, 8, 8], [4, 3, "
                    "3, 3], [], []]"})),
        conv_kernel(s.kernel("implicit_gemm", kConv)),
        linear_kernel(s.kernel("gemm", kLinear)),
        wgrad(s.kernel("cudnn_wgrad", kConv)) {}
  void forward(Scene& s, uint64_t sequence, uint32_t thread = kMain) const {
    s.launch(thread,
             {s.at(conv_kernel, conv, sequence), s.at(linear_kernel, linear, sequence + 1)});
  }
  void backward(Scene& s, uint64_t sequence) const {
    s.launch(kAutograd,
             {s.at(linear_kernel, linear_input, sequence + 1),
              s.at(linear_kernel, linear_weight, sequence + 1), s.at(wgrad, conv_back, sequence)});
  }
  uint32_t conv, linear, linear_input, linear_weight, conv_back;
  uint32_t conv_kernel, linear_kernel, wgrad;
};

void check_network(const Report& r, uint64_t steps) {
  const auto& conv = type_of(r, "aten::conv2d", "forward");
  CHECK(conv.calls == steps);
  CHECK(conv.calls_counted);
  CHECK(conv.formula_flop ==
        static_cast<u128>(2 * kConv) * steps);  // the output is known from backward
  CHECK(conv.ratio == 1.0);
  CHECK(conv.cause.empty());
  CHECK(type_of(r, "aten::linear", "forward").ratio == 1.0);
  CHECK(type_of(r, "aten::mm", "backward").formula_flop == static_cast<u128>(4 * kLinear) * steps);
  const auto& back = type_of(r, "aten::convolution_backward", "backward");
  CHECK(back.ratio == 0.5);
  CHECK(back.cause == "no input gradient");
  REQUIRE(r.operators.layers.size() == 2);
  CHECK(r.operators.layers[0].name == "conv1");
  CHECK(r.operators.layers[0].ratio == 1.0);
  CHECK(r.operators.layers[0].expected->value() == 1.0);
  CHECK(r.operators.layers[1].name == "fc");
  CHECK(r.operators.layers[1].ratio == 2.0);
  CHECK(r.operators.layers[1].expected->value() == 2.0);
  CHECK(whole(r.operators.layers[1].backward_model.flop()) ==
        static_cast<u128>(4 * kLinear) * steps);
  CHECK(r.operators.joined == 3 * steps);
  // The convolution is the first layer; linear's two products of backward are its own.
  REQUIRE(r.operators.by_forward.size() == 2);
  const auto times = static_cast<double>(steps);
  check_pair(by_forward(r, "aten::conv2d"), 2 * kConv * times, 2 * kConv * times, 1, 1);
  check_pair(by_forward(r, "aten::linear"), 2 * kLinear * times, 4 * kLinear * times, 2, 2);
  CHECK(by_forward(r, "aten::linear").forward.time.ns == 100 * steps);
  CHECK(by_forward(r, "aten::linear").backward.time.ns == 200 * steps);
  CHECK(whole(by_forward(r, "aten::linear").backward_model.flop()) ==
        static_cast<u128>(4 * kLinear) * steps);
}

}  // namespace

TEST_CASE("operators: calls, formulas and layers of a small network") {
  Scene s;
  const Network n(s);
  for (uint64_t step = 0; step < 5; ++step) {
    n.forward(s, 10 * step);
    n.backward(s, 10 * step);
  }
  check_network(s.reduce(), 5);
}

TEST_CASE("operators: backward may come before forward in a trace") {
  Scene s;
  const Network n(s);
  for (uint64_t step = 0; step < 3; ++step) {
    n.backward(s, 10 * step);
    n.forward(s, 10 * step);
  }
  check_network(s.reduce(), 3);
}

TEST_CASE("operators: what finds no forward is counted") {
  Scene s;
  const Network n(s);
  n.forward(s, 100'000);  // 100,000 - 65,536 is still in its window
  n.backward(s, 100'000 - 65'536);
  n.backward(s, 7);  // nobody's, and nobody comes
  const Report r = s.reduce(true);
  CHECK(r.operators.joined == 0);
  CHECK(r.operators.out_of_window == 3);
  CHECK(r.operators.without_forward == 3);
  // Its work stands by the node's name, and no ratio is made of half of it.
  const auto& lost = by_forward(r, "AddmmBackward");
  CHECK(lost.forward.launches == 0);
  CHECK(lost.backward.flop == static_cast<u128>(8 * kLinear));
  CHECK_FALSE(lost.ratio);
  CHECK_FALSE(by_forward(r, "aten::linear").ratio);
}

TEST_CASE("operators: numbers count per thread, so two threads of a device may share one") {
  Scene s;
  s.trace().thread(3, "worker");
  const Network n(s);
  n.forward(s, 0);
  n.forward(s, 0, 3);
  n.backward(s, 0);
  const Report r = s.reduce();
  CHECK(r.operators.joined == 0);
  CHECK(r.operators.ambiguous == 3);
}

TEST_CASE("operators: a number alone does not join unlike operators") {
  Scene s;
  const Network n(s);
  s.launch(kMain, {s.at(n.linear_kernel, n.linear, 5)});
  s.launch(kAutograd, {s.at(n.wgrad, n.conv_back, 5)});
  const Report r = s.reduce();
  CHECK(r.operators.joined == 0);
  CHECK(r.operators.other_operator == 1);
}

TEST_CASE("operators: sixteen launches of one call are one call") {
  Scene s;
  const uint32_t path = s.path({"forward", "aten::mm, sizes = [[64, 64], [64, 64]]"});
  const uint32_t kernel = s.kernel("gemm_split", 64.0 * 64 * 64 / 16);
  s.launch(kMain, std::vector<Launch>(16, s.at(kernel, path, 3)));
  s.launch(kMain, std::vector<Launch>(16, s.at(kernel, path, 4)));
  const Report r = s.reduce();
  const auto& mm = type_of(r, "aten::mm", "forward");
  CHECK(mm.calls == 2);
  CHECK(mm.work.launches == 32);
  CHECK(mm.ratio == 1.0);
  REQUIRE(r.operators.places.size() == 1);
  CHECK(r.operators.places[0].evidence == "16 launches of one kernel per call");
}

TEST_CASE("operators: a call cut in two by a batch is one call") {
  Scene s;
  const uint32_t path = s.path({"forward", "aten::mm, sizes = [[4, 4], [4, 4]]"});
  const uint32_t kernel = s.kernel("gemm_split", 32);
  s.launch(kMain, {s.at(kernel, path, 3)});
  s.launch(kMain, {s.at(kernel, path, 3), s.at(kernel, path, 4), s.at(kernel, path, 4)});
  CHECK(type_of(s.reduce(), "aten::mm", "forward").calls == 2);
}

TEST_CASE("operators: the two gradients of a square product share number and sizes") {
  Scene s(true);
  const uint32_t path =
      s.path({kNode + "MmBackward0", "MmBackward0", "aten::mm, sizes = [[8, 8], [8, 8]]"});
  const uint32_t kernel = s.kernel("gemm", 512);
  s.launch(kAutograd, {s.call(kernel, path, 3), s.call(kernel, path, 3)});
  const auto mm = type_of(s.reduce(), "aten::mm", "backward");
  CHECK(mm.calls == 2);
  CHECK(mm.ratio == 1.0);
}

TEST_CASE("operators: they do so where another kernel computes each") {
  Scene s(true);
  const std::string node = kNode + "MmBackward0";
  const uint32_t square = s.path({node, "MmBackward0", "aten::mm, sizes = [[8, 8], [8, 8]]"});
  const uint32_t other = s.path({node, "MmBackward0", "aten::mm, sizes = [[8, 8], [8, 4]]"});
  const uint32_t of_weights = s.kernel("gemm_tn", 512), of_input = s.kernel("gemm_nn", 512);
  const uint32_t split = s.kernel("gemm_split", 256), reduce = s.kernel("split_reduce", 0, 64);
  s.launch(kAutograd, {s.call(of_weights, square, 3), s.call(of_input, square, 3)});
  s.launch(kAutograd, {s.call(split, other, 4), s.at(reduce, other, 4)});  // one call
  const auto mm = type_of(s.reduce(), "aten::mm", "backward");
  CHECK(mm.calls == 3);
  CHECK(mm.formula_flop == static_cast<u128>(2 * 2 * 512 + 2 * 256));
}

TEST_CASE("operators: without numbers calls are an estimate") {
  Scene s;
  const uint32_t path = s.path({"forward", "aten::mm, sizes = [[64, 64], [64, 64]]"});
  s.trace().tally({{s.kernel("gemm_split", 64.0 * 64 * 64 / 16), 160, 0, 0, path}});
  const auto mm = type_of(s.reduce(), "aten::mm", "forward");
  CHECK_FALSE(mm.calls_counted);
  CHECK(mm.calls == 160);
  CHECK(*mm.ratio == Approx(1.0 / 16));
  CHECK(mm.cause == "unexplained");
}

TEST_CASE("operators: causes come from evidence") {
  Scene s;
  uint64_t sequence = 0;
  const auto once = [&](const std::string& op, uint32_t kernel) {
    s.launch(kMain, {s.at(kernel, s.path({"forward", op}), ++sequence)});
  };
  // 100 x 60 as 128 x 64 with an inner dimension of 32, on tensor cores.
  once("aten::mm, sizes = [[100, 32], [32, 60]]",
       s.kernel("sm90_gemm_bf16_128x64_32x3_tn", 0, 0, 2.0 * 128 * 64 * 32));
  once("aten::bmm, sizes = [[2, 8, 8], [2, 8, 8]]", s.kernel("some_kernel", 2 * 512 * 3));
  once("aten::addmm, sizes = [[8], [4, 8], [8, 8]]", s.kernel("gemm_plain", 256, 32));
  once("aten::matmul, sizes = [[8, 8], [8, 8]]", s.kernel("triton_poi_fused_mm", 512 + 100));
  once("aten::baddbmm, sizes = [[1, 8, 8], [1, 8, 8], [1, 8, 8]]", s.unmeasured("secret"));
  once("aten::conv2d, sizes = [[1, 4, 8, 8], [4, 4, 3, 3]]", s.kernel("implicit_precomp", 100));
  once("aten::conv_transpose2d, sizes = [[1, 4, 8, 8], [4, 4, 3, 3]]",
       s.kernel("winograd_nonfused_4x4", 64 * 4 * 4 * 4));
  once("aten::relu, sizes = [[8, 8]]", s.kernel("relu", 0));
  once("aten::mine, sizes = [[8, 8]]", s.kernel("mine", 10));
  const Report r = s.reduce();
  const auto cause = [&](const std::string& name) { return type_of(r, name, "forward").cause; };
  CHECK(cause("aten::mm") == "tile padding");
  CHECK(type_of(r, "aten::mm", "forward").evidence.find("100 x 60 computed as 128 x 64") == 0);
  CHECK(cause("aten::bmm") == "unexplained");
  CHECK(cause("aten::addmm") == "bias");
  CHECK(cause("aten::matmul") == "fused");
  CHECK(cause("aten::baddbmm") == "no hardware count");
  CHECK(cause("aten::conv2d") == "no formula");
  CHECK(cause("aten::conv_transpose2d") == "Winograd");
  CHECK(cause("aten::relu") == "not counted");
  CHECK(cause("aten::mine") == "no formula");
}

TEST_CASE("operators: a module's settings tell what the operator's name leaves out") {
  Scene s;
  const uint32_t path = s.path(
      {"forward", "Conv2d(4, 4, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), bias=False)",
       "aten::conv2d, sizes = [[1, 4, 8, 8], [4, 4, 3, 3], [], [], [], [], []]"});
  s.launch(kMain, {s.at(s.kernel("conv", 4 * 4 * 4 * 36), path, 1)});
  CHECK(type_of(s.reduce(), "aten::conv2d", "forward").ratio == 1.0);
}

// As many channels in as out, steps of 2, and windows that overlap: neither gradient's name says by
// how much, but the forward operator's name and its module do.
TEST_CASE("operators: what a backward operator's name leaves out its forward operator tells") {
  Scene s;
  const std::string sizes = "[[1, 4, 8, 8], [4, 4, 3, 3], [], [], [], [], []]";
  const auto convolution =
      s.path({"forward", "aten::conv2d, sizes = " + sizes, "aten::convolution, sizes = " + sizes});
  const auto pool = s.path({"forward", "AvgPool2d(kernel_size=3, stride=2, padding=1)",
                            "aten::avg_pool2d, sizes = [[1, 4, 8, 8], [], [], [], [], [], []]"});
  const auto gradient =
      s.path({kNode + "ConvolutionBackward0", "ConvolutionBackward0",
              "aten::convolution_backward, sizes = [[1, 4, 4, 4], [1, 4, 8, 8], [4, 4, 3, 3]]"});
  const auto pool_gradient =
      s.path({kNode + "AvgPool2DBackward0", "AvgPool2DBackward0",
              "aten::avg_pool2d_backward, sizes = [[1, 4, 4, 4], [1, 4, 8, 8]]"});
  constexpr double multiply_adds = 4 * 4 * 4 * 36;
  // 4 x 4 windows of 3 x 3, the first row and column of which is padding; and their scaling.
  constexpr double pooled = 4 * ((3 * 3 + 2) * (3 * 3 + 2) + 16);
  s.launch(kMain, {s.at(s.kernel("conv", multiply_adds), convolution, 1),
                   s.at(s.kernel("pool", 0, pooled), pool, 2)});
  s.launch(kMain, {s.at(s.kernel("pool_back", 0, pooled), pool_gradient, 2),
                   s.at(s.kernel("conv_back", 2 * multiply_adds), gradient, 1)});
  const Report r = s.reduce();
  const auto check = [&](const char* name, const char* phase) {
    const OperatorReport& o = type_of(r, name, phase);
    INFO(name << ": " << o.cause << ", " << o.evidence);
    CHECK(o.ratio == 1.0);
  };
  check("aten::conv2d", "forward");
  check("aten::avg_pool2d", "forward");
  check("aten::convolution_backward", "backward");
  check("aten::avg_pool2d_backward", "backward");
}

TEST_CASE("operators: backward / forward by forward operator, against theory") {
  Scene s;
  // Multiply-adds: outputs x inputs of one output; scores x (key and value widths) for attention.
  constexpr double kFirst = 2 * 4 * 64 * 27, kSecond = 2 * 8 * 64 * 36;
  constexpr double kScores = 2 * 16 * 16, kHead = 8, kValue = 4;
  const auto convolution = [&](const std::string& layer, const std::string& sizes) {
    return s.path({"forward", layer, "aten::conv2d, sizes = " + sizes,
                   "aten::convolution, sizes = " + sizes});
  };
  const auto gradient = [&](const std::string& sizes) {
    return s.path({kNode + "ConvolutionBackward0", "ConvolutionBackward0",
                   "aten::convolution_backward, sizes = " + sizes});
  };
  convolution("conv1", "[[2, 3, 8, 8], [4, 3, 3, 3], []]");  // entered first
  const std::string attention = "sizes = [[1, 2, 16, 8], [1, 2, 16, 8], [1, 2, 16, 4]]";
  const uint32_t fused =
      s.path({"forward", "attention", "aten::scaled_dot_product_attention, " + attention,
              "aten::_scaled_dot_product_flash_attention, " + attention});
  const uint32_t fused_back = s.path(
      {kNode + "ScaledDotProductFlashAttentionBackward0", "ScaledDotProductFlashAttentionBackward0",
       "aten::_scaled_dot_product_flash_attention_backward, sizes = [[1, 2, 16, 4], [1, 2, 16, 8], "
       "[1, 2, 16, 8], [1, 2, 16, 4], [1, 2, 16, 4], [1, 2, 16]]"});
  const uint32_t relu = s.path({"forward", "act", "aten::relu, sizes = [[2, 8, 8, 8]]"});
  const uint32_t relu_back = s.path({kNode + "ReluBackward0", "ReluBackward0",
                                     "aten::threshold_backward, sizes = [[2, 8, 8, 8], [2, 8, 8, "
                                     "8], []]"});
  const uint32_t first = s.kernel("conv_a", kFirst), second = s.kernel("conv_b", kSecond);
  const uint32_t wgrad1 = s.kernel("wgrad_a", kFirst), wgrad2 = s.kernel("wgrad_b", kSecond);
  const uint32_t dgrad2 = s.kernel("dgrad_b", kSecond);
  const uint32_t flash = s.kernel("flash", 0, 0, 2 * kScores * (kHead + kValue));
  const uint32_t flash_back = s.kernel("flash_b", 0, 0, 2 * kScores * (3 * kHead + 2 * kValue));
  const uint32_t compare = s.kernel("relu", 0);
  s.launch(kMain, {s.at(first, convolution("conv1", "[[2, 3, 8, 8], [4, 3, 3, 3], []]"), 1),
                   s.at(second, convolution("conv2", "[[2, 4, 8, 8], [8, 4, 3, 3], []]"), 2),
                   s.at(compare, relu, 3), s.at(flash, fused, 4)});
  const uint32_t back2 = gradient("[[2, 8, 8, 8], [2, 4, 8, 8], [8, 4, 3, 3], []]");
  s.launch(kAutograd,
           {s.at(flash_back, fused_back, 4), s.at(compare, relu_back, 3), s.at(dgrad2, back2, 2),
            s.at(wgrad2, back2, 2),
            s.at(wgrad1, gradient("[[2, 4, 8, 8], [2, 3, 8, 8], [4, 3, 3, 3], []]"), 1)});
  const Report r = s.reduce();
  // Of the first layer's two gradients one is not needed.
  const double all = kFirst + kSecond, both = kFirst + 2 * kSecond;
  check_pair(by_forward(r, "aten::conv2d"), 2 * all, 2 * both, both / all, both / all);
  const double products = (3 * kHead + 2 * kValue) / (kHead + kValue);
  check_pair(by_forward(r, "aten::scaled_dot_product_attention"), 2 * kScores * (kHead + kValue),
             2 * kScores * (3 * kHead + 2 * kValue), products, products);
  const auto& act = by_forward(r, "aten::relu");
  CHECK(act.forward.launches == 1);
  CHECK(act.backward.launches == 1);
  CHECK_FALSE(act.ratio);
  CHECK_FALSE(act.expected);
  CHECK(text_of(r).find("Operators: forward and backward") != std::string::npos);
}

TEST_CASE("operators: attention that is not fused takes two products for one in backward") {
  Scene s;
  const std::string qkv = "sizes = [[1, 2, 16, 8], [1, 2, 16, 8], [1, 2, 16, 8]]";
  const uint32_t forward = s.path({"forward", "aten::scaled_dot_product_attention, " + qkv,
                                   "aten::_scaled_dot_product_attention_math, " + qkv,
                                   "aten::matmul, sizes = [[1, 2, 16, 8], [1, 2, 8, 16]]",
                                   "aten::bmm, sizes = [[2, 16, 8], [2, 8, 16]]"});
  const uint32_t softmax = s.path({"forward", "aten::scaled_dot_product_attention, " + qkv,
                                   "aten::_scaled_dot_product_attention_math, " + qkv,
                                   "aten::softmax, sizes = [[1, 2, 16, 16], [], []]"});
  const uint32_t backward = s.path(
      {kNode + "BmmBackward0", "BmmBackward0", "aten::bmm, sizes = [[2, 16, 16], [2, 16, 8]]"});
  const double product = 2 * 16 * 16 * 8;
  const uint32_t bmm = s.kernel("bmm", product);
  s.launch(kMain, {s.at(bmm, forward, 1), s.at(s.kernel("softmax", 0, 100), softmax, 2),
                   s.at(bmm, forward, 3)});
  s.launch(kAutograd, {s.at(bmm, backward, 3), s.at(bmm, backward, 3), s.at(bmm, backward, 1),
                       s.at(bmm, backward, 1)});
  check_pair(by_forward(s.reduce(), "aten::scaled_dot_product_attention"), 4 * product + 100,
             8 * product, 2, 2);
}

TEST_CASE("operators: one backward range of two forward operators is shared out, and explained") {
  Scene s;
  const std::string addmm = "aten::addmm, sizes = [[8], [4, 8], [8, 8], [], []]";
  // No range says forward: what a backward operator has the number of did run forward.
  const uint32_t linear = s.path({"net", "aten::linear, sizes = [[4, 8], [8, 8], [8]]", addmm});
  const uint32_t plain = s.path({"net", addmm});
  const uint32_t back = s.path({kNode + "AddmmBackward0", "aten::mm, sizes = [[4, 8], [8, 8]]"});
  const uint32_t gemm = s.kernel("gemm", 256), half = s.kernel("half", 128);
  s.launch(kMain, {s.at(gemm, linear, 1), s.at(gemm, linear, 2), s.at(gemm, linear, 3),
                   s.at(half, plain, 4)});
  s.launch(kAutograd,
           {s.at(gemm, back, 1), s.at(gemm, back, 2), s.at(gemm, back, 3), s.at(gemm, back, 4)});
  s.trace().end();
  const Report r = reduce_bytes({s.trace().bytes()});
  // No product of backward has the weights' sizes: as if these were frozen.
  check_pair(by_forward(r, "aten::linear"), 3 * 512, 3 * 512, 1, 1);
  check_pair(by_forward(r, "aten::addmm"), 256, 512, 2, 1);
  CHECK(explain(r, {FigureKind::kOperator, "aten::linear"}).part.total.flop == 6 * 512);
  CHECK(explain(r, {FigureKind::kOperator, "aten::addmm"}).part.total.flop == 256 + 512);
  CHECK(explain(r, {FigureKind::kTotal, "total"}).part.total.flop == r.total.flop);
  // The product that both called for in backward is named in the table of operators, too.
  CHECK(explain(r, {FigureKind::kOperator, "aten::mm"}).part.total.flop == 4 * 512);
  for (const char* name : {"aten::linear", "aten::mm"}) {
    REQUIRE(figures_named(r, name).size() == 1);
    CHECK(figures_named(r, name)[0].kind == FigureKind::kOperator);
  }
}

TEST_CASE("operators: no ratio where a part is not measured") {
  Scene s;
  const std::string mm = "aten::mm, sizes = [[8, 8], [8, 8]]";
  const uint32_t back = s.path({kNode + "MmBackward0", mm});
  s.launch(kMain, {s.at(s.kernel("gemm", 512), s.path({"forward", mm}), 1)});
  s.launch(kAutograd, {s.at(s.kernel("gemm_b", 1024), back, 1), s.at(s.unmeasured("x"), back, 1)});
  const Report r = s.reduce();
  const auto& row = by_forward(r, "aten::mm");
  CHECK(row.backward.flop == 2048);
  CHECK_FALSE(row.ratio);
  REQUIRE(row.expected);  // nothing tells whether the first product computes its input's gradient
  CHECK(row.expected->least == 1);
  CHECK(row.expected->most == 2);
}

TEST_CASE("operators: recomputation is apart from what the model needs") {
  Scene s;
  const std::string mm = "aten::mm, sizes = [[8, 8], [8, 8]]";
  const uint32_t kernel = s.kernel("gemm", 512);
  s.launch(kMain, {s.at(kernel, s.path({"forward", mm}), 1)});
  s.launch(kAutograd, {s.at(kernel, s.path({kNode + "CheckpointFunctionBackward", mm}), 1)});
  const Report r = s.reduce();
  CHECK(type_of(r, "aten::mm", "recompute").cause == "recompute");
  CHECK(model_flop(r) == 1024);
  CHECK(r.operators.recompute.flop == 1024);
  CHECK(by_forward(r, "aten::mm").recompute.flop == 1024);
  CHECK(by_forward(r, "aten::mm").backward.launches == 0);
}

TEST_CASE("operators: the JSON is what the report says") {
  Scene s;
  const Network n(s);
  n.forward(s, 0);
  n.backward(s, 0);
  const auto j = json_of(s.reduce());
  REQUIRE(j["operators"].size() == 4);
  u128 executed = 0;
  for (const auto& o : j["operator_places"]) executed += o["flop"].get<uint64_t>();
  CHECK(executed == j["figures"]["flop"].get<uint64_t>());
  CHECK(j["layers"][0]["expected_ratio"] == 1);
  REQUIRE(j["operator_work"].size() == 2);
  u128 worked = 0;
  for (const auto& o : j["operator_work"])
    for (const char* part : {"forward_flop", "backward_flop"}) worked += o[part].get<uint64_t>();
  CHECK(worked == executed);
}

TEST_CASE("layers and operators: their share of the forward pass, where all of it is known") {
  const auto share = [](const nlohmann::json& j, const char* table, size_t row) {
    return j[table][row]["forward_share"];
  };
  Scene s;
  const Network n(s);
  n.forward(s, 0);
  n.backward(s, 0);
  // Half as much as the convolution, in forward and in no layer and no operator.
  s.launch(kMain, {s.at(s.kernel("glue", kConv / 2), s.path({"step", "forward"}), 9)});
  const auto j = json_of(s.reduce());
  const double whole = 1.5 * kConv + kLinear;
  CHECK(share(j, "layers", 0).get<double>() == Approx(kConv / whole));
  CHECK(share(j, "layers", 1).get<double>() == Approx(kLinear / whole));
  CHECK(share(j, "operator_work", 0).get<double>() == Approx(kConv / whole));

  Scene t;
  const Network m(t);
  m.forward(t, 0);
  t.launch(kMain, {t.at(t.unmeasured("secret"), t.path({"step", "forward"}), 9)});
  const auto unknown = json_of(t.reduce());
  CHECK(share(unknown, "layers", 0).is_null());
  CHECK(share(unknown, "operator_work", 0).is_null());
}
