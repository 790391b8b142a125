// What the machine code of a kernel says of the instructions that CUPTI's SASS metrics count
// (docs/metrics.md: Instructions without arithmetic).
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "flop_trace.pb.h"

namespace flopinj::reduce {

// Instructions of one operation, by how many operations each of their lanes computes. How often
// each of them runs is not known.
struct InstructionCounts {
  uint64_t none = 0, one = 0, all = 0;
};

class KernelCode {
 public:
  enum class State : uint8_t {
    kNotSaid,  // by a recorder that does not look, or of kernels that are no machine code
    kNotRead,  // the recorder looks, and this code was not shown to it, or not all of it
    kRead,
  };

  KernelCode() = default;
  KernelCode(const trace::Interned::Function& function, bool recorder_looks)
      : state_(function.code_read() ? State::kRead
               : recorder_looks     ? State::kNotRead
                                    : State::kNotSaid),
        computes_(function.code_read() && function.computes() != 0 ? function.computes() : ~0U) {
    constexpr int kMost = trace::Interned::SassOperation_MAX;
    for (int i = 0; i < std::min(function.instructions_size(), kMost); ++i) {
      const auto& m = function.instructions(i);
      if (find(m.operation()) == nullptr)
        counts_.push_back({m.operation(), {m.none(), m.one(), m.all()}});
    }
  }

  State state() const { return state_; }
  // False: the code has no instruction of the operation that computes anything.
  bool may_compute(trace::Interned::SassOperation operation) const {
    return (computes_ >> operation & 1) != 0;
  }
  // Null where every instruction of the operation computes all it can, or nothing is known.
  const InstructionCounts* find(trace::Interned::SassOperation operation) const {
    for (const Entry& entry : counts_)
      if (entry.operation == operation) return &entry.counts;
    return nullptr;
  }

 private:
  struct Entry {
    trace::Interned::SassOperation operation;
    InstructionCounts counts;
  };
  State state_ = State::kNotSaid;
  uint32_t computes_ = ~0U;  // bits of operations
  std::vector<Entry> counts_;
};

}  // namespace flopinj::reduce
