// Convolutions of any dimension. Arguments a and b are input and weight, c the gradient by the
// output where the operator has it.
//
// Multiply-adds of [N, Ci, ...] with weights [Co, Ci / groups, K...]: elements of the output x
// Ci / groups x K..., taps that fall on padding included (torch.utils.flop_counter:
// conv_flop_count; fvcore: conv_flop_count). A transposed convolution, weights [Ci, Co / groups,
// K...], has its input where the other has its output. Each gradient costs the same as forward, so
// both together twice.
//
// Some operators, and the gradient, are of both kinds, and a flag tells which that emit_nvtx leaves
// out. Without it sizes decide where the weights fit only one kind, or where both come to the same;
// a gradient's also the forward operator.
#include <algorithm>

#include "analytic/tables.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

constexpr const char* kNoOutput =
    "stride and padding are not in the range's name, nor is the output's size in another's";
constexpr const char* kMaybeTransposed =
    "transposed or not: neither the sizes nor another range's name tell";

// Products for each of `outer`'s channels, dimension 0 of the weights.
u128 multiply_adds(const Shape& outer, const Shape& weight) {
  u128 each = 1;
  for (size_t i = 1; i < weight.size(); ++i)
    each = times_saturating(each, static_cast<u128>(weight[i]));
  return times_saturating(elements(outer), each);
}

bool fit(const Shape& input, const Shape& weight) {
  return weight.size() >= 3 && weight.size() <= 5 &&
         (input.size() == weight.size() || input.size() + 1 == weight.size());
}
// The channels of an input with or without a batch dimension.
int64_t channels(const Shape& x, const Shape& weight) { return x[x.size() + 1 - weight.size()]; }
// Weights [Co, Ci / groups, ...], or [Ci, Co / groups, ...] with input and output swapped.
bool grouped(int64_t from, int64_t to, const Shape& weight) {
  return to == weight[0] && weight[1] > 0 && from % weight[1] == 0 && from >= weight[1] &&
         to % (from / weight[1]) == 0;
}

bool is_plain(std::string_view function);  // by the table below

