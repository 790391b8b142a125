#include "gpt/linear.h"

namespace trainer {

void Linear::forward(CUdeviceptr x, CUdeviceptr y) {
  const uint64_t first = number(sequence_, 4);  // the weight's transposition, view, product, view
  const auto linear = range("aten::linear", first, {by_token(in_), {out_, in_}, {}});
  const auto matmul = range("aten::matmul", first + 1, {by_token(in_), {in_, out_}});
  const auto mm = range("aten::mm", first + 2, {{tokens(), in_}, {in_, out_}});
  kernels().product_nt.launch(stream(), warp_per_tile(tokens(), out_), in_, Matrices{x, in_},
                              Matrices{weight_.value, in_}, Matrices{y, out_});
}

void Linear::backward(CUdeviceptr x, CUdeviceptr dy, CUdeviceptr dx,
                      const std::function<void()>& unpack) {
  const auto backward = node("MmBackward0", sequence_ + 2, {tokens(), out_});
  if (unpack) unpack();
  {
    const auto mm = range("aten::mm", {{out_, tokens()}, {tokens(), in_}});
    kernels().product_tn_add.launch(stream(), warp_per_tile(out_, in_), tokens(),
                                    Matrices{dy, out_}, Matrices{x, in_},
                                    Matrices{weight_.gradient, in_});
  }
  const auto mm = range("aten::mm", {{tokens(), out_}, {out_, in_}});
  kernels().product_nn.launch(stream(), warp_per_tile(tokens(), in_), out_, Matrices{dy, out_},
                              Matrices{weight_.value, in_}, Matrices{dx, in_});
}

}  // namespace trainer
