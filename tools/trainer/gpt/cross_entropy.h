// The mean negative logarithm of the probability of each token's successor.
#pragma once
#include "gpt/operator.h"
#include "gpt/parameters.h"

namespace trainer {

class CrossEntropy : Operator {
 public:
  // `scale`: the weight of a token in the loss.
  CrossEntropy(const Place& place, float scale);

  // Adds to the loss.
  void forward(CUdeviceptr logits, CUdeviceptr labels);
  void backward(CUdeviceptr labels, CUdeviceptr dlogits);

  void clear() { loss_.clear(stream()); }
  float read() const { return loss_.download(stream()).front(); }

 private:
  const int classes_;
  const float scale_;
  Buffer<float> log_probabilities_, gradient_, loss_;
  uint64_t softmax_ = 0, likelihood_ = 0;  // sequence numbers
};

}  // namespace trainer
