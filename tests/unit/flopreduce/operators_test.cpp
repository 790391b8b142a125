// Formulas against loops that count, and what range names tell. Expected figures come from loops and
// from documents, never from the formulas. Those of whole networks: tests/networks.
#include <random>

#include "analytic/layers.h"
#include "analytic/operator_flop.h"
#include "analytic/optimizers.h"
#include "catch.h"

using namespace flopinj::reduce;

namespace {

Formula formula_of(const std::string& range, const Shape* output = nullptr,
                   const std::string& module = "") {
  const auto name = parse_operator_name(range);
  REQUIRE(name);
  const auto around = parse_operator_name(module);
  return operator_formula(*name, {name->has_sizes ? &name->sizes : nullptr,
                                  around ? &around->settings : nullptr, output});
}

uint64_t macs(const std::string& range, const Shape* output = nullptr,
              const std::string& module = "") {
  INFO(range);
  const Formula formula = formula_of(range, output, module);
  INFO(formula.why_not);
  REQUIRE(formula.flop);
  CHECK(formula.flop->arithmetic == 0);
  return static_cast<uint64_t>(formula.flop->multiply_adds);
}

// 0 where theory says nothing.
double gradients(const std::string& range) {
  const auto name = parse_operator_name(range);
  REQUIRE(name);
  return operator_gradients(*name).value_or(ProductGradients{}).all;
}

std::string text(const Shape& shape) {
  std::string s = "[";
  for (const int64_t d : shape) s += (s.size() > 1 ? ", " : "") + std::to_string(d);
  return s + "]";
}
std::string range(const std::string& name, const std::vector<Shape>& shapes) {
  std::string s = "aten::" + name + ", sizes = [";
  for (size_t i = 0; i < shapes.size(); ++i) s += (i != 0 ? ", " : "") + text(shapes[i]);
  return s + "]";
}

// A direct convolution, tap by tap, in up to three dimensions; taps on padding count.
struct Direct {
  int64_t batch, in, out, groups;
  Shape size, kernel, stride, padding;
  Shape result() const {
    Shape r{batch, out};
    for (size_t d = 0; d < size.size(); ++d) {
      int64_t n = 0;
      for (int64_t at = -padding[d]; at + kernel[d] <= size[d] + padding[d]; at += stride[d]) ++n;
      r.push_back(n);
    }
    return r;
  }
  uint64_t count() const {
    uint64_t taps = 0;
    const Shape r = result();
    Shape s(3, 1), k(3, 1);
    for (size_t d = 0; d < size.size(); ++d) s[d] = r[d + 2];
    for (size_t d = 0; d < size.size(); ++d) k[d] = kernel[d];
    for (int64_t n = 0; n < batch; ++n)
      for (int64_t o = 0; o < out; ++o)
        for (int64_t x = 0; x < s[0] * s[1] * s[2]; ++x)
          for (int64_t c = 0; c < in; ++c)
            if (c / (in / groups) == o / (out / groups))
              for (int64_t t = 0; t < k[0] * k[1] * k[2]; ++t) ++taps;
    return taps;
  }
  Shape input() const {
    Shape s{batch, in};
    s.insert(s.end(), size.begin(), size.end());
    return s;
  }
  Shape weight() const {
    Shape w{out, in / groups};
    w.insert(w.end(), kernel.begin(), kernel.end());
    return w;
  }
};

const Direct kConvolutions[] = {{2, 3, 4, 1, {9, 7}, {3, 3}, {1, 1}, {1, 1}},
                                {1, 4, 6, 2, {8, 8}, {3, 2}, {2, 1}, {1, 0}},
                                {3, 4, 4, 4, {6, 6}, {5, 5}, {1, 1}, {2, 2}},
                                {2, 2, 3, 1, {11}, {4}, {3}, {2}},
                                {1, 2, 4, 2, {5, 4, 6}, {2, 3, 1}, {1, 2, 2}, {0, 1, 0}}};

}  // namespace

