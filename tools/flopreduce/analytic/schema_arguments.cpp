// Which of a name's sizes are the operator's arguments.
//
// PyTorch's profilers record what lies on the dispatcher's stack. Where an operator is called by
// TorchScript's interpreter that is the whole stack of the method, whose last entries are the
// operator's arguments (aten/src/ATen/core/dispatch/Dispatcher.h, callBoxed;
// torch/csrc/jit/runtime/interpreter.cpp). So of more sizes than the schema has arguments the last
// ones count, unless these do not fit and the first ones do: PyTorch may add arguments, and results
// that are given (out=) come behind them.
#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>

#include "analytic/tables.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

using Counts = std::array<uint8_t, 4>;  // of overloads; 0: no more

struct SchemaRow {
  std::string_view functions;
  Counts counts;
};

// Of operators with a formula, without those that take lists of tensors: PyTorch 2.15,
// aten/src/ATen/native/native_functions.yaml. Without overloads that are given their result.
constexpr SchemaRow kSchemas[] = {
    {"abs ceil cos erf erfinv exp exp2 expm1 floor hardsigmoid hardswish isfinite isinf "
     "isnan log log10 log1p log2 log_sigmoid mish neg reciprocal relu relu6 rsqrt selu sgn "
     "sigmoid sign silu sin sqrt square tan tanh trunc zero",
     {1}},
    {"round", {1, 2}},
    {"copy", {1, 2, 3}},
    {"max min", {1, 2, 3, 5}},
    {"log_sigmoid_forward where", {1, 3}},
    {"_adaptive_avg_pool2d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d "
     "_adaptive_avg_pool3d_backward _int_mm _prelu_kernel adaptive_avg_pool1d "
     "adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d "
     "adaptive_max_pool3d atan2 batch_norm_stats bmm celu channel_shuffle clamp_max "
     "clamp_min clone contiguous dot fill flip ge gelu ger glu gt hardsigmoid_backward "
     "hardswish_backward le leaky_relu lt masked_select matmul maximum minimum mish_backward "
     "mm mul mv one_hot outer pixel_shuffle pixel_unshuffle pow prelu reflection_pad2d "
     "repeat replication_pad2d reshape sigmoid_backward silu_backward tanh_backward tril "
     "triu true_divide vdot",
     {2}},
    {"div", {2, 3}},
    {"mean norm prod repeat_interleave std std_mean sum var var_mean", {2, 4}},
    {"_fused_dropout _log_softmax _masked_scale _prelu_kernel_backward _safe_softmax "
     "_softmax _thnn_fused_gru_cell_backward _weight_int8pack_mm "
     "adaptive_max_pool2d_backward adaptive_max_pool3d_backward add amax amin argmax argmin "
     "clamp constant_pad_nd cumprod cumsum dropout gelu_backward glu_backward hardtanh "
     "index_select l1_loss lerp linear log_sigmoid_backward log_softmax logsumexp "
     "masked_fill mse_loss native_dropout native_dropout_backward reflection_pad2d_backward "
     "replication_pad2d_backward roll rsub softmax softplus sub threshold threshold_backward "
     "upsample_nearest1d",
     {3}},
    {"argsort upsample_nearest2d", {3, 4}},
    {"upsample_nearest3d", {3, 5}},
    {"to", {3, 5, 6}},
    {"_fused_rms_norm _log_softmax_backward_data _softmax_backward_data addcdiv addcmul "
     "bilinear binary_cross_entropy cosine_similarity elu gather hardtanh_backward "
     "huber_loss kl_div leaky_relu_backward linear_backward mse_loss_backward nansum "
     "rms_norm scatter_add select_backward smooth_l1_loss softplus_backward "
     "upsample_linear1d upsample_nearest1d_backward",
     {4}},
    {"scatter upsample_bicubic2d upsample_bilinear2d", {4, 5}},
    {"upsample_trilinear3d", {4, 6}},
    {"_grouped_mm _thnn_fused_gru_cell _thnn_fused_lstm_cell addbmm addmm addmv addr baddbmm "
     "binary_cross_entropy_backward binary_cross_entropy_with_logits embedding "
     "embedding_dense_backward grid_sampler_2d grid_sampler_3d huber_loss_backward im2col "
     "index_add linalg_vector_norm native_layer_norm nll_loss nll_loss2d nll_loss_nd "
     "smooth_l1_loss_backward upsample_linear1d_backward upsample_nearest2d_backward",
     {5}},
    {"nll_loss2d_forward nll_loss_forward topk", {5, 7}},
    {"_addmm_activation _fused_rms_norm_backward _thnn_fused_lstm_cell_backward "
     "_thnn_fused_lstm_cell_backward_impl avg_pool1d batch_norm_elemt col2im "
     "cross_entropy_loss elu_backward group_norm gru_cell layer_norm max_pool1d "
     "max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d "
     "max_pool3d_with_indices ones_like rnn_relu_cell rnn_tanh_cell slice_backward "
     "slow_conv3d thnn_conv2d upsample_bicubic2d_backward upsample_bilinear2d_backward "
     "upsample_nearest3d_backward zeros_like",
     {6}},
    {"_slow_conv2d_forward", {6, 7}},
    {"_native_batch_norm_legit", {6, 8}},
    {"_batch_norm_with_update _conv_depthwise2d _native_batch_norm_legit_no_training "
     "_slow_conv2d_backward _to_copy avg_pool2d avg_pool3d conv1d conv2d conv3d "
     "conv_depthwise3d cudnn_convolution_relu full_like grid_sampler_2d_backward "
     "grid_sampler_3d_backward nll_loss2d_backward nll_loss_backward slow_conv_dilated2d "
     "slow_conv_dilated3d upsample_trilinear3d_backward",
     {7}},
    {"_scaled_dot_product_flash_attention", {7, 10}},
    {"_scaled_dot_product_efficient_attention "
     "_scaled_dot_product_fused_attention_overrideable _scaled_mm avg_pool2d_backward "
     "avg_pool3d_backward batch_norm_backward_elemt batch_norm_backward_reduce "
     "conv_transpose1d conv_transpose2d conv_transpose3d cudnn_batch_norm "
     "max_pool2d_with_indices_backward max_pool3d_with_indices_backward native_batch_norm "
     "native_group_norm native_layer_norm_backward scaled_dot_product_attention "
     "slow_conv_transpose2d slow_conv_transpose3d",
     {8}},
    {"embedding_bag", {8, 9}},
    {"_batch_norm_impl_index _embedding_bag _embedding_bag_forward_only "
     "_scaled_dot_product_attention_math _scaled_dot_product_cudnn_attention "
     "_scaled_grouped_mm batch_norm convolution convolution_overrideable "
     "cudnn_batch_norm_backward cudnn_convolution cudnn_convolution_add_relu instance_norm",
     {9}},
    {"convolution_backward_overrideable cudnn_convolution_transpose "
     "native_batch_norm_backward native_group_norm_backward",
     {10}},
    {"convolution_backward", {11}},
    {"_convolution", {12, 13}},
    {"_scaled_dot_product_efficient_attention_backward", {13}},
    {"_efficient_attention_forward", {14}},
    {"_scaled_dot_product_flash_attention_backward", {15}},
    {"_scaled_dot_product_cudnn_attention_backward", {16}},
    {"_flash_attention_backward _scaled_dot_product_fused_attention_overrideable_backward", {17}},
    {"_flash_attention_forward", {17, 18}},
    {"_efficient_attention_backward", {20}},
};

