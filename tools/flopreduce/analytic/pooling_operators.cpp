// Average pooling: an addition for each element of each window, and a scaling for each window.
// Backward, the same the other way round: each window's gradient is scaled, and added to each of
// its elements. Padding is left out, as by PyTorch's kernels
// (aten/src/ATen/native/cuda/AveragePool2d.cu: windows are cut at the edges). Windows overlap,
// leave gaps or lie side by side; sizes do not say which, but settings do, the operator's own or
// the module's, and an adaptive pooling's windows follow from its sizes.
//
// Argument a is the input; b is 1 where the pooling is adaptive; c is the number of dimensions.
#include <algorithm>
#include <numeric>

#include "analytic/tables.h"

namespace flopinj::reduce {
namespace {

constexpr const char* kNoWindow =
    "the window is not in the range's name, and no module around it has it";

// In one dimension. All below 2^31, so that no sum overflows.
struct Windows {
  int64_t input = 0, output = 0, kernel = 0, stride = 0, padding = 0;
};
constexpr int64_t kMost = int64_t{1} << 31;

// Elements of all windows: from max(n stride - padding, 0) to min(n stride - padding + kernel,
// input). Nothing where these windows do not come to that output.
std::optional<u128> elements_of(const Windows& w) {
  if (w.output < 1 || w.kernel < 1 || w.stride < 1 || w.padding > w.kernel / 2 ||
      std::max({w.input, w.output, w.kernel, w.stride}) >= kMost)
    return std::nullopt;
  const int64_t reach = w.input + 2 * w.padding - w.kernel;
  if (reach < 0) return std::nullopt;
  // Rounded down; or up, but then the last window begins inside.
  const int64_t down = reach / w.stride + 1;
  const bool up =
      w.output == down + 1 && reach % w.stride != 0 && down * w.stride < w.input + w.padding;
  if (w.output != down && !up) return std::nullopt;
  const auto sum_to = [](u128 n) { return n * (n - (n > 0 ? 1 : 0)) / 2; };  // 0 + ... + n - 1
  const auto n = static_cast<u128>(w.output), stride = static_cast<u128>(w.stride),
             input = static_cast<u128>(w.input), padding = static_cast<u128>(w.padding);
  const auto first_end = static_cast<u128>(w.kernel - w.padding);
  // Windows that end inside, and those that begin before the first element.
  const u128 inside = first_end > input ? 0 : std::min(n, (input - first_end) / stride + 1);
  const u128 before = std::min(n, padding / stride + 1);
  const u128 ends = stride * sum_to(inside) + inside * first_end + (n - inside) * input;
  const u128 begins = stride * (sum_to(n) - sum_to(before)) - (n - before) * padding;
  return ends - begins;
}

// From floor(n input / output) to ceil((n + 1) input / output): neighbours share an element
// wherever the border is not between two (aten/src/ATen/native/AdaptivePooling.h).
u128 elements_of_adaptive(int64_t input, int64_t output) {
  if (output == 0) return 0;
  u128 sum = static_cast<u128>(input);
  add_saturating(sum, static_cast<u128>(output - std::gcd(input, output)));
  return sum;
}

// Of one dimension of the module's windows; the output's size where no other range has it.
std::optional<Windows> windows(const OperatorSettings& set, size_t dimension, int64_t input,
                               const int64_t* output) {
  Windows w{input, 0, setting_at(set.kernel, dimension, 0), 0,
            setting_at(set.padding, dimension, 0)};
  w.stride = setting_at(set.stride, dimension, w.kernel);
  if (output != nullptr) {
    w.output = *output;
    return w;
  }
  if (w.stride < 1 || w.padding >= kMost || input >= kMost) return std::nullopt;
  const int64_t reach = input + 2 * w.padding - w.kernel;
  if (reach < 0) return std::nullopt;
  w.output = reach / w.stride + 1;
  if (reach % w.stride == 0) return w;
  // The text of an AvgPool2d does not say whether it rounds up.
  if (!set.ceil_mode) return std::nullopt;
  if (*set.ceil_mode && w.output * w.stride < input + w.padding) ++w.output;
  return w;
}

// The output may be unknown; the gradient by it is backward's first argument.
Formula average_pool(const OperatorCall& call, const OperatorRow& row) {
  const Shape& input = call.shape(row.a);
  const Shape* output = row.backward != 0 ? &call.shape(0) : call.output;
  const size_t dimensions = row.c;
  if ((input.size() != dimensions + 1 && input.size() != dimensions + 2) ||
      (output != nullptr && output->size() != input.size()))
    return Formula::none(kMismatch);
  const bool adaptive = row.b != 0;
  const Shape* set = adaptive && call.settings != nullptr ? &call.settings->output : nullptr;
  if (set != nullptr && set->size() != dimensions && set->size() != 1) set = nullptr;
  if (adaptive && output == nullptr && set == nullptr) return Formula::none(kNoOutputSize);
  if (!adaptive && (call.settings == nullptr || call.settings->kernel.empty()))
    return Formula::none(kNoWindow);
  u128 taps = 1, results = 1;
  for (size_t i = 0; i < input.size(); ++i) {
    const size_t first = input.size() - dimensions;
    const int64_t* known = output != nullptr ? &(*output)[i] : nullptr;
    if (i < first) {
      if (known != nullptr && *known != input[i]) return Formula::none(kMismatch);
      taps = times_saturating(taps, static_cast<u128>(input[i]));
      results = times_saturating(results, static_cast<u128>(input[i]));
    } else if (adaptive) {
      const int64_t size = known != nullptr ? *known : setting_at(*set, i - first, 0);
      taps = times_saturating(taps, elements_of_adaptive(input[i], size));
      results = times_saturating(results, static_cast<u128>(size));
    } else {
      const auto w = windows(*call.settings, i - first, input[i], known);
      if (!w) return Formula::none(kNoOutputSize);
      const auto elements = elements_of(*w);
      if (!elements) return Formula::none(kMismatch);
      taps = times_saturating(taps, *elements);
      results = times_saturating(results, static_cast<u128>(w->output));
    }
  }
  add_saturating(taps, results);
  return Formula::of(OperatorFlop{0, taps, 0});
}

// weight [rows, width], indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
// ...: the mode (sum, mean, maximum) is a number, but weights there are only for sums
// (torch.nn.EmbeddingBag).
Formula bag(const OperatorCall& call, const OperatorRow&) {
  const Shape &table = call.shape(0), &indices = call.shape(1), &weights = call.shape(6);
  if (!call.has(6) || table.size() != 2) return Formula::none(kMismatch);
  if (weights.empty())
    return Formula::none("sum, mean or maximum: the mode is not in the range's name");
  if (weights != indices) return Formula::none(kMismatch);
  return Formula::of(times_saturating(elements(indices), static_cast<u128>(table[1])));
}

// input, grid, mode, ...
Formula grid_sample(const OperatorCall&, const OperatorRow&) {
  return Formula::none("nearest, linear or cubic: the interpolation is not in the range's name");
}

constexpr OperatorRow kPoolingRows[] = {
    // one addition per element of each window, one scaling per window
    {"avg_pool1d", average_pool, 0, 0, 1, 0},
    {"avg_pool2d", average_pool, 0, 0, 2, 0},
    {"avg_pool3d", average_pool, 0, 0, 3, 0},
    // one scaling per window, its gradient added to each of its elements
    {"avg_pool2d_backward", average_pool, 1, 0, 2, 1},
    {"avg_pool3d_backward", average_pool, 1, 0, 3, 1},
    // weights x rows, summed; rows of a padding index counted
    {"embedding_bag _embedding_bag _embedding_bag_forward_only", bag, 0, 0, 0, 0},
    {"grid_sampler_2d grid_sampler_3d", grid_sample},
    {"grid_sampler_2d_backward grid_sampler_3d_backward", grid_sample, 0, 0, 0, 1},
    // one addition per element of each window, one scaling per window
    {"adaptive_avg_pool1d", average_pool, 0, 1, 1, 0},
    {"adaptive_avg_pool2d _adaptive_avg_pool2d", average_pool, 0, 1, 2, 0},
    {"adaptive_avg_pool3d _adaptive_avg_pool3d", average_pool, 0, 1, 3, 0},
    // one scaling per window, its gradient added to each of its elements
    {"_adaptive_avg_pool2d_backward", average_pool, 1, 1, 2, 1},
    {"_adaptive_avg_pool3d_backward", average_pool, 1, 1, 3, 1},
};

}  // namespace

std::span<const OperatorRow> pooling_operators() { return kPoolingRows; }

}  // namespace flopinj::reduce
