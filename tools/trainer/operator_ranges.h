// NVTX ranges as PyTorch's emit_nvtx(record_shapes=True) pushes them: operators with sequence
// number, operator id and the sizes of their arguments.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nvtx_range.h"

namespace trainer {

// Counts operators as PyTorch does. Not for two threads at a time.
struct OperatorCounter {
  uint64_t next_sequence = 0;  // of forward operators; their backward nodes carry the same
  uint64_t next_id = 1;
};

// A range for one operator, to the end of the scope; none without a counter.
class OperatorRange {
 public:
  using Sizes = std::vector<std::vector<int>>;
  static constexpr uint64_t kNoSequence = UINT64_MAX;

  OperatorRange(OperatorCounter* counter, const char* name, uint64_t sequence,
                const Sizes& sizes = {})
      : range_(counter == nullptr ? Ranges::kOff : Ranges::kOn,
               counter == nullptr ? std::string() : text(*counter, name, sequence, sizes)) {}

 private:
  static std::string text(OperatorCounter& counter, const char* name, uint64_t sequence,
                          const Sizes& sizes);
  NvtxRange range_;
};

// The ranges around the gradients of an operator: autograd's engine's, without a sequence number,
// and the node's.
class NodeRange {
 public:
  // `gradient`: the shape of the gradient by the operator's result.
  NodeRange(OperatorCounter* counter, const std::string& node, uint64_t sequence,
            const std::vector<int>& gradient)
      : evaluate_(counter, ("autograd::engine::evaluate_function: " + node).c_str(),
                  OperatorRange::kNoSequence),
        node_(std::in_place, counter, node.c_str(), sequence, OperatorRange::Sizes{gradient}) {}
  // The node has run: what follows is the engine's, such as the sum of a bias gradient over the
  // batch.
  void end_node() { node_.reset(); }

 private:
  OperatorRange evaluate_;
  std::optional<OperatorRange> node_;
};

}  // namespace trainer
