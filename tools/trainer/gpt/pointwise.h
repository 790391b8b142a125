// Operators on each value: sums and GELU.
#pragma once
#include "gpt/operator.h"

namespace trainer {

// The gradient of either operand is that of the sum: nothing runs in the backward pass.
class Add : Operator {
 public:
  using Operator::Operator;
  void forward(CUdeviceptr a, CUdeviceptr b, CUdeviceptr y);
};

// Of an MLP's hidden values, by tanh.
class Gelu : Operator {
 public:
  using Operator::Operator;
  void forward(CUdeviceptr x, CUdeviceptr y);
  void backward(CUdeviceptr x, CUdeviceptr dy, CUdeviceptr dx);  // dx may be dy

 private:
  uint64_t sequence_ = 0;
};

}  // namespace trainer
