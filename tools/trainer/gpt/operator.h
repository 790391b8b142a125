// What the operators of a GPT have in common: where they run, and how they are named in ranges.
// Each has a forward and a backward pass on memory of its caller's.
#pragma once
#include "gpt/gpt_kernels.h"
#include "gpt/sizes.h"
#include "operator_ranges.h"

namespace trainer {

struct Place {
  const Stream& stream;
  const GptKernels& kernels;
  GptSizes sizes;
  OperatorCounter* counter;  // null: no ranges of operators
  bool again = false;        // what runs is a checkpointed block's forward pass, for its backward
};

class Operator {
 public:
  explicit Operator(const Place& place) : place_(place) {}

 protected:
  using Sizes = std::vector<int>;

  // The first of the sequence numbers for so many autograd nodes, which the caller then has.
  uint64_t number(unsigned nodes = 1) const {
    if (place_.counter == nullptr) return 0;
    const uint64_t first = place_.counter->next_sequence;
    place_.counter->next_sequence += nodes;
    return first;
  }
  // The same; kept for the backward pass, unless this pass has its numbers from before.
  uint64_t number(uint64_t& kept, unsigned nodes = 1) const {
    const uint64_t first = number(nodes);
    if (!place_.again) kept = first;
    return first;
  }

  OperatorRange range(const char* name, uint64_t sequence,
                      const OperatorRange::Sizes& sizes) const {
    return {place_.counter, name, sequence, sizes};
  }
  OperatorRange range(const char* name, const OperatorRange::Sizes& sizes) const {
    return range(name, OperatorRange::kNoSequence, sizes);
  }
  NodeRange node(const char* name, uint64_t sequence, const Sizes& gradient) const {
    return {place_.counter, name, sequence, gradient};
  }

  // [batch, context, columns]
  Sizes by_token(int columns) const { return {place_.sizes.batch, place_.sizes.context, columns}; }
  int tokens() const { return place_.sizes.tokens(); }
  const GptSizes& sizes() const { return place_.sizes; }
  const GptKernels& kernels() const { return place_.kernels; }
  const Stream& stream() const { return place_.stream; }

 private:
  const Place& place_;
};

}  // namespace trainer