TEST_CASE("names of emit_nvtx") {
  const auto name = parse_operator_name(
      "aten::conv2d, seq = 3, op_id = 7, sizes = [[64, 3, 224, 224], [], [64]], input_op_ids = "
      "[(5,0), (6,0)]");
  REQUIRE(name);
  CHECK(name->kind == OperatorKind::kFunction);
  CHECK(name->name == "aten::conv2d");
  CHECK(name->function() == "conv2d");
  CHECK(name->sequence == 3U);
  CHECK(name->has_sizes);
  CHECK(name->sizes == std::vector<Shape>{{64, 3, 224, 224}, {}, {64}});
  CHECK(parse_operator_name("aten::cat, sizes = [[[2, 3], [4, 5]], []]")->sizes ==
        std::vector<Shape>{{2, 3}, {4, 5}, {}});
  CHECK(parse_operator_name("aten::mm")->has_sizes == false);
  CHECK(parse_operator_name("aten::mm, sizes = []")->sizes.empty());
  // The recorder cuts long names.
  const auto cut = parse_operator_name("aten::mm, sizes = [[64, 3], [3,");
  REQUIRE(cut);
  CHECK_FALSE(cut->has_sizes);
  CHECK(cut->sizes.empty());
  CHECK_FALSE(parse_operator_name("aten::mm, sizes = [[-1, 3]]")->has_sizes);
  CHECK_FALSE(parse_operator_name("aten::mm, sizes = [[99999999999999999999]]")->has_sizes);
}

TEST_CASE("names of autograd nodes") {
  const auto outer =
      parse_operator_name("autograd::engine::evaluate_function: ConvolutionBackward0, seq = 3");
  REQUIRE(outer);
  CHECK(outer->kind == OperatorKind::kAutograd);
  CHECK(outer->name == "ConvolutionBackward");
  CHECK(outer->sequence == 3U);
  CHECK(parse_operator_name("AddmmBackward0, sizes = [[32, 10]]")->name == "AddmmBackward");
  CHECK(parse_operator_name("AddmmBackward#")->kind == OperatorKind::kAutograd);
  CHECK(parse_operator_name("torch::autograd::AccumulateGrad")->kind == OperatorKind::kAutograd);
}

TEST_CASE("names of modules and of PyProf") {
  const auto plain =
      parse_operator_name("Conv2d(3, 64, kernel_size=(7, 5), stride=(2, 2), padding=(3, 2))");
  REQUIRE(plain);
  CHECK(plain->kind == OperatorKind::kModule);
  CHECK(plain->name == "Conv2d");
  CHECK(plain->settings.kernel == Shape{7, 5});
  CHECK(plain->settings.stride == Shape{2, 2});
  CHECK(plain->settings.padding == Shape{3, 2});
  const auto marker = parse_operator_name(
      "{'mod': 'MaxPool2d', 'strRepr': 'kernel_size=3, stride=2, padding=1, ceil_mode=True'}");
  REQUIRE(marker);
  CHECK(marker->name == "MaxPool2d");
  CHECK(marker->settings.stride == Shape{2});
  CHECK(marker->settings.ceil_mode);
  const auto call = parse_operator_name(
      "{'mod': 'torch', 'op': 'matmul', 'args': [{'name': '', 'type': 'tensor', 'shape': (64, 32), "
      "'dtype': 'float16'}, {'name': '', 'type': 'tensor', 'shape': (32, 16), 'dtype': "
      "'float16'}]}");
  REQUIRE(call);
  CHECK(call->name == "matmul");
  CHECK(call->sizes == std::vector<Shape>{{64, 32}, {32, 16}});
}

TEST_CASE("other names are none of an operator") {
  for (const char* name : {"", "forward", "step 17", "layer:conv1", "loss.backward", "a, b = c",
                           "(", "::", "x::", "::y", "Backward0", "train step (warm-up)",
                           "{'mod': ''}", "std::vector<int>::push_back"})
    CHECK_FALSE(parse_operator_name(name));
}

