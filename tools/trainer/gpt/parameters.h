// All weights of a model, one after another: in fp32 for the optimizer, in bf16 for products, with
// gradients and AdamW's moments beside them.
#pragma once
#include <cstdint>
#include <random>
#include <vector>

#include "gpt/gpt_kernels.h"
#include "gpu/gpu.h"
#include "operator_ranges.h"

namespace trainer {

using Bf16 = uint16_t;

// One tensor among them.
struct Weight {
  CUdeviceptr value;     // bf16
  CUdeviceptr gradient;  // fp32
};

class Parameters {
 public:
  // Room for `count` values.
  Parameters(const Stream& stream, const GptKernels& kernels, size_t count, uint64_t seed);

  // The next tensor, drawn from a normal distribution around 0, or constant.
  Weight normal(int rows, int columns, float deviation);
  Weight constant(int count, float value);
  void upload();  // once, when all are taken

  void clear_gradients();
  void update(const AdamW& options, OperatorCounter* counter);

  std::vector<float> values() const { return master_.download(stream_); }
  std::vector<float> gradients() const { return gradient_.download(stream_); }
  const OperatorRange::Sizes& shapes() const { return shapes_; }

 private:
  // `value` gives one after another.
  template <class Value>
  Weight take(const std::vector<int>& shape, const Value& value);

  const Stream& stream_;
  const GptKernels& kernels_;
  std::mt19937_64 random_;
  std::vector<float> initial_;
  OperatorRange::Sizes shapes_;
  Buffer<float> master_, gradient_, moment1_, moment2_;
  Buffer<Bf16> copy_;
  Buffer<float> state_;  // an AdamWState
};

}  // namespace trainer
