#include "gpt/layer_norm.h"

namespace trainer {
namespace {

constexpr float kNormEpsilon = 1e-5f;

}  // namespace

void LayerNorm::forward(CUdeviceptr x, CUdeviceptr y, CUdeviceptr means, CUdeviceptr scales) {
  const Sizes shape = by_token(width_);
  const uint64_t sequence = number(sequence_);
  const auto norm = range("aten::layer_norm", sequence, {shape, {}, {width_}, {width_}, {}, {}});
  const auto native =
      range("aten::native_layer_norm", sequence, {shape, {}, {width_}, {width_}, {}});
  kernels().layer_norm.launch(stream(), warp_per_row(tokens()), width_, inverse_width(),
                              kNormEpsilon, x, weight_.value, bias_.value, y, means, scales);
}

void LayerNorm::backward(CUdeviceptr x, CUdeviceptr means, CUdeviceptr scales, CUdeviceptr dy,
                         CUdeviceptr dx, CUdeviceptr beside) {
  const Sizes shape = by_token(width_), each = by_token(1);
  auto backward = node("NativeLayerNormBackward0", sequence_, shape);
  {
    const auto native = range("aten::native_layer_norm_backward",
                              {shape, shape, {}, each, each, {width_}, {width_}, {}});
    kernels().layer_norm_backward.launch(stream(), warp_per_row(tokens()), width_, inverse_width(),
                                         x, weight_.value, means, scales, dy, dx);
    kernels().layer_norm_weight_gradient.launch(stream(), one_per_item(width_), tokens(), width_, x,
                                                means, scales, dy, weight_.gradient,
                                                bias_.gradient);
  }
  if (beside == 0) return;
  backward.end_node();
  const auto add = range("aten::add_", {shape, shape, {}});
  const int count = tokens() * width_;
  kernels().add.launch(stream(), one_per_item(count), count, count, dx, beside, dx);
}

}  // namespace trainer
