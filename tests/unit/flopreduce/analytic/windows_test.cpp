// Pooling, resizing and convolutions of either kind, against loops over windows and taps.
#include <random>

#include "operator_names.h"

using namespace flopinj::reduce;
using namespace flopinj::test;

namespace {

struct Window {
  Shape size, kernel, stride, padding;
  bool ceil = false;
};

// Where windows begin, one after the other: inside the padded input; rounded up, the last may reach
// beyond it, but begins inside the input or the padding before it.
std::vector<int64_t> begins(const Window& w, size_t d) {
  std::vector<int64_t> at;
  for (int64_t begin = -w.padding[d];; begin += w.stride[d]) {
    const bool whole = begin + w.kernel[d] <= w.size[d] + w.padding[d];
    const bool part =
        w.ceil && begin < w.size[d] && begin - w.stride[d] + w.kernel[d] < w.size[d] + w.padding[d];
    if (!whole && !part) return at;
    at.push_back(begin);
  }
}

struct Pooled {
  Shape output;
  uint64_t operations = 0;
};

// Sums each window element by element, padding left out, and scales it.
Pooled pool(const Window& w, int64_t batch, int64_t channels) {
  Pooled p{{batch, channels}, 0};
  std::vector<std::vector<int64_t>> at(3, {0});
  Shape size{1, 1, 1}, kernel{1, 1, 1};
  for (size_t d = 0; d < w.size.size(); ++d) {
    at[d] = begins(w, d), size[d] = w.size[d], kernel[d] = w.kernel[d];
    p.output.push_back(static_cast<int64_t>(at[d].size()));
  }
  const auto in = [&](size_t d, int64_t i) { return i >= 0 && i < size[d]; };
  for (int64_t n = 0; n < batch * channels; ++n)
    for (const int64_t z : at[0])
      for (const int64_t y : at[1])
        for (const int64_t x : at[2]) {
          for (int64_t k = 0; k < kernel[0]; ++k)
            for (int64_t j = 0; j < kernel[1]; ++j)
              for (int64_t i = 0; i < kernel[2]; ++i)
                p.operations += in(0, z + k) && in(1, y + j) && in(2, x + i) ? 1 : 0;
          ++p.operations;
        }
  return p;
}

std::string module_of(const Window& w, const std::string& more = "") {
  return "AvgPool(kernel_size=" + text(w.kernel) + ", stride=" + text(w.stride) +
         ", padding=" + text(w.padding) + more + ")";
}

Shape with(const Shape& leading, const Shape& spatial) {
  Shape s = leading;
  s.insert(s.end(), spatial.begin(), spatial.end());
  return s;
}

void check_single(const std::string& name, const Around& around, uint64_t operations) {
  const OperatorFlop flop = flop_of(name, around);
  INFO(name << " " << around.module);
  CHECK(flop.multiply_adds == 0);
  CHECK(static_cast<uint64_t>(flop.arithmetic) == operations);
}

}  // namespace

TEST_CASE("average pooling equals loops over overlapping, spaced and cut windows") {
  std::mt19937 random(5);
  const auto draw = [&](int64_t from, int64_t to) {
    return from + static_cast<int64_t>(random() % static_cast<uint64_t>(to - from + 1));
  };
  for (int i = 0; i < 200; ++i) {
    Window w;
    w.ceil = i % 2 == 1;
    bool exact = true;
    for (int d = 0; d < 1 + i % 3; ++d) {
      w.kernel.push_back(draw(1, 5)), w.stride.push_back(draw(1, 4));
      w.padding.push_back(draw(0, w.kernel.back() / 2)), w.size.push_back(draw(5, 11));
      exact =
          exact && (w.size.back() + 2 * w.padding.back() - w.kernel.back()) % w.stride.back() == 0;
    }
    const Pooled p = pool(w, 2, 3);
    const std::string dimensions = std::to_string(1 + i % 3) + "d";
    const Shape input = with({2, 3}, w.size);
    const std::string name = range("avg_pool" + dimensions, {input, {}, {}, {}, {}, {}, {}});
    const std::string module = module_of(w);
    check_single(name, {.output = &p.output, .module = module}, p.operations);
    if (i % 3 != 0)
      check_single(range("avg_pool" + dimensions + "_backward", {p.output, input, {}, {}, {}, {}}),
                   {.module = module}, p.operations);
    // Without the output's size only where rounding up and down come to the same.
    if (exact)
      check_single(name, {.module = module}, p.operations);
    else
      CHECK_FALSE(formula_of(name, {.module = module}).flop);
    // 8 to 4 is a window of 2 by steps of 2, and one of 3 with padding.
    CHECK_FALSE(formula_of(name, {.output = &p.output}).flop);
  }
  const Shape wrong{2, 3, 7, 7};
  CHECK_FALSE(
      formula_of("aten::avg_pool2d, sizes = [[2, 3, 8, 8], [], []]",
                 {.output = &wrong, .module = "AvgPool2d(kernel_size=2, stride=2, padding=0)"})
          .flop);
}

