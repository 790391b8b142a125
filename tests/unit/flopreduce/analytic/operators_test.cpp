// Formulas against loops that count, and what range names tell. Expected figures come from loops
// and from documents, never from the formulas. Those of whole networks: tests/networks.
#include <random>

#include "counted.h"
#include "operator_names.h"

using namespace flopinj::reduce;
using namespace flopinj::test;

namespace {

// 0 where theory says nothing.
double gradients(const std::string& range) {
  const auto name = parse_operator_name(range);
  REQUIRE(name);
  return operator_gradients(*name).value_or(ProductGradients{}).all;
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
  // As many arguments as a name has room for, and no more.
  const auto lists = [](size_t arguments) {
    std::string text = "aten::_foreach_sqrt, sizes = [";
    for (size_t i = 0; i + 1 < arguments; ++i) text += "[], ";
    return text + "[]]";
  };
  CHECK(parse_operator_name(lists(8'000))->sizes.size() == 8'000);
  CHECK(parse_operator_name(lists(kMaxArguments))->has_sizes);
  CHECK_FALSE(parse_operator_name(lists(kMaxArguments + 1))->has_sizes);
}

TEST_CASE("names of autograd nodes") {
  const auto outer =
      parse_operator_name("autograd::engine::evaluate_function: ConvolutionBackward0, op_id = 147");
  REQUIRE(outer);
  CHECK(outer->kind == OperatorKind::kAutograd);
  CHECK(outer->name == "ConvolutionBackward");
  CHECK_FALSE(outer->sequence);
  const auto node = parse_operator_name(
      "ConvolutionBackward0, seq = 3, op_id = 148, sizes = [[4, 16, 4, 4]], input_op_ids = "
      "[(146,0)]");
  REQUIRE(node);
  CHECK(node->name == "ConvolutionBackward");
  CHECK(node->sequence == 3U);
  CHECK(node->sizes == std::vector<Shape>{{4, 16, 4, 4}});
  CHECK(parse_operator_name("AddmmBackward0, sizes = [[32, 10]]")->name == "AddmmBackward");
  CHECK(parse_operator_name("AddmmBackward#")->kind == OperatorKind::kAutograd);
  CHECK(parse_operator_name("torch::autograd::AccumulateGrad")->kind == OperatorKind::kAutograd);
}

// As python/flopinj/torch/observer.cpp writes them.
TEST_CASE("names of operators with settings of their own, and with types") {
  const auto conv = parse_operator_name(
      "aten::convolution_backward, sizes = [[2, 4], [], [3]], stride = [2, 1], padding = [1, 0], "
      "dilation = [1, 2], transposed = False");
  REQUIRE(conv);
  CHECK(conv->kind == OperatorKind::kFunction);
  CHECK(conv->name == "aten::convolution_backward");
  CHECK(conv->sizes == std::vector<Shape>{{2, 4}, {}, {3}});
  CHECK(conv->settings ==
        OperatorSettings{
            .stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}, .transposed = false});
  const auto pool = parse_operator_name(
      "aten::avg_pool2d, seq = #, sizes = [[2, 4]], kernel_size = [3, 3], stride = [], ceil_mode = "
      "True");
  REQUIRE(pool);
  CHECK(pool->own_number);
  CHECK(pool->settings == OperatorSettings{.kernel = {3, 3}, .ceil_mode = true});
  CHECK(parse_operator_name("aten::conv2d, sizes = [[2]], padding = same")->settings.padding_same);
  CHECK(parse_operator_name("aten::_adaptive_avg_pool2d, sizes = [[2]], output_size = [5, 3]")
            ->settings.output == Shape{5, 3});
  CHECK_FALSE(parse_operator_name("aten::mm, sizes = [[2, 2], [2, 2]]")->complex);
  CHECK(parse_operator_name("aten::mm, sizes = [[2, 2], [2, 2]], types = [ComplexFloat, Float]")
            ->complex);
  CHECK(parse_operator_name("aten::conv2d, sizes = [[2]], stride = ??")->settings ==
        OperatorSettings{});
}

TEST_CASE("a product of complex numbers is four of real ones") {
  const std::string product = "aten::mm, sizes = [[2, 3], [3, 4]]";
  CHECK(flop_of(product + ", types = [ComplexFloat, ComplexFloat]").multiply_adds ==
        4 * flop_of(product).multiply_adds);
  const std::string sum = "aten::add, sizes = [[2, 3], [2, 3], []]";
  CHECK(flop_of(sum + ", types = [ComplexFloat, ComplexFloat, -]") == flop_of(sum));
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
  CHECK(marker->settings.ceil_mode == true);
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

TEST_CASE("products of groups: rows, inner dimension or columns dealt out to them") {
  const int64_t groups = 3, n = 4, k = 5, m = 2;
  uint64_t rows = 0, inner = 0, columns = 0;
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t share = g + 2;  // of 2 + 3 + 4
    for (int64_t r = 0; r < share; ++r)
      for (int64_t x = 0; x < k * m; ++x) ++rows;
    for (int64_t r = 0; r < n; ++r)
      for (int64_t x = 0; x < share * m; ++x) ++inner;
    for (int64_t r = 0; r < n; ++r)
      for (int64_t x = 0; x < k * share; ++x) ++columns;
  }
  for (const char* name : {"_grouped_mm", "_scaled_grouped_mm"}) {
    CHECK(macs(range(name, {{9, k}, {groups, k, m}, {groups}})) == rows);
    CHECK(macs(range(name, {{n, 9}, {9, m}, {groups}})) == inner);
    CHECK(macs(range(name, {{groups, n, k}, {k, 9}, {groups}})) == columns);
    CHECK(macs(range(name, {{groups, n, k}, {groups, k, m}, {}})) ==
          static_cast<uint64_t>(groups * n * k * m));
  }
  CHECK_FALSE(formula_of("aten::_grouped_mm, sizes = [[9, 5], [3, 4, 2], [3]]").flop);
}

TEST_CASE("bilinear layers: the first operand with the weights, the result with the second") {
  const int64_t rows = 3, out = 2, in1 = 4, in2 = 5;
  uint64_t count = 0;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t o = 0; o < out; ++o)
      for (int64_t j = 0; j < in2; ++j) {
        for (int64_t i = 0; i < in1; ++i) ++count;
        ++count;
      }
  CHECK(macs(range("bilinear", {{rows, in1}, {rows, in2}, {out, in1, in2}, {out}})) == count);
  CHECK_FALSE(formula_of(range("bilinear", {{rows, in1}, {2, in2}, {out, in1, in2}, {out}})).flop);
}

TEST_CASE("convolutions equal loops over outputs, channels and taps") {
  for (const Direct& c : kConvolutions) {
    const Shape output = c.result();
    const std::vector<Shape> arguments = {c.input(), c.weight(), {}, {}, {}, {}, {}};
    CHECK(macs(range("cudnn_convolution", arguments), {.output = &output}) == c.count());
    CHECK(macs(range("conv2d", arguments),
               {.module = "Conv2d(1, 1, kernel_size=" + text(c.kernel) + ", stride=" +
                          text(c.stride) + ", padding=" + text(c.padding) + ")"}) == c.count());
    CHECK_FALSE(formula_of(range("conv2d", arguments)).flop);
    CHECK(macs(range("convolution_backward", {output, c.input(), c.weight(), {}}),
               {.forward = "aten::conv2d"}) == 2 * c.count());
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

// What a query sees, by the definitions. First key from the left: scaled_dot_product_attention's
// documentation (tril with diagonal 0). Last query at the last key: FlashAttention's README.
struct Seen {
  int64_t queries, keys;
  bool causal = false;
  int64_t left = -1, right = -1, chunk = 0;
  bool from_last = true;
  bool sees(int64_t query, int64_t key) const {
    const int64_t at = from_last ? query + keys - queries : query;  // the key at its own place
    if (causal && key > at) return false;
    if (left >= 0 && key < at - left) return false;
    if (right >= 0 && key > at + right) return false;
    if (chunk > 0 && (at < 0 || key / chunk != at / chunk)) return false;
    return true;
  }
  uint64_t pairs() const {
    uint64_t count = 0;
    for (int64_t query = 0; query < queries; ++query)
      for (int64_t key = 0; key < keys; ++key) count += sees(query, key) ? 1 : 0;
    return count;
  }
};

TEST_CASE("attention: of a mask that a name tells, the pairs that it leaves in") {
  const int64_t batch = 2, heads = 3, head = 4, value = 6;
  std::mt19937 random(7);
  const auto drawn = [&](int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random);
  };
  for (int round = 0; round < 400; ++round) {
    Seen seen{drawn(1, 40), drawn(1, 40)};
    if (round % 3 == 0) seen.keys = seen.queries;
    seen.causal = drawn(0, 1) == 1;
    const auto flag = [&] { return std::string(seen.causal ? "True" : "False"); };
    const Shape q{batch, seen.queries, heads, head}, k{batch, seen.keys, heads, head},
        v{batch, seen.keys, heads, value}, o{batch, seen.queries, heads, value};
    const uint64_t per_pair = batch * heads * (head + value);
    {
      INFO(seen.queries << " x " << seen.keys << " causal " << seen.causal);
      Seen first = seen;
      first.from_last = false;
      const Shape q2{batch, heads, seen.queries, head}, k2{batch, heads, seen.keys, head},
          v2{batch, heads, seen.keys, value};
      CHECK(macs(range("scaled_dot_product_attention", {q2, k2, v2}) + ", is_causal = " + flag()) ==
            first.pairs() * per_pair);
    }
    seen.left = drawn(-1, 45);
    seen.right = drawn(-1, 45);
    if (round % 2 == 0) seen.chunk = drawn(0, 12);
    const std::string mask = "causal = " + flag() +
                             ", window_size_left = " + std::to_string(seen.left) +
                             ", window_size_right = " + std::to_string(seen.right);
    const std::string chunked = mask + ", attention_chunk = " + std::to_string(seen.chunk);
    INFO(seen.queries << " x " << seen.keys << ": " << chunked);
    CHECK(macs("flash_attn_3::_flash_attn_forward, " + range("", {q, k, v}).substr(8) + ", " +
               chunked) == seen.pairs() * per_pair);
    seen.chunk = 0;
    const Formula formula =
        formula_of(range("_flash_attention_forward", {q, k, v}) + ", is_" + mask);
    REQUIRE(formula.flop);
    CHECK(formula.flop->multiply_adds == seen.pairs() * per_pair);
    CHECK(formula.mask_named);
    CHECK(macs(range("_flash_attention_backward", {o, q, k, v, o}) + ", is_" + mask) ==
          seen.pairs() * batch * heads * (3 * head + 2 * value));
  }
}

TEST_CASE("attention: xFormers' masks, and names that say nothing or what cannot be") {
  const Shape q{1, 9, 2, 4}, k{1, 12, 2, 4};
  const auto pairs = [&](const std::string& settings) {
    return macs(range("_efficient_attention_forward", {q, k, k}) + settings) / (2 * 8);
  };
  CHECK(pairs("") == 9 * 12);
  CHECK(pairs(", custom_mask_type = 0") == 9 * 12);
  CHECK(pairs(", custom_mask_type = 1") == Seen{9, 12, true, -1, -1, 0, false}.pairs());
  CHECK(pairs(", custom_mask_type = 2") == Seen{9, 12, true}.pairs());
  CHECK(pairs(", custom_mask_type = 2, window_size = 4") == Seen{9, 12, true, 3}.pairs());
  CHECK_FALSE(formula_of(range("_efficient_attention_forward", {q, k, k})).mask_named);
  const std::string flash = range("_flash_attention_forward", {q, k, k});
  CHECK_FALSE(formula_of(flash).mask_named);
  CHECK_FALSE(formula_of(flash + ", is_causal = perhaps").mask_named);
  CHECK(macs(flash + ", window_size_left = 9223372036854775807") == 9 * 12 * 2 * 8);
  CHECK(macs(flash + ", window_size_left = -9223372036854775808") == 9 * 12 * 2 * 8);
  CHECK(macs("flash_attn_3::_flash_attn_forward, " + range("", {q, q, q}).substr(8) +
             ", causal = True, attention_chunk = 9223372036854775807") == 45 * 2 * 8);
  const Shape vast{1, int64_t{1} << 62, 1, 1};
  CHECK_FALSE(
      formula_of(range("_flash_attention_forward", {vast, vast, vast}) + ", is_causal = True")
          .flop);
  // 1,024 keys behind each of 8,192 queries, and its own.
  const Shape longer{1, 8192, 32, 128};
  CHECK(macs("flash_attn::_flash_attn_forward, " + range("", {longer, longer, longer}).substr(8) +
             ", causal = True, window_size_left = 1024, window_size_right = 0") ==
        (uint64_t{1024} * 1025 / 2 + uint64_t{8192 - 1024} * 1025) * 32 * 2 * 128);
}

TEST_CASE("gradients of products: as much again for each operand") {
  // By the formulas of what runs backward: two products for linear, one operator for both
  // elsewhere.
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
}

TEST_CASE("packed sequences take as many steps as they have elements") {
  // Three samples of 4, 2 and 1 steps; a bidirectional layer; weights, then numbers and flags.
  const int64_t units = 6, inputs = 5;
  const Shape packed{4 + 2 + 1, inputs};
  const Shape in{4 * units, inputs}, state{4 * units, units}, bias{4 * units}, h{2, 3, units};
  uint64_t count = 0;
  for (const int64_t length : {4, 2, 1})
    for (int64_t step = 0; step < length; ++step)
      for (int direction = 0; direction < 2; ++direction)
        for (int64_t gate = 0; gate < 4 * units; ++gate)
          for (int64_t x = 0; x < inputs + units; ++x) ++count;
  CHECK(
      macs(range(
          "lstm",
          {packed, {4}, h, h, in, state, bias, bias, in, state, bias, bias, {}, {}, {}, {}, {}})) ==
      count);
  const std::vector<Shape> cudnn = {packed, in, state, bias, bias, in, state, bias, bias, {},
                                    {1000}, h,  h,     {},   {},   {}, {},    {},   {},   {}};
  CHECK(macs(range("_cudnn_rnn", cudnn)) == count);
  // Behind the weights: their buffer, states, the output and its gradient, which are no weights.
  std::vector<Shape> back(cudnn.begin(), cudnn.begin() + 13);
  const Shape output{7, 2 * units};
  back.insert(back.end(), {output, output, {}, {}, {}, {}});
  CHECK(macs(range("_cudnn_rnn_backward", back)) == 2 * count);
}

namespace {

// One unit of a cell, written for plain and for counted numbers: gates are sums of what is given.
template <class T>
T sigmoid_of(T x) {
  using std::exp;
  return 1.0 / (1.0 + exp(-x));
}

struct Cell {
  double a[4] = {0.3, -0.4, 0.5, 0.2};  // LSTM: i, f, o, g; GRU: r, z, input of n, state of n
  double before = 0.7;                  // c, or h
};

struct LstmResult {
  double h, c;
};
LstmResult lstm_of(const Cell& x) {
  const double i = sigmoid_of(x.a[0]), f = sigmoid_of(x.a[1]), o = sigmoid_of(x.a[2]);
  const double c = f * x.before + i * std::tanh(x.a[3]);
  return {o * std::tanh(c), c};
}
double gru_of(const Cell& x) {
  const double r = sigmoid_of(x.a[0]), z = sigmoid_of(x.a[1]), n = std::tanh(x.a[2] + r * x.a[3]);
  return n + z * (x.before - n);
}

using CellGradient = std::array<Counted, 5>;  // by a[0] to a[3], and by what was before

// From what forward saves: the gates, and c before and after.
CellGradient lstm_gradient(const Cell& x, Counted dh, Counted dc) {
  const Counted i = sigmoid_of(x.a[0]), f = sigmoid_of(x.a[1]), o = sigmoid_of(x.a[2]),
                g = std::tanh(x.a[3]), before = x.before, after = lstm_of(x).c;
  Counted::tally = {};
  const Counted t = tanh(after);
  dc = fused(dh * o, fused(-t, t, 1), dc);
  return {dc * g * i * (1.0 - i), dc * before * f * (1.0 - f), dh * t * o * (1.0 - o),
          dc * i * fused(-g, g, 1), dc * f};
}
// From r, z, n, h and what the state gave to n; by a[2] is what n's sum gets.
CellGradient gru_gradient(const Cell& x, Counted dh) {
  const Counted r = sigmoid_of(x.a[0]), z = sigmoid_of(x.a[1]), s = x.a[3], before = x.before,
                n = std::tanh(x.a[2] + r.value * x.a[3]);
  Counted::tally = {};
  const Counted w = 1.0 - z;
  const Counted dn = dh * w * fused(-n, n, 1);
  return {dn * s * r * (1.0 - r), dh * (before - n) * w * z, dn, dn * r, dh * z};
}

OperatorFlop tallied() {
  return {Counted::tally.fused, Counted::tally.single, Counted::tally.other};
}

}  // namespace

TEST_CASE("gradients of fused cells are the derivatives, and sums where there are biases") {
  const auto by = [](const Cell& x, size_t i, const auto& f) {
    constexpr double h = 1e-5;
    Cell less = x, more = x;
    (i < 4 ? less.a[i] : less.before) -= h;
    (i < 4 ? more.a[i] : more.before) += h;
    return (f(more) - f(less)) / (2 * h);
  };
  const Cell x;
  const CellGradient lstm = lstm_gradient(x, 0.9, 0.6);
  const OperatorFlop lstm_unit = tallied();
  const CellGradient gru = gru_gradient(x, 0.9);
  const OperatorFlop gru_unit = tallied();
  for (size_t i = 0; i < 5; ++i) {
    CHECK(lstm[i].value ==
          Approx(by(x, i, [](const Cell& v) { return 0.9 * lstm_of(v).h + 0.6 * lstm_of(v).c; })));
    CHECK(gru[i].value == Approx(by(x, i, [](const Cell& v) { return 0.9 * gru_of(v); })));
  }

  const Shape h{3, 6}, four{3, 24}, three{3, 18};
  const std::string lstm_back = range("_thnn_fused_lstm_cell_backward", {h, h, h, h, four, {}});
  const std::string gru_back = range("_thnn_fused_gru_cell_backward", {h, {3, 30}, {}});
  for (const bool biased : {false, true}) {
    const Shape bias4 = biased ? Shape{24} : Shape{}, bias3 = biased ? Shape{18} : Shape{};
    OperatorFlop whole = lstm_unit.times(18);
    whole.add({0, biased ? 4U * 18 : 0U, 0});
    const std::string fused = range("_thnn_fused_lstm_cell", {four, four, h, bias4, bias4});
    const std::string cell = range("lstm_cell", {{3, 5}, h, h, {24, 5}, {24, 6}, bias4, bias4});
    for (const std::string& forward : {fused, cell}) {
      CHECK(flop_of(lstm_back, {.forward = forward}) == whole);
      CHECK(formula_of(lstm_back, {.forward = forward}).backward);
    }
    CHECK(flop_of(range("_thnn_fused_lstm_cell_backward_impl", {h, h, h, h, four, {}}),
                  {.forward = fused}) == whole);
    whole = gru_unit.times(18);
    whole.add({0, biased ? 6U * 18 : 0U, 0});
    for (const std::string& forward :
         {range("_thnn_fused_gru_cell", {three, three, h, bias3, bias3}),
          range("gru_cell", {{3, 5}, h, {18, 5}, {18, 6}, bias3, bias3})})
      CHECK(flop_of(gru_back, {.forward = forward}) == whole);
  }
  // Nothing says whether there are biases, or a gradient is missing.
  CHECK_FALSE(formula_of(lstm_back).flop);
  CHECK_FALSE(formula_of(gru_back, {.forward = "aten::mm, sizes = [[3, 4], [4, 5]]"}).flop);
  CHECK_FALSE(formula_of(range("_thnn_fused_lstm_cell_backward", {h, {}, h, h, four, {}}),
                         {.forward = range("_thnn_fused_lstm_cell", {four, four, h, {}, {}})})
                  .flop);
}

TEST_CASE("FlashAttention-3: whole sequences alone") {
  // q, k, v, k_new, v_new, qv, out, cu_seqlens and the rest.
  const Shape q{2, 7, 3, 4}, k{2, 9, 3, 4};
  uint64_t count = 0;
  for (int score = 0; score < 2 * 3 * 7 * 9; ++score) count += 4 + 4;  // both products
  std::vector<Shape> sizes(33);
  sizes[0] = q, sizes[1] = sizes[2] = k;
  const auto named = [&](const std::string& name) {
    return "flash_attn_3::" + range(name, sizes).substr(6);
  };
  for (const char* name : {"_flash_attn_forward", "fwd"}) {
    CHECK(macs(named(name)) == count);
    CHECK(formula_of(named(name)).attention);
  }
  CHECK_FALSE(formula_of(range("fwd", sizes)).flop);  // of another library
  for (const size_t other : {3, 5, 7, 11, 14}) {
    sizes[other] = {2, 5};
    for (const char* name : {"_flash_attn_forward", "fwd"})
      CHECK_FALSE(formula_of(named(name)).flop);
    sizes[other] = {};
  }
  sizes[6] = q;  // where the result goes
  CHECK(macs(named("fwd")) == count);
  sizes = {q, q, k, k, q, {2, 3, 7}};
  CHECK(macs(named("bwd")) == count / 2 * 5);
  CHECK(formula_of(named("bwd")).backward);
  // FlashAttention-2: numbers follow, and slopes of a bias.
  CHECK(macs(range("_flash_attn_forward", {q, k, k, {}, {}, {}, {}, {}, {}, {3}, {}})) == count);
}

TEST_CASE("bags of embeddings have a formula where weights tell that rows are summed") {
  const auto bag = [](const Shape& weights) {
    return range("_embedding_bag", {{100, 16}, {12}, {3}, {}, {}, {}, weights, {}, {}});
  };
  uint64_t count = 0;
  for (int index = 0; index < 12; ++index)
    for (int column = 0; column < 16; ++column) ++count;
  CHECK(macs(bag({12})) == count);
  CHECK_FALSE(formula_of(bag({})).flop);
  CHECK_FALSE(formula_of(bag({11})).flop);
  const Formula grid = formula_of(range("grid_sampler_2d", {{1, 3, 8, 8}, {1, 4, 4, 2}, {}}));
  CHECK_FALSE(grid.flop);
  CHECK(std::string(grid.why_not).find("interpolation") != std::string::npos);
}

TEST_CASE("gates of fused cells, with and without biases") {
  const auto sigmoid = [](Counted x) { return 1.0 / (1.0 + exp(-x)); };
  const Counted x = 0.1, h = 0.2, b = 0.3;
  for (const bool biased : {false, true}) {
    const auto sum = [&] { return biased ? x + b + (h + b) : x + h; };
    Counted::tally = {};
    for (int i = 0; i < 3 * 6; ++i) {
      const Counted in = sigmoid(sum()), forget = sigmoid(sum()), out = sigmoid(sum());
      const Counted c = fused(forget, 0.7, in * tanh(sum()));
      (void)(out * tanh(c));
    }
    const OperatorFlop lstm{Counted::tally.fused, Counted::tally.single, Counted::tally.other};
    const Shape bias4 = biased ? Shape{24} : Shape{}, bias3 = biased ? Shape{18} : Shape{};
    CHECK(flop_of(range("_thnn_fused_lstm_cell", {{3, 24}, {3, 24}, {3, 6}, bias4, bias4})) ==
          lstm);
    Counted::tally = {};
    for (int i = 0; i < 3 * 6; ++i) {
      const Counted reset = sigmoid(sum()), update = sigmoid(sum());
      const Counted from_state = biased ? h + b : h, from_input = biased ? x + b : x;
      const Counted fresh = tanh(fused(reset, from_state, from_input));
      (void)fused(update, 0.7 - fresh, fresh);
    }
    const OperatorFlop gru{Counted::tally.fused, Counted::tally.single, Counted::tally.other};
    CHECK(flop_of(range("_thnn_fused_gru_cell", {{3, 18}, {3, 18}, {3, 6}, bias3, bias3})) == gru);
  }
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
  // One addition for each row of the source that is added to the table.
  CHECK(formula_of("aten::index_add_, sizes = [[100, 8], [], [3], [3, 8], []]").flop->arithmetic ==
        24);
  CHECK(formula_of("aten::scatter_add, sizes = [[10, 8], [], [3, 8], [5, 8]]").flop->arithmetic ==
        24);
  CHECK(formula_of("aten::max_pool3d_with_indices, sizes = [[2, 3, 4, 4, 4], [], []]")
            .flop->flop(2) == 0);
}

TEST_CASE("layers of the training compute documents") {
  // FLOP per sample, token or time step, by the operators that do a layer's work.
  const auto flop = [](const std::string& name, const std::vector<Shape>& shapes) {
    return static_cast<double>(2 * macs(range(name, shapes)));
  };
  CHECK(flop("lstm_cell", {{1, 640000}, {1, 256}, {1, 256}, {1024, 640000}, {1024, 256}}) ==
        Approx(1.311e9).epsilon(5e-4));
  CHECK(flop("linear", {{1, 256}, {10, 256}}) == 5120);
  // 16 heads of 64, 20 tokens attended to: projections, attention, projection of the heads.
  const double projections = flop("linear", {{16, 64}, {192, 64}});
  const double attention =
      flop("scaled_dot_product_attention", {{1, 16, 1, 64}, {1, 16, 20, 64}, {1, 16, 20, 64}});
  CHECK(projections + attention + flop("linear", {{1, 1024}, {1024, 1024}}) == 2572288);
  CHECK(flop("linear", {{1, 1024}, {4096, 1024}}) + flop("linear", {{1, 4096}, {1024, 4096}}) ==
        16777216);
  // 400 x 400 x 5 images, 16 filters of 5 x 5 x 5, stride 2, padding 2: the document's H^2 W^2
  // gives 1.024e12, direct convolution 1.6e8.
  const Direct direct{1, 5, 16, 1, {400, 400}, {5, 5}, {2, 2}, {2, 2}};
  const Shape output{1, 16, 200, 200};
  CHECK(direct.result() == output);
  CHECK(macs(range("conv2d", {direct.input(), direct.weight()}), {.output = &output}) ==
        direct.count());
}

TEST_CASE("no name makes sums wrap") {
  const std::string big = "9223372036854775807";
  const Formula f = formula_of("aten::bmm, sizes = [[" + big + ", " + big + ", " + big + "], [" +
                               big + ", " + big + ", " + big + "]]");
  REQUIRE(f.flop);
  CHECK(f.flop->flop(2) == kU128Max);
  CHECK(formula_of("aten::mm, sizes = [[0, 5], [5, 0]]").flop->flop(2) == 0);
}

// TorchScript's interpreter shows an operator with all that lies on its stack.
TEST_CASE("of more sizes than an operator has arguments the last ones are its own") {
  const std::string a = "[6, 5]", b = "[5, 7]", none = "[]";
  const auto name = [](const std::string& function, const std::vector<std::string>& sizes) {
    std::string text = "aten::" + function + ", sizes = [";
    for (const auto& size : sizes) text += (text.back() == '[' ? "" : ", ") + size;
    return text + "]";
  };
  const auto flop = [](const std::string& range) { return *formula_of(range).flop; };
  struct Call {
    std::string function;
    std::vector<std::string> sizes;
    u128 flop;
  };
  const Call calls[] = {{"linear", {"[6, 5]", "[7, 5]", "[7]"}, 2 * 6 * 5 * 7},
                        {"linear", {"[6, 5]", "[7, 5]", none}, 2 * 6 * 5 * 7},
                        {"matmul", {"[3, 6, 5]", b}, 2 * 3 * 6 * 5 * 7},
                        {"mm", {a, b}, 2 * 6 * 5 * 7},
                        {"addmm", {"[7]", a, b, none, none}, 2 * 6 * 5 * 7},
                        {"bmm", {"[3, 6, 5]", "[3, 5, 7]"}, 2 * 3 * 6 * 5 * 7},
                        {"relu", {a}, 0},
                        {"add", {a, "[5]", none}, 6 * 5},
                        {"mul", {a, "[1, 5]"}, 6 * 5},
                        {"layer_norm", {a, none, "[5]", "[5]", none, none}, 0},
                        {"_softmax", {a, none, none}, 0}};
  // What other calls left below: an operand of the same sizes, of others, and numbers.
  const std::vector<std::vector<std::string>> stacks = {{"[6, 5]", "[6, 5]"},
                                                        {"[6, 5]", "[7, 5]", "[6, 5]"},
                                                        {none},
                                                        {"[2048, 1953]", none},
                                                        {none, none, none, "[9]", "[8, 8]"}};
  for (const Call& call : calls) {
    const OperatorFlop expected = flop(name(call.function, call.sizes));
    if (call.flop > 0) CHECK(expected.flop(2) == call.flop);
    for (std::vector<std::string> sizes : stacks) {
      sizes.insert(sizes.end(), call.sizes.begin(), call.sizes.end());
      const std::string range = name(call.function, sizes);
      INFO(range);
      CHECK(flop(range) == expected);
    }
  }
  // The same operand lies below twice, and would fit the first arguments.
  CHECK(flop("aten::linear, sizes = [[2048, 1953], [2048, 1953], [2048, 1953], [2048, 1024], "
             "[541, 1024], [541]]")
            .flop(2) == u128{2} * 2048 * 1024 * 541);
}

TEST_CASE("results that are given, and arguments of later versions, come behind the others") {
  const auto flop = [](const std::string& range) { return formula_of(range).flop->flop(2); };
  for (const char* result : {"[6, 7]", "[0]"})
    CHECK(flop(std::string("aten::mm, sizes = [[6, 5], [5, 7], ") + result + "]") == 2 * 6 * 5 * 7);
  CHECK(flop("aten::mm, sizes = [[6, 6], [6, 6], [6, 6]]") == 2 * 6 * 6 * 6);
  CHECK(flop("aten::linear, sizes = [[6, 5], [7, 5], [7], [6, 7]]") == 2 * 6 * 5 * 7);
  CHECK(flop("aten::addmm, sizes = [[7], [6, 5], [5, 7], [], [], [6, 7]]") == 2 * 6 * 5 * 7);
  CHECK(flop("aten::add, sizes = [[6, 5], [5], [], [6, 5]]") == 6 * 5);
  CHECK(flop("aten::mm, sizes = [[6, 5], [5, 7], [], []]") == 2 * 6 * 5 * 7);
  CHECK(flop("aten::scaled_dot_product_attention, sizes = [[1, 2, 4, 8], [1, 2, 4, 8], "
             "[1, 2, 4, 8], [], [], [], [], [], []]") == 2 * 2 * 4 * 4 * 16);
}

TEST_CASE("of overloads with other numbers of arguments, what is the stack's is not known") {
  const auto name = parse_operator_name("aten::sum, sizes = [[9], [6, 5], [3], [2, 2], []]");
  REQUIRE(name);
  CHECK_FALSE(name->has_sizes);  // sum(self) of [2, 2], or sum(self, dim) of [6, 5]
  CHECK(formula_of("aten::sum, sizes = [[9], [6, 5], [], [], []]").flop->flop(2) == 6 * 5);
  CHECK(parse_operator_name("aten::sum, sizes = [[6, 5], [], [], []]")->sizes.size() == 4);
  CHECK(parse_operator_name("aten::sum, sizes = [[6, 5], []]")->sizes.size() == 2);
}
