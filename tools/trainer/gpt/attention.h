// Causal attention of several heads: two products for each head, and a softmax between them.
#pragma once
#include "gpt/operator.h"

namespace trainer {

class Attention : Operator {
 public:
  explicit Attention(const Place& place);

  // From queries, keys and values, side by side in the rows of `qkv`. Keeps the probabilities,
  // [batch][heads][context][context].
  void forward(CUdeviceptr qkv, CUdeviceptr probabilities, CUdeviceptr y);
  // `dscores` is as large as the probabilities.
  void backward(CUdeviceptr qkv, CUdeviceptr probabilities, CUdeviceptr dy, CUdeviceptr dscores,
                CUdeviceptr dqkv);

 private:
  Matrices part(CUdeviceptr qkv, int which) const;  // 0: queries, 1: keys, 2: values
  Matrices joined(CUdeviceptr y) const;             // of the heads' results
  Matrices square(CUdeviceptr scores) const;
  void multiply(const Kernel& kernel, int rows, int columns, int inner, const Matrices& a,
                const Matrices& b, const Matrices& c) const;

  const int width_, context_, heads_, matrices_, head_width_;
  const float scale_;  // of the scores
  const Sizes squares_;
  uint64_t scores_ = 0, softmax_ = 0, values_ = 0;  // sequence numbers
};

}  // namespace trainer
