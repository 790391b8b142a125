#include "gpt/pointwise.h"

namespace trainer {

void Add::forward(CUdeviceptr a, CUdeviceptr b, CUdeviceptr y) {
  const Sizes shape = by_token(sizes().width);
  const int count = tokens() * sizes().width;
  const auto add = range("aten::add", number(), {shape, shape, {}});
  kernels().add.launch(stream(), one_per_item(count), count, count, a, b, y);
}

void Gelu::forward(CUdeviceptr x, CUdeviceptr y) {
  const int count = tokens() * sizes().hidden();
  const auto gelu = range("aten::gelu", number(sequence_), {by_token(sizes().hidden()), {}});
  kernels().gelu.launch(stream(), one_per_item(count), count, x, y);
}

void Gelu::backward(CUdeviceptr x, CUdeviceptr dy, CUdeviceptr dx) {
  const Sizes shape = by_token(sizes().hidden());
  const int count = tokens() * sizes().hidden();
  const auto backward = node("GeluBackward0", sequence_, shape);
  const auto gelu = range("aten::gelu_backward", {shape, shape, {}});
  kernels().gelu_backward.launch(stream(), one_per_item(count), count, x, dy, dx);
}

}  // namespace trainer