TEST_CASE("products equal loops over rows, columns and the inner dimension") {
  std::mt19937 random(11);
  const auto size = [&] { return static_cast<int64_t>(random() % 6 + 1); };
  for (int i = 0; i < 50; ++i) {
    const int64_t b = size(), n = size(), k = size(), m = size();
    uint64_t one = 0;
    for (int64_t r = 0; r < n; ++r)
      for (int64_t c = 0; c < m; ++c)
        for (int64_t x = 0; x < k; ++x) ++one;
    const uint64_t all = one * static_cast<uint64_t>(b);
    CHECK(macs(range("mm", {{n, k}, {k, m}})) == one);
    CHECK(macs(range("addmm", {{m}, {n, k}, {k, m}, {}, {}})) == one);
    CHECK(macs(range("bmm", {{b, n, k}, {b, k, m}})) == all);
    CHECK(macs(range("baddbmm", {{b, n, m}, {b, n, k}, {b, k, m}, {}, {}})) == all);
    CHECK(macs(range("linear", {{b, n, k}, {m, k}, {m}})) == all);
    CHECK(macs(range("linear", {{k}, {m, k}, {m}})) == static_cast<uint64_t>(k * m));
    CHECK(macs(range("matmul", {{b, n, k}, {k, m}})) == all);
    CHECK(macs(range("matmul", {{b, 1, n, k}, {3, k, m}})) == 3 * all);
    CHECK(macs(range("matmul", {{k}, {k, m}})) == static_cast<uint64_t>(k * m));
    CHECK(macs(range("matmul", {{b, n, k}, {k}})) == static_cast<uint64_t>(b * n * k));
    CHECK(macs(range("mv", {{n, k}, {k}})) == static_cast<uint64_t>(n * k));
    CHECK(macs(range("linear_backward", {{b, n, k}, {b, n, m}, {m, k}})) == 2 * all);
  }
  CHECK_FALSE(formula_of("aten::mm, sizes = [[2, 3], [4, 5]]").flop);
  CHECK_FALSE(formula_of("aten::mm").flop);
  CHECK_FALSE(formula_of("aten::einsum, sizes = [[], [2, 3], [3, 4]]").flop);
  CHECK_FALSE(formula_of("aten::nobody_knows, sizes = [[2, 3]]").flop);
}

TEST_CASE("convolutions equal loops over outputs, channels and taps") {
  for (const Direct& c : kConvolutions) {
    const Shape output = c.result();
    const std::vector<Shape> arguments = {c.input(), c.weight(), {}, {}, {}, {}, {}};
    CHECK(macs(range("cudnn_convolution", arguments), &output) == c.count());
    CHECK(macs(range("conv2d", arguments), nullptr,
               "Conv2d(1, 1, kernel_size=1, stride=" + text(c.stride) +
                   ", padding=" + text(c.padding) + ")") == c.count());
    CHECK_FALSE(formula_of(range("conv2d", arguments)).flop);
    CHECK(macs(range("convolution_backward", {output, c.input(), c.weight(), {}})) ==
          2 * c.count());
    // A transposed convolution is the other's gradient by its input: ends swapped, same products.
    CHECK(macs(range("conv_transpose2d", {output, c.weight(), {}})) == c.count());
  }
  CHECK_FALSE(formula_of("aten::conv2d, sizes = [[1, 3, 8, 8], [4, 2, 3, 3]]").flop);
}

TEST_CASE("attention equals loops over heads, queries and keys") {
  const int64_t batch = 2, heads = 3, queries = 5, keys = 7, head = 4, value = 6;
  uint64_t forward = 0, backward = 0;
  for (int64_t i = 0; i < batch * heads * queries * keys; ++i) {
    for (int64_t e = 0; e < head; ++e) ++forward;    // score
    for (int64_t e = 0; e < value; ++e) ++forward;   // score x value
    for (int64_t e = 0; e < head; ++e) ++backward;   // the score again
    for (int64_t e = 0; e < value; ++e) ++backward;  // gradient by the score
    for (int64_t e = 0; e < value; ++e) ++backward;  // by the value
    for (int64_t e = 0; e < head; ++e) ++backward;   // by the query
    for (int64_t e = 0; e < head; ++e) ++backward;   // by the key
  }
  const Shape q{batch, heads, queries, head}, k{batch, heads, keys, head},
      v{batch, heads, keys, value}, o{batch, heads, queries, value};
  CHECK(macs(range("scaled_dot_product_attention", {q, k, v, {}, {}, {}})) == forward);
  CHECK(macs(range("_scaled_dot_product_flash_attention_backward", {o, q, k, v, o, {}})) ==
        backward);
  const Shape q2{batch, queries, heads, head}, k2{batch, keys, heads, head},
      v2{batch, keys, heads, value}, o2{batch, queries, heads, value};
  CHECK(macs(range("_flash_attention_forward", {q2, k2, v2, {}})) == forward);
  CHECK(macs(range("_flash_attention_backward", {o2, q2, k2, v2, o2})) == backward);
  CHECK_FALSE(formula_of("aten::_flash_attention_forward, sizes = [[70, 3, 4], [70, 3, 4]]").flop);
  // What the report expects of backward / forward.
  const auto ratio = static_cast<double>(backward) / static_cast<double>(forward);
  CHECK(gradients(range("scaled_dot_product_attention", {q, k, v, {}, {}, {}})) == Approx(ratio));
  CHECK(gradients(range("_flash_attention_forward", {q2, k2, v2, {}})) == Approx(ratio));
  CHECK(gradients("aten::_flash_attention_forward") == 0);  // not known without sizes
  CHECK(gradients(range("_scaled_dot_product_attention_math", {q, k, v})) == 2);
}