TEST_CASE("adaptive average pooling equals loops over its uneven windows") {
  for (int64_t height = 1; height < 12; ++height)
    for (int64_t rows = 1; rows < 9; ++rows) {
      const int64_t width = 7, columns = 3;
      uint64_t count = 0;
      for (int64_t y = 0; y < rows; ++y)
        for (int64_t x = 0; x < columns; ++x) {
          const auto from = [](int64_t i, int64_t in, int64_t out) { return i * in / out; };
          const auto to = [](int64_t i, int64_t in, int64_t out) {
            return ((i + 1) * in + out - 1) / out;
          };
          for (int64_t j = from(y, height, rows); j < to(y, height, rows); ++j)
            for (int64_t i = from(x, width, columns); i < to(x, width, columns); ++i) ++count;
          ++count;
        }
      const Shape input{5, height, width}, output{5, rows, columns};
      check_single(range("adaptive_avg_pool2d", {input, {}}), {.output = &output}, 5 * count);
      check_single(range("_adaptive_avg_pool2d_backward", {output, input}), {}, 5 * count);
    }
  CHECK_FALSE(formula_of("aten::adaptive_avg_pool2d, sizes = [[5, 8, 8], []]").flop);
}

TEST_CASE("resizing equals weighted means, one dimension after the other") {
  // `neighbours` in each of `dimensions`: forward each mean is a product and further multiply-adds;
  // backward weights are multiplied for all but the last dimension, then added into each neighbour.
  const auto forward = [](int dimensions, uint64_t neighbours, OperatorFlop& count) {
    uint64_t means = 1;
    for (int d = 0; d < dimensions; ++d, means *= neighbours)
      for (uint64_t m = 0; m < means; ++m) count.add({neighbours - 1, 1, 0});
  };
  const auto backward = [](int dimensions, uint64_t neighbours, OperatorFlop& count) {
    uint64_t parts = 1;
    for (int d = 0; d < dimensions; ++d) {
      parts *= neighbours;
      for (uint64_t p = 0; p < parts; ++p)
        count.add(d + 1 < dimensions ? OperatorFlop{0, 1, 0} : OperatorFlop{1, 0, 0});
    }
  };
  struct Resize {
    const char* name;
    int dimensions;
    uint64_t neighbours;
  };
  for (const auto& r : {Resize{"upsample_linear1d", 1, 2}, Resize{"upsample_bilinear2d", 2, 2},
                        Resize{"upsample_trilinear3d", 3, 2}, Resize{"upsample_bicubic2d", 2, 4}}) {
    const Shape input = with({2, 3}, Shape(static_cast<size_t>(r.dimensions), 4));
    const Shape output = with({2, 3}, Shape(static_cast<size_t>(r.dimensions), 6));
    OperatorFlop count, back;
    for (u128 i = 0; i < elements(output); ++i)
      forward(r.dimensions, r.neighbours, count), backward(r.dimensions, r.neighbours, back);
    INFO(r.name);
    CHECK(flop_of(range(r.name, {input, {}, {}}), {.output = &output}) == count);
    CHECK_FALSE(formula_of(range(r.name, {input, {}, {}})).flop);
    CHECK(flop_of(range(std::string(r.name) + "_backward", {output, {}, {}})) == back);
  }
  CHECK(flop_of("aten::upsample_nearest2d, sizes = [[2, 3, 4, 4], [], []]").flop(2) == 0);
  CHECK(flop_of("aten::upsample_nearest2d_backward, sizes = [[2, 3, 8, 8], [], []]").flop(2) ==
        384);
}