const Counts* counts_of(std::string_view function) {
  static const auto kBuilt = [] {
    std::unordered_map<std::string_view, const Counts*> map;
    for (const SchemaRow& row : kSchemas)
      for (const auto name : parts_of(row.functions, ' ')) map[name] = &row.counts;
    return map;
  }();
  auto found = kBuilt.find(function);
  if (found == kBuilt.end() && function.ends_with('_'))  // in place
    found = kBuilt.find(function.substr(0, function.size() - 1));
  return found == kBuilt.end() ? nullptr : found->second;
}

// Some of the sizes, and what they come to as arguments.
struct Reading {
  size_t first = 0;
  Formula formula;
  // 2: they have a formula, and the first one is a tensor's. 0: they are not those of the operator.
  int fits = 0;
};

Reading read_from(const OperatorName& name, size_t first) {
  const std::vector<Shape> sizes(name.sizes.begin() + static_cast<std::ptrdiff_t>(first),
                                 name.sizes.end());
  Reading reading{first, operator_formula(name, {.sizes = &sizes}), 1};
  if (reading.formula.flop && !sizes.front().empty())
    reading.fits = 2;
  else if (std::strcmp(reading.formula.why_not, kMismatch) == 0)
    reading.fits = 0;
  return reading;
}

// Whether the last sizes may be of results that were given: tensors, as large as what the others
// come to. Where an operation is one for each element and they are not, what is read instead comes
// to the same.
bool may_be_results(const OperatorName& name, const Reading& whole, size_t arguments) {
  constexpr size_t kMostResults = 2;
  const std::vector<Shape>& sizes = name.sizes;
  if (sizes.size() - arguments > kMostResults ||
      std::any_of(sizes.begin() + static_cast<std::ptrdiff_t>(arguments), sizes.end(),
                  [](const Shape& shape) { return shape.empty(); }))
    return false;
  const u128 result = elements(sizes.back());
  if (result == 0) return true;
  if (!same_kind_of_work(name.name, "aten::mm")) return result == elements(sizes.front());
  const auto is_inner = [&](const Shape& shape) {
    return !shape.empty() && whole.formula.flop &&
           times_saturating(result, static_cast<u128>(shape.back())) ==
               whole.formula.flop->multiply_adds;
  };
  return std::any_of(sizes.begin(), sizes.end() - 1, is_inner);
}

}  // namespace

void keep_arguments(OperatorName& name) {
  constexpr std::string_view kNamespace = "aten::";
  if (!name.has_sizes || !name.name.starts_with(kNamespace)) return;
  const Counts* counts = counts_of(name.name.substr(kNamespace.size()));
  const size_t all = name.sizes.size();
  if (counts == nullptr || all <= counts->front()) return;
  const Reading whole = read_from(name, 0);
  if (whole.fits > 0 && std::ranges::find(*counts, all) != counts->end()) return;
  std::optional<Reading> best;
  bool differ = false;
  for (const size_t arguments : *counts) {
    if (arguments == 0 || arguments >= all) continue;
    const Reading last = read_from(name, all - arguments);
    if (best && last.fits < best->fits) continue;
    differ = best && last.fits == best->fits && last.formula.flop != best->formula.flop;
    best = last;
  }
  if (!best || whole.fits > best->fits ||
      (whole.fits == best->fits && may_be_results(name, whole, all - best->first)))
    return;
  if (differ) {
    name.has_sizes = false;
    name.sizes.clear();
    return;
  }
  name.sizes.erase(name.sizes.begin(),
                   name.sizes.begin() + static_cast<std::ptrdiff_t>(best->first));
}

}  // namespace flopinj::reduce