TEST_CASE("gradients of products: as much again for each operand") {
  // By the formulas of what runs backward: two products for linear, one operator for both elsewhere.
  const Shape x{6, 10}, w{4, 10}, dy{6, 4};
  const double forward = static_cast<double>(macs(range("linear", {x, w, {4}})));
  const double both =
      static_cast<double>(macs(range("mm", {dy, w})) + macs(range("mm", {{4, 6}, x})));
  CHECK(gradients(range("linear", {x, w, {4}})) * forward == both);
  const Direct& c = kConvolutions[0];
  CHECK(gradients(range("conv2d", {c.input(), c.weight()})) * static_cast<double>(c.count()) ==
        static_cast<double>(
            macs(range("convolution_backward", {c.result(), c.input(), c.weight()}))));
  // The gradient by a matrix that met a vector is an outer product, and no multiply-add.
  CHECK(gradients(range("matmul", {{6, 10}, {10}})) == 0);
  CHECK(gradients(range("matmul", {{6, 10}, {10, 3}})) == 2);
  for (const char* other : {"relu", "layer_norm", "mv", "avg_pool2d", "mm_nobody_knows"})
    CHECK(gradients(range(other, {{6, 10}, {10}})) == 0);
}

TEST_CASE("recurrent layers equal loops over steps, gates and weights") {
  const int64_t steps = 4, batch = 3, inputs = 5, units = 6, layers = 2;
  for (const auto& [name, gates] : {std::pair{"lstm", 4}, {"gru", 3}, {"rnn_tanh", 1}}) {
    uint64_t count = 0;
    std::vector<Shape> shapes = {{steps, batch, inputs}, {layers, batch, units}};
    for (int64_t layer = 0; layer < layers; ++layer) {
      const int64_t in = layer == 0 ? inputs : units;
      shapes.insert(shapes.end(), {{gates * units, in}, {gates * units, units}, {gates * units}});
      for (int64_t i = 0; i < steps * batch * gates * units; ++i)
        for (int64_t x = 0; x < in + units; ++x) ++count;
    }
    CHECK(macs(range(name, shapes)) == count);
    shapes[0] = {batch, steps, inputs};  // batch_first
    CHECK(macs(range(name, shapes)) == count);
  }
  const auto one_step = static_cast<uint64_t>(batch * 4 * units * (inputs + units));
  CHECK(macs(range("lstm_cell", {{batch, inputs},
                                 {batch, units},
                                 {batch, units},
                                 {4 * units, inputs},
                                 {4 * units, units}})) == one_step);
  CHECK(static_cast<uint64_t>(lstm_step_flop(5, 6)) * 3 == 2 * one_step);
}

TEST_CASE("element-wise operators: comparisons are apart from arithmetic") {
  const Formula relu = formula_of("aten::relu_, sizes = [[4, 5]]");
  REQUIRE(relu.flop);
  CHECK(relu.flop->flop(2) == 0);
  CHECK(relu.flop->uncounted == 20);
  const Formula back = formula_of("aten::threshold_backward, sizes = [[4, 5], [4, 5], []]");
  CHECK(back.backward);
  CHECK(back.flop->uncounted == 20);  // 1:1
  CHECK(formula_of("aten::add, sizes = [[4, 1, 5], [3, 1], []]").flop->arithmetic == 60);
  CHECK(formula_of("aten::embedding, sizes = [[100, 8], [3]]").flop->flop(2) == 0);
  const Shape pooled{2, 3, 4, 4};
  CHECK(formula_of("aten::avg_pool2d, sizes = [[2, 3, 8, 8], [], []]", &pooled).flop->arithmetic ==
        2 * 3 * 16 * (4 + 1));
}

