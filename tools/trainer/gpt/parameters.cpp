#include "gpt/parameters.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <stdexcept>

namespace trainer {
namespace {

// Rounds to the nearest, ties to even.
Bf16 to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<Bf16>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace

Parameters::Parameters(const Stream& stream, const GptKernels& kernels, size_t count, uint64_t seed)
    : stream_(stream),
      kernels_(kernels),
      random_(seed),
      master_(stream.api(), count),
      gradient_(stream.api(), count),
      moment1_(stream.api(), count),
      moment2_(stream.api(), count),
      copy_(stream.api(), count),
      state_(stream.api(), sizeof(AdamWState) / sizeof(float)) {}

template <class Value>
Weight Parameters::take(const std::vector<int>& shape, const Value& value) {
  size_t count = 1;
  for (const int side : shape) count *= static_cast<size_t>(side);
  const size_t at = initial_.size();
  std::generate_n(std::back_inserter(initial_), count, value);
  shapes_.push_back(shape);
  return {copy_.address() + at * sizeof(Bf16), gradient_.address() + at * sizeof(float)};
}

Weight Parameters::normal(int rows, int columns, float deviation) {
  std::normal_distribution<float> distribution(0, deviation);
  return take({rows, columns}, [&] { return distribution(random_); });
}

Weight Parameters::constant(int count, float value) {
  return take({count}, [value] { return value; });
}

void Parameters::upload() {
  if (initial_.size() != master_.size()) throw std::logic_error("parameters miscounted");
  std::vector<Bf16> rounded;
  for (const float value : initial_) rounded.push_back(to_bf16(value));
  const float state[] = {1, 1, 0, 0};  // powers of zero steps
  master_.upload(stream_, initial_);
  copy_.upload(stream_, rounded);
  state_.upload(stream_, state);
  moment1_.clear(stream_);
  moment2_.clear(stream_);
  clear_gradients();
  stream_.synchronize();  // what is uploaded ends here
  initial_ = {};
}

void Parameters::clear_gradients() { gradient_.clear(stream_); }

void Parameters::update(const AdamW& options, OperatorCounter* counter) {
  const OperatorRange::Sizes scalars(shapes_.size());
  {
    OperatorRange::Sizes sizes = scalars;  // the steps of each tensor, and how many to add
    sizes.emplace_back();
    const OperatorRange range(counter, "aten::_foreach_add_", OperatorRange::kNoSequence, sizes);
    kernels_.adamw_advance.launch(stream_, {1, 1, 1, 1, 0}, options, state_.address());
  }
  OperatorRange::Sizes sizes;  // weights, gradients, both moments; no maxima; steps, nine options
  for (int list = 0; list < 4; ++list) sizes.insert(sizes.end(), shapes_.begin(), shapes_.end());
  sizes.emplace_back();
  sizes.insert(sizes.end(), scalars.begin(), scalars.end());
  sizes.resize(sizes.size() + 9);
  const OperatorRange range(counter, "aten::_fused_adamw_", OperatorRange::kNoSequence, sizes);
  const int count = static_cast<int>(master_.size());
  kernels_.adamw.launch(stream_, one_per_item(count), count, options, state_.address(),
                        gradient_.address(), moment1_.address(), moment2_.address(),
                        master_.address(), copy_.address());
}

}  // namespace trainer
