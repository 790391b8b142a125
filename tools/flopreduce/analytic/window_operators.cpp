// Convolutions of any dimension, and average pooling. For convolutions arguments a and b are input and weight, c the gradient by the output
// where the operator has it (0: none).
//
// Multiply-adds of [N, Ci, ...] with weights [Co, Ci / groups, K...]: elements of the output x
// Ci / groups x K..., taps that fall on padding included (torch.utils.flop_counter: conv_flop_count;
// fvcore: conv_flop_count). A transposed convolution, weights [Ci, Co / groups, K...], has its input
// where the other has its output. Each gradient costs the same as forward, so both together twice.
//
// Average pooling: an addition for each element of a window and a scaling for each window.
#include "analytic/tables.h"

namespace flopinj::reduce {
namespace {

constexpr const char* kMismatch = "the sizes do not fit the operator";
constexpr const char* kNoOutput =
    "stride and padding are not in the range's name, nor is the output's size in another's";
constexpr const char* kPlain =
    "output elements x input channels of a group x kernel elements, padding included";

// Products for each of `outer`'s channels, dimension 0 of the weights.
u128 multiply_adds(const Shape& outer, const Shape& weight) {
  u128 each = 1;
  for (size_t i = 1; i < weight.size(); ++i)
    each = times_saturating(each, static_cast<u128>(weight[i]));
  return times_saturating(elements(outer), each);
}

bool fit(const Shape* input, const Shape* weight) {
  return input != nullptr && weight != nullptr && weight->size() >= 3 && weight->size() <= 5 &&
         (input->size() == weight->size() || input->size() + 1 == weight->size());
}
// The channels of an input with or without a batch dimension.
int64_t channels(const Shape& x, const Shape& weight) { return x[x.size() + 1 - weight.size()]; }

int64_t at(const Shape& setting, size_t dimension, int64_t otherwise) {
  if (setting.empty()) return otherwise;
  return setting.size() == 1          ? setting[0]
         : dimension < setting.size() ? setting[dimension]
                                      : otherwise;
}

// Dumoulin and Visin, A guide to convolution arithmetic for deep learning: floor((i + 2p - k) / s) + 1,
// with k stretched to d (k - 1) + 1.
std::optional<Shape> output_shape(const Shape& input, const Shape& weight,
                                  const ModuleSettings& set) {
  constexpr int64_t kMost = int64_t{1} << 40;  // far from any overflow
  if (set.stride.empty()) return std::nullopt;
  Shape output(input.begin(), input.end());
  const size_t first = input.size() + 2 - weight.size();  // spatial dimension
  output[first - 1] = weight[0];
  for (size_t i = 0; i + 2 < weight.size(); ++i) {
    const int64_t stride = at(set.stride, i, 1), padding = at(set.padding, i, 0);
    const int64_t dilation = at(set.dilation, i, 1), kernel = weight[i + 2],
                  size = input[first + i];
    if (stride <= 0 || kernel <= 0 || padding > kMost || size > kMost ||
        times_saturating(static_cast<u128>(dilation), static_cast<u128>(kernel)) > kMost)
      return std::nullopt;
    if (set.padding_same) continue;
    const int64_t reach = size + 2 * padding - dilation * (kernel - 1) - 1;
    if (reach < 0) return std::nullopt;
    output[first + i] = reach / stride + 1;
  }
  return output;
}

Formula convolution(const OperatorCall& call, const OperatorRow& row) {
  const Shape* input = call.shape(row.a);
  const Shape* weight = call.shape(row.b);
  if (!fit(input, weight) || (*weight)[1] <= 0 || channels(*input, *weight) % (*weight)[1] != 0)
    return Formula::none(kMismatch);
  if (call.output != nullptr && call.output->size() == input->size() &&
      channels(*call.output, *weight) == (*weight)[0])
    return Formula::of(multiply_adds(*call.output, *weight));
  if (call.settings != nullptr)
    if (const auto output = output_shape(*input, *weight, *call.settings))
      return Formula::of(multiply_adds(*output, *weight));
  return Formula::none(kNoOutput);
}

Formula transposed(const OperatorCall& call, const OperatorRow& row) {
  const Shape* input = call.shape(row.a);
  const Shape* weight = call.shape(row.b);
  if (!fit(input, weight) || channels(*input, *weight) != (*weight)[0])
    return Formula::none(kMismatch);
  return Formula::of(multiply_adds(*input, *weight));
}

// Both kinds have one backward operator; whose channels the weights are sorted by tells which it is.
// Where both could be, the transposed one is the one whose output is larger than its input.
Formula gradient(const OperatorCall& call, const OperatorRow& row) {
  const Shape* input = call.shape(row.a);
  const Shape* weight = call.shape(row.b);
  const Shape* output = call.shape(row.c);
  if (!fit(input, weight) || output == nullptr || output->size() != input->size())
    return Formula::none(kMismatch);
  const bool plain = channels(*output, *weight) == (*weight)[0];
  const bool turned = channels(*input, *weight) == (*weight)[0];
  if (!plain && !turned) return Formula::none(kMismatch);
  if (plain && (!turned || elements(*output) <= elements(*input)))
    return Formula::of(multiply_adds(*output, *weight));
  return Formula::of(multiply_adds(*input, *weight));
}

// Windows side by side: where the output is known, each input element is in one window.
Formula average_pool(const OperatorCall& call, const OperatorRow& row) {
  const Shape* input = call.shape(row.a);
  if (input == nullptr) return Formula::none(kMismatch);
  if (call.output == nullptr || call.output->size() != input->size())
    return Formula::none(
        "the window is not in the range's name, nor is the output's size in another's");
  Formula formula = Formula::of(0);
  formula.flop->arithmetic = elements(*input);
  add_saturating(formula.flop->arithmetic, elements(*call.output));
  return formula;
}

// Each input element gets its window's gradient, scaled.
Formula average_pool_gradient(const OperatorCall& call, const OperatorRow& row) {
  const Shape* input = call.shape(row.a);
  if (input == nullptr) return Formula::none(kMismatch);
  Formula formula = Formula::of(0);
  formula.flop->arithmetic = elements(*input);
  return formula;
}

constexpr const char* kPool = "one addition per input element, one scaling per output element";
constexpr const char* kBoth = "twice the forward formula: gradients by input and by weight";
constexpr OperatorRow kRows[] = {
    {"conv1d", convolution, 0, 1, 0, 0, kPlain, weight_and_input},
    {"conv2d", convolution, 0, 1, 0, 0, kPlain, weight_and_input},
    {"conv3d", convolution, 0, 1, 0, 0, kPlain, weight_and_input},
    {"convolution", convolution, 0, 1, 0, 0, kPlain, weight_and_input},
    {"_convolution", convolution, 0, 1, 0, 0, kPlain, weight_and_input},
    {"convolution_overrideable", convolution, 0, 1, 0, 0, kPlain, weight_and_input},
    {"cudnn_convolution", convolution, 0, 1, 0, 0, kPlain, weight_and_input},
    {"cudnn_convolution_relu", convolution, 0, 1, 0, 0, kPlain, weight_and_input},
    {"cudnn_convolution_add_relu", convolution, 0, 1, 0, 0, kPlain, weight_and_input},
    {"thnn_conv2d", convolution, 0, 1, 0, 0, kPlain, weight_and_input},
    {"_slow_conv2d_forward", convolution, 0, 1, 0, 0, kPlain, weight_and_input},
    {"slow_conv3d", convolution, 0, 1, 0, 0, kPlain, weight_and_input},
    {"_conv_depthwise2d", convolution, 0, 1, 0, 0, kPlain, weight_and_input},
    {"conv_depthwise3d", convolution, 0, 1, 0, 0, kPlain, weight_and_input},
    {"conv_transpose1d", transposed, 0, 1, 0, 0, "input elements x weights of one channel",
     weight_and_input},
    {"conv_transpose2d", transposed, 0, 1, 0, 0, "input elements x weights of one channel",
     weight_and_input},
    {"conv_transpose3d", transposed, 0, 1, 0, 0, "input elements x weights of one channel",
     weight_and_input},
    {"cudnn_convolution_transpose", transposed, 0, 1, 0, 0,
     "input elements x weights of one channel", weight_and_input},
    {"convolution_backward", gradient, 1, 2, 0, 2, kBoth},
    {"convolution_backward_overrideable", gradient, 1, 2, 0, 2, kBoth},
    {"cudnn_convolution_backward", gradient, 1, 2, 0, 2, kBoth},
    {"_slow_conv2d_backward", gradient, 1, 2, 0, 2, kBoth},
    {"avg_pool1d", average_pool, 0, 0, 0, 0, kPool},
    {"avg_pool2d", average_pool, 0, 0, 0, 0, kPool},
    {"avg_pool3d", average_pool, 0, 0, 0, 0, kPool},
    {"adaptive_avg_pool2d", average_pool, 0, 0, 0, 0, kPool},
    {"_adaptive_avg_pool2d", average_pool, 0, 0, 0, 0, kPool},
    {"avg_pool2d_backward", average_pool_gradient, 1, 0, 0, 1, "one scaling per input element"},
    {"avg_pool3d_backward", average_pool_gradient, 1, 0, 0, 1, "one scaling per input element"},
    {"_adaptive_avg_pool2d_backward", average_pool_gradient, 1, 0, 0, 1,
     "one scaling per input element"},
};

}  // namespace

std::span<const OperatorRow> window_operators() { return kRows; }

}  // namespace flopinj::reduce