namespace {

// Tap by tap: each element of `outer` meets each weight of its channel's group once.
uint64_t taps(const Shape& outer, const Shape& weight) {
  uint64_t count = 0;
  for (u128 i = 0; i < elements(outer); ++i)
    for (int64_t c = 0; c < weight[1]; ++c)
      for (int64_t k = 0; k < weight[2] * weight[3]; ++k) ++count;
  return count;
}

}  // namespace

TEST_CASE("gradients of convolutions that may be transposed: by the forward operator, or none") {
  const std::string plain = "aten::conv2d", turned = "aten::conv_transpose2d";
  const auto gradient = [](const Shape& dy, const Shape& x, const Shape& w) {
    return range("convolution_backward", {dy, x, w, {}, {}, {}, {}, {}, {}, {}, {}});
  };
  // As many channels on both sides, steps of 2: the plain one shrinks, the transposed one grows.
  const Shape large{2, 4, 8, 8}, small{2, 4, 4, 4}, w{4, 4, 3, 3};
  CHECK(macs(gradient(small, large, w), {.forward = plain}) == 2 * taps(small, w));
  CHECK(macs(gradient(large, small, w), {.forward = turned}) == 2 * taps(small, w));
  CHECK_FALSE(formula_of(gradient(small, large, w)).flop);
  CHECK_FALSE(formula_of(gradient(large, small, w)).flop);
  // The other way round: a plain one with much padding grows, a transposed one that is cut shrinks.
  const Shape grown{2, 4, 10, 10}, cut{2, 4, 6, 6}, one{4, 4, 1, 1};
  CHECK(macs(gradient(grown, large, one), {.forward = plain}) == 2 * taps(grown, one));
  CHECK(macs(gradient(cut, large, w), {.forward = turned}) == 2 * taps(large, w));
  // Depthwise, steps of 2.
  const Shape deep{4, 1, 3, 3};
  CHECK(macs(gradient(small, large, deep), {.forward = plain}) == 2 * taps(small, deep));
  // Nothing to tell apart: as large on both sides; channels that fit one kind.
  CHECK(macs(gradient(large, large, w)) == 2 * taps(large, w));
  CHECK(macs(gradient({2, 6, 4, 4}, large, {6, 4, 3, 3})) == 2 * taps({2, 6, 4, 4}, {6, 4, 3, 3}));
  CHECK(macs(gradient({2, 6, 8, 8}, small, {4, 6, 3, 3})) == 2 * taps(small, {4, 6, 3, 3}));
}

TEST_CASE("operators of both kinds of convolution: by the weights, with the output's size") {
  const Shape x{2, 8, 4, 4}, y{2, 4, 8, 8}, w{8, 4, 3, 3};
  const auto name = range("convolution", {x, w, {}, {}, {}, {}, {}, {}, {}});
  // Plain in two groups, or transposed in one.
  CHECK(macs(name, {.output = &y}) == taps(x, w));
  const Shape in_groups{2, 8, 4, 4};
  CHECK(macs(name, {.output = &in_groups}) == taps(x, w));
  CHECK_FALSE(formula_of(name).flop);
  CHECK_FALSE(formula_of(name, {.module = "Conv2d(8, 8, kernel_size=3, stride=2)"}).flop);
  const Shape narrow{2, 6, 2, 2};
  CHECK(macs(range("convolution", {x, {6, 8, 3, 3}}), {.output = &narrow}) ==
        taps(narrow, {6, 8, 3, 3}));
  CHECK(macs(range("convolution", {x, {6, 8, 3, 3}}),
             {.module = "Conv2d(8, 6, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1))"}) ==
        taps(narrow, {6, 8, 3, 3}));
}

