// y = x W^T, without a bias.
#pragma once
#include "gpt/operator.h"
#include "gpt/parameters.h"

namespace trainer {

class Linear : Operator {
 public:
  Linear(const Place& place, Weight weight, int in, int out)
      : Operator(place), weight_(weight), in_(in), out_(out) {}

  void forward(CUdeviceptr x, CUdeviceptr y);
  // Adds to the weight's gradient.
  void backward(CUdeviceptr x, CUdeviceptr dy, CUdeviceptr dx);

 private:
  const Weight weight_;
  const int in_, out_;
  uint64_t sequence_ = kNone;
};

}  // namespace trainer
