#include "gpt/attention.h"

#include <cmath>
#include <numbers>

#include "gpt/parameters.h"

namespace trainer {

Attention::Attention(const Place& place)
    : Operator(place),
      width_(place.sizes.width),
      context_(place.sizes.context),
      heads_(place.sizes.heads),
      matrices_(place.sizes.batch * heads_),
      head_width_(place.sizes.head_width()),
      scale_(1 / std::sqrt(static_cast<float>(head_width_))),
      squares_{place.sizes.batch, heads_, context_, context_} {}

Matrices Attention::part(CUdeviceptr qkv, int which) const {
  const auto offset = static_cast<CUdeviceptr>(which * width_) * sizeof(Bf16);
  return {qkv + offset, 3 * width_, heads_, context_ * 3 * width_, head_width_};
}

Matrices Attention::joined(CUdeviceptr y) const {
  return {y, width_, heads_, context_ * width_, head_width_};
}

Matrices Attention::square(CUdeviceptr scores) const {
  return {scores, context_, heads_, heads_ * context_ * context_, context_ * context_};
}

void Attention::multiply(const Kernel& kernel, int rows, int columns, int inner, const Matrices& a,
                         const Matrices& b, const Matrices& c) const {
  kernel.launch(stream(), warp_per_tile(rows, columns, matrices_), inner, a, b, c);
}

void Attention::forward(CUdeviceptr qkv, CUdeviceptr probabilities, CUdeviceptr y) {
  const int batch = squares_[0], t = context_, d = head_width_;
  number(8);  // split, and a view and a transposition of each part; keys are transposed once more
  {
    const uint64_t first = number(scores_, 4);  // expand twice, product, view
    const auto matmul =
        range("aten::matmul", first, {{batch, heads_, t, d}, {batch, heads_, d, t}});
    const auto bmm = range("aten::bmm", first + 2, {{matrices_, t, d}, {matrices_, d, t}});
    multiply(kernels().product_nt, t, t, d, part(qkv, 0), part(qkv, 1), square(probabilities));
  }
  {
    const uint64_t sequence = number(softmax_);
    const auto softmax = range("aten::softmax", sequence, {squares_, {}, {}});
    const auto inner = range("aten::_softmax", sequence, {squares_, {}, {}});
    kernels().causal_softmax.launch(stream(), warp_per_row(matrices_ * t), t,
                                    scale_ * std::numbers::log2e_v<float>, probabilities);
  }
  const uint64_t first = number(values_, 4);
  const auto matmul = range("aten::matmul", first, {squares_, {batch, heads_, t, d}});
  const auto bmm = range("aten::bmm", first + 2, {{matrices_, t, t}, {matrices_, t, d}});
  multiply(kernels().product_nn, t, d, t, square(probabilities), part(qkv, 2), joined(y));
  number(3);  // heads side by side: transposition, copy, view
}

void Attention::backward(CUdeviceptr qkv, CUdeviceptr probabilities, CUdeviceptr dy,
                         CUdeviceptr dscores, CUdeviceptr dqkv) {
  const int t = context_, d = head_width_;
  {
    const auto backward = node("BmmBackward0", values_ + 2, {matrices_, t, d});
    {
      const auto bmm = range("aten::bmm", {{matrices_, t, t}, {matrices_, t, d}});
      multiply(kernels().product_tn, t, d, t, square(probabilities), joined(dy), part(dqkv, 2));
    }
    const auto bmm = range("aten::bmm", {{matrices_, t, d}, {matrices_, d, t}});
    multiply(kernels().product_nt, t, t, d, joined(dy), part(qkv, 2), square(dscores));
  }
  {
    const auto backward = node("SoftmaxBackward0", softmax_, squares_);
    const auto data = range("aten::_softmax_backward_data", {squares_, squares_, {}, {}});
    kernels().causal_softmax_backward.launch(stream(), warp_per_row(matrices_ * t), t, scale_,
                                             probabilities, dscores);
  }
  const auto backward = node("BmmBackward0", scores_ + 2, {matrices_, t, t});
  {
    const auto bmm = range("aten::bmm", {{matrices_, d, t}, {matrices_, t, t}});
    multiply(kernels().product_tn, t, d, t, square(dscores), part(qkv, 0), part(dqkv, 1));
  }
  const auto bmm = range("aten::bmm", {{matrices_, t, t}, {matrices_, t, d}});
  multiply(kernels().product_nn, t, d, t, square(dscores), part(qkv, 1), part(dqkv, 0));
}

}  // namespace trainer
