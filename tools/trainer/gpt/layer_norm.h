// Each token's values with mean 0 and deviation 1, times a weight, plus a bias.
#pragma once
#include "gpt/operator.h"
#include "gpt/parameters.h"

namespace trainer {

class LayerNorm : Operator {
 public:
  LayerNorm(const Place& place, Weight weight, Weight bias)
      : Operator(place), weight_(weight), bias_(bias), width_(place.sizes.width) {}

  // Keeps each token's mean and its 1 / deviation.
  void forward(CUdeviceptr x, CUdeviceptr y, CUdeviceptr means, CUdeviceptr scales);
  // Adds to the parameters' gradients. `beside` is the gradient by x on another way, to be added;
  // 0 where there is none.
  void backward(CUdeviceptr x, CUdeviceptr means, CUdeviceptr scales, CUdeviceptr dy,
                CUdeviceptr dx, CUdeviceptr beside);

 private:
  float inverse_width() const { return 1 / static_cast<float>(width_); }

  const Weight weight_, bias_;
  const int width_;
  uint64_t sequence_ = 0;
};

}  // namespace trainer