// One layer norm and its gradients, every operation counted as it is done.
TEST_CASE("norms equal the algorithm, for long rows") {
  struct Count {
    uint64_t single = 0, fused = 0;
  };
  const int64_t rows = 3, width = 1000;
  Count forward, backward;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < width; ++i) ++forward.single;                   // sum += x
    for (int64_t i = 0; i < width; ++i) ++forward.single, ++forward.fused;  // d = x - m; s += d d
    for (int64_t i = 0; i < width; ++i)
      ++forward.single, ++forward.fused;  // (d / sigma) gamma + beta
    for (int64_t i = 0; i < width; ++i) {
      backward.single += 2;  // x^ = (x - m) / sigma
      backward.single += 1;  // g = dy gamma
      backward.single += 1;  // sum of g
      backward.fused += 1;   // sum of g x^
      backward.single += 1;  // beta's gradient
      backward.fused += 1;   // gamma's
    }
    for (int64_t i = 0; i < width; ++i) {
      backward.single += 1;  // g - mean
      backward.fused += 1;   // - x^ mean
      backward.single += 1;  // / sigma
    }
  }
  const Formula f = formula_of("aten::native_layer_norm, sizes = [[3, 1000], [], [1000], [1000]]");
  CHECK(f.flop->arithmetic == forward.single);
  CHECK(f.flop->multiply_adds == forward.fused);
  const Formula b = formula_of("aten::native_layer_norm_backward, sizes = [[3, 1000], [3, 1000]]");
  CHECK(b.flop->arithmetic == backward.single);
  CHECK(b.flop->multiply_adds == backward.fused);
}

TEST_CASE("optimizers per parameter") {
  CHECK(optimizer_step(Optimizer::kSgd, 10).flop(2) == 20);
  CHECK(optimizer_step(Optimizer::kSgdMomentum, 10).flop(2) == 40);
  const std::string four = "[10, 4], [10], [10, 4], [10], [10, 4], [10], [10, 4], [10], [], []";
  const Formula adam = formula_of("aten::_fused_adamw_, sizes = [" + four + "]");
  REQUIRE(adam.flop);
  CHECK(adam.flop->multiply_adds == 3 * 50);
  CHECK(adam.flop->arithmetic == 7 * 50);
  CHECK(adam.flop->uncounted == 50);
  CHECK(formula_of("aten::_fused_sgd_, sizes = [[10, 4], [10, 4], [10, 4]]").flop->multiply_adds ==
        80);
  CHECK(formula_of("aten::_fused_sgd_, sizes = [[10, 4], [10, 4]]").flop->multiply_adds == 40);
  CHECK_FALSE(formula_of("aten::_fused_adam_, sizes = [[10, 4], [9, 4], [10, 4], [10, 4]]").flop);
}

TEST_CASE("layer formulas of the training compute documents") {
  CHECK(static_cast<double>(lstm_step_flop(640000, 256)) == Approx(1.311e9).epsilon(5e-4));
  CHECK(fully_connected_flop(256, 10) == 5120);
  CHECK(attention_flop(
            {.heads = 16, .input = 64, .key = 64, .value = 64, .sequence = 20, .output = 1024}) ==
        2572288);
  CHECK(feed_forward_flop(1024, 4096) == 16777216);
  // 400 x 400 x 5 images, 16 filters of 5 x 5 x 5, stride 2, padding 2: the document's H^2 W^2 gives
  // 1.024e12, direct convolution 1.6e8.
  const uint64_t side = convolution_output(400, 5, 2, 2);
  CHECK(side == 200);
  const Direct direct{1, 5, 16, 1, {400, 400}, {5, 5}, {2, 2}, {2, 2}};
  CHECK(convolution_flop(side * side, 5, 25, 16) == 2 * direct.count());
}

TEST_CASE("no name makes sums wrap") {
  const std::string big = "9223372036854775807";
  const Formula f = formula_of("aten::bmm, sizes = [[" + big + ", " + big + ", " + big + "], [" +
                               big + ", " + big + ", " + big + "]]");
  REQUIRE(f.flop);
  CHECK(f.flop->flop(2) == kU128Max);
  CHECK(formula_of("aten::mm, sizes = [[0, 5], [5, 0]]").flop->flop(2) == 0);
}
