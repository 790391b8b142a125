// y = x W^T, without a bias.
#pragma once
#include <functional>

#include "gpt/operator.h"
#include "gpt/parameters.h"

namespace trainer {

class Linear : Operator {
 public:
  Linear(const Place& place, Weight weight, int in, int out)
      : Operator(place), weight_(weight), in_(in), out_(out) {}

  void forward(CUdeviceptr x, CUdeviceptr y);
  // Adds to the weight's gradient. `unpack`, if any, first runs what `x` comes from, as hooks on
  // saved tensors do.
  void backward(CUdeviceptr x, CUdeviceptr dy, CUdeviceptr dx,
                const std::function<void()>& unpack = nullptr);

 private:
  const Weight weight_;
  const int in_, out_;
  uint64_t sequence_ = 0;
};

}  // namespace trainer
