// Layers without parameters.
#pragma once
#include "layer.h"

namespace trainer {

class ReluLayer final : public Layer {
 public:
  using Layer::Layer;
  CUdeviceptr forward(CUdeviceptr x) override;
  CUdeviceptr backward(CUdeviceptr x, CUdeviceptr dy) override;
};

// Square windows that do not overlap and cover the input.
class AveragePoolLayer final : public Layer {
 public:
  using Layer::Layer;
  CUdeviceptr forward(CUdeviceptr x) override;
  CUdeviceptr backward(CUdeviceptr x, CUdeviceptr dy) override;

 private:
  float scale() const { return 1.0f / static_cast<float>(spec_.window * spec_.window); }
};

}  // namespace trainer
