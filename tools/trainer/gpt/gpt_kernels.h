// The kernels of gpt_kernels.cu, by the names they have there.
#pragma once
#include <filesystem>

#include "gpt/kernel_types.h"
#include "gpu/kernels.h"

namespace trainer {

class GptKernels {
 private:
  const DriverApi& api_;
  Module module_;
  Kernel get(const char* name) const { return {api_, module_.handle(), name}; }

 public:
  // From `path`; when it is empty, from gpt_kernels.ptx beside the executable. Throws CudaError.
  GptKernels(const DriverApi& api, const std::filesystem::path& path)
      : api_(api), module_(api, path.empty() ? beside_executable("gpt_kernels.ptx") : path) {}

  const Kernel product_nt = get("product_nt");
  const Kernel product_nn = get("product_nn");
  const Kernel product_tn = get("product_tn");
  const Kernel product_tn_add = get("product_tn_add");
  const Kernel add = get("add");
  const Kernel gelu = get("gelu");
  const Kernel gelu_backward = get("gelu_backward");
  const Kernel embedding = get("embedding");
  const Kernel embedding_backward = get("embedding_backward");
  const Kernel sum_leading = get("sum_leading");
  const Kernel layer_norm = get("layer_norm");
  const Kernel layer_norm_backward = get("layer_norm_backward");
  const Kernel layer_norm_weight_gradient = get("layer_norm_weight_gradient");
  const Kernel causal_softmax = get("causal_softmax");
  const Kernel causal_softmax_backward = get("causal_softmax_backward");
  const Kernel log_softmax = get("log_softmax");
  const Kernel nll_loss = get("nll_loss");
  const Kernel nll_loss_backward = get("nll_loss_backward");
  const Kernel log_softmax_backward = get("log_softmax_backward");
  const Kernel adamw_advance = get("adamw_advance");
  const Kernel adamw = get("adamw");
};

// A warp a row, four in a block: `rows` is a multiple of four.
inline LaunchShape warp_per_row(int rows) {
  return {static_cast<unsigned>(rows / 4), 1, 128, 1, 0};
}

// A warp a tile of the result, for each matrix.
inline LaunchShape warp_per_tile(int rows, int columns, int matrices = 1) {
  return {static_cast<unsigned>(columns / kTile), static_cast<unsigned>(rows / kTile), 32, 1, 0,
          static_cast<unsigned>(matrices)};
}

}  // namespace trainer