// Dumoulin and Visin, A guide to convolution arithmetic for deep learning: floor((i + 2p - k) / s)
// + 1, with k stretched to d (k - 1) + 1.
std::optional<Shape> output_shape(const Shape& input, const Shape& weight,
                                  const OperatorSettings& set) {
  constexpr int64_t kMost = int64_t{1} << 40;  // far from any overflow
  // Settings of another module, such as one that holds this convolution's.
  for (size_t i = 0; i + 2 < weight.size() && !set.kernel.empty(); ++i)
    if (setting_at(set.kernel, i, 0) != weight[i + 2]) return std::nullopt;
  if (set.stride.empty()) return std::nullopt;
  Shape output(input.begin(), input.end());
  const size_t first = input.size() + 2 - weight.size();  // spatial dimension
  output[first - 1] = weight[0];
  for (size_t i = 0; i + 2 < weight.size(); ++i) {
    const int64_t stride = setting_at(set.stride, i, 1), padding = setting_at(set.padding, i, 0);
    const int64_t dilation = setting_at(set.dilation, i, 1), kernel = weight[i + 2],
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
  const Shape &input = call.shape(row.a), &weight = call.shape(row.b);
  if (!fit(input, weight) || !grouped(channels(input, weight), weight[0], weight))
    return Formula::none(kMismatch);
  if (call.output != nullptr && call.output->size() == input.size() &&
      channels(*call.output, weight) == weight[0])
    return Formula::of(multiply_adds(*call.output, weight));
  if (call.settings != nullptr)
    if (const auto output = output_shape(input, weight, *call.settings))
      return Formula::of(multiply_adds(*output, weight));
  return Formula::none(kNoOutput);
}

Formula transposed(const OperatorCall& call, const OperatorRow& row) {
  const Shape &input = call.shape(row.a), &weight = call.shape(row.b);
  if (!fit(input, weight) || channels(input, weight) != weight[0]) return Formula::none(kMismatch);
  return Formula::of(multiply_adds(input, weight));
}

std::optional<bool> transposed_setting(const OperatorCall& call) {
  return call.settings != nullptr ? call.settings->transposed : std::nullopt;
}

// By the weights; where both fit, the two come to the same, or `name` says which.
Formula of_either(const Shape& input, const Shape& output, const Shape& weight,
                  const OperatorName* name, std::optional<bool> is_transposed) {
  const int64_t from = channels(input, weight), to = channels(output, weight);
  const bool plain = grouped(from, to, weight) && !is_transposed.value_or(false);
  const bool turned = grouped(to, from, weight) && is_transposed.value_or(true);
  if (!plain && !turned) return Formula::none(kMismatch);
  const Formula as_plain = Formula::of(multiply_adds(output, weight));
  const Formula as_turned = Formula::of(multiply_adds(input, weight));
  if (!turned || (plain && *as_plain.flop == *as_turned.flop)) return as_plain;
  if (!plain) return as_turned;
  const std::string_view function = name != nullptr ? name->function() : std::string_view();
  if (function.find("transpose") != function.npos) return as_turned;
  return is_plain(function) ? as_plain : Formula::none(kMaybeTransposed);
}

// Of either kind, forward.
Formula either(const OperatorCall& call, const OperatorRow& row) {
  const Shape &input = call.shape(row.a), &weight = call.shape(row.b);
  if (!fit(input, weight)) return Formula::none(kMismatch);
  const auto is_transposed = transposed_setting(call);
  if (call.output != nullptr && call.output->size() == input.size())
    return of_either(input, *call.output, weight, call.forward, is_transposed);
  if (is_transposed) return *is_transposed ? transposed(call, row) : convolution(call, row);
  const int64_t from = channels(input, weight);
  const bool plain = grouped(from, weight[0], weight), turned = from == weight[0];
  if (plain && turned) return Formula::none(kMaybeTransposed);
  return turned ? transposed(call, row) : convolution(call, row);
}

Formula gradient(const OperatorCall& call, const OperatorRow& row) {
  const Shape &input = call.shape(row.a), &weight = call.shape(row.b), &output = call.shape(row.c);
  if (!fit(input, weight) || output.size() != input.size()) return Formula::none(kMismatch);
  return of_either(input, output, weight, call.forward, transposed_setting(call));
}

constexpr OperatorRow kConvolutionRows[] = {
    // output elements x input channels of a group x kernel elements, padding included
    {"conv1d conv2d conv3d cudnn_convolution cudnn_convolution_relu cudnn_convolution_add_relu "
     "thnn_conv2d _slow_conv2d_forward slow_conv3d slow_conv_dilated2d slow_conv_dilated3d "
     "_conv_depthwise2d conv_depthwise3d",
     convolution, 0, 1, 0, 0, weight_and_input},
    {"convolution _convolution convolution_overrideable", either, 0, 1, 0, 0, weight_and_input},
    // input elements x weights of one channel
    {"conv_transpose1d conv_transpose2d conv_transpose3d slow_conv_transpose2d "
     "slow_conv_transpose3d cudnn_convolution_transpose",
     transposed, 0, 1, 0, 0, weight_and_input},
    // twice the forward formula: gradients by input and by weight
    {"convolution_backward convolution_backward_overrideable cudnn_convolution_backward "
     "_slow_conv2d_backward",
     gradient, 1, 2, 0, 2},
};

bool is_plain(std::string_view function) {
  return std::ranges::any_of(kConvolutionRows, [&](const OperatorRow& row) {
    const auto names = parts_of(row.functions, ' ');
    return row.formula == convolution && std::ranges::find(names, function) != names.end();
  });
}

}  // namespace

std::span<const OperatorRow> convolution_operators() { return kConvolutionRows; }

}  // namespace flopinj::reduce