// Drawn, and held against loops over windows; the settings are the operator's own.
TEST_CASE("pooling with settings of its own: by the windows, rounded down and up") {
  std::mt19937 random(7);
  const auto draw = [&](int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random);
  };
  int rounded_up = 0;
  for (int i = 0; i < 200; ++i) {
    Window w;
    w.ceil = i % 2 == 1;
    for (int d = 0; d < 2; ++d) {
      w.kernel.push_back(draw(1, 4));
      w.size.push_back(draw(w.kernel.back(), 9));
      w.stride.push_back(draw(1, 4));
      w.padding.push_back(draw(0, w.kernel.back() / 2));
    }
    const Pooled truth = pool(w, 2, 3);
    Window down = w;
    down.ceil = false;
    rounded_up += pool(down, 2, 3).output != truth.output;
    const std::string settings = ", kernel_size = " + text(w.kernel) +
                                 ", stride = " + text(w.stride) + ", padding = " + text(w.padding) +
                                 ", ceil_mode = " + (w.ceil ? "True" : "False");
    const Shape input{2, 3, w.size[0], w.size[1]};
    CHECK(flop_of(range("avg_pool2d", {input}) + settings).arithmetic == truth.operations);
    CHECK(flop_of(range("avg_pool2d_backward", {truth.output, input}) + settings).arithmetic ==
          truth.operations);
  }
  CHECK(rounded_up > 10);
  // Windows side by side, and what an adaptive one comes to.
  const std::string halves = range("_adaptive_avg_pool2d", {{2, 3, 8, 6}, {}});
  CHECK_FALSE(formula_of(halves).flop);
  CHECK(flop_of(halves + ", output_size = [4, 2]").arithmetic == 2 * 3 * (8 * 6 + 4 * 2));
}

TEST_CASE("convolutions with settings of their own need no other range") {
  const Shape x{2, 4, 9, 8}, w{6, 4, 3, 2};
  const std::string own = ", stride = [2, 3], padding = [1, 0], dilation = [2, 1]";
  // floor((9 + 2 - 5) / 2) + 1 and floor((8 - 2) / 3) + 1
  const uint64_t expected = taps({2, 6, 4, 3}, w);
  CHECK(macs(range("conv2d", {x, w, {}, {}, {}, {}, {}}) + own) == expected);
  CHECK(macs(range("convolution", {x, w, {}}) + own + ", transposed = False") == expected);
  CHECK(macs(range("conv2d", {x, w, {}}) + ", stride = [1, 1], padding = same") ==
        taps({2, 6, 9, 8}, w));
  // Another module's settings around it are not its own.
  CHECK(macs(range("conv2d", {x, w, {}}) + own, {.module = "Conv2d(4, 6, stride=(1, 1))"}) ==
        expected);
  // Of either kind by the weights: which one is said.
  const Shape both{4, 4, 3, 3}, large{2, 4, 8, 8}, small{2, 4, 4, 4};
  const std::string stride = ", stride = [2, 2], padding = [1, 1], transposed = ";
  CHECK_FALSE(formula_of(range("convolution", {large, both})).flop);
  CHECK(macs(range("convolution", {large, both}) + stride + "False") == taps(small, both));
  CHECK(macs(range("convolution", {small, both}) + stride + "True") == taps(small, both));
  const auto gradient = [&](const Shape& dy, const Shape& in, const char* transposed) {
    return macs(range("convolution_backward", {dy, in, both}) + stride + transposed);
  };
  CHECK(gradient(small, large, "False") == 2 * taps(small, both));
  CHECK(gradient(large, small, "True") == 2 * taps(small, both));
}

TEST_CASE("settings of other modules, and padding that is an operator of its own") {
  const std::string name = "aten::conv2d, sizes = [[1, 3, 8, 8], [4, 3, 3, 3], []]";
  CHECK_FALSE(formula_of(name, {.module = "Block(kernel_size=(5, 5), stride=(1, 1))"}).flop);
  const auto with_padding = [&](const std::string& padding) {
    return macs(name, {.module = "Conv2d(3, 4, kernel_size=(3, 3), stride=(1, 1)" + padding + ")"});
  };
  CHECK(with_padding("") == taps({1, 4, 6, 6}, {4, 3, 3, 3}));
  CHECK(with_padding(", padding=(1, 1)") == taps({1, 4, 8, 8}, {4, 3, 3, 3}));
  CHECK(with_padding(", padding=same") == taps({1, 4, 8, 8}, {4, 3, 3, 3}));
  CHECK(with_padding(", padding=valid") == taps({1, 4, 6, 6}, {4, 3, 3, 3}));
  // The input has been padded.
  CHECK(with_padding(", padding=(1, 1), padding_mode=reflect") == taps({1, 4, 6, 6}, {4, 3, 3, 3}));
}
