// Launch orders that batches of one trace refer to by row number.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "flop_trace.pb.h"
#include "reader/damage.h"

namespace flopinj::reduce {

// Bounded in the same way as IdMap: rows above kMax, or far above all before them, are refused.
class PatternTable {
 public:
  static constexpr size_t kMax = 1U << 20;
  static constexpr size_t kMaxGap = 1U << 16;
  struct Row {
    static constexpr uint32_t kUndefined = UINT32_MAX;
    uint32_t signature = kUndefined;  // ids of the trace
    uint32_t path = kUndefined;
    uint32_t sequence_step = 0;
    bool call = false;  // the first launch of a call of an operator
  };

  // Ids in the rows are looked up where a batch uses them.
  void add(const trace::Interned::Pattern& message, DamageLog& damage);
  // Rows count from 1. False for one that is refused.
  bool set(uint64_t row, const Row& value) {
    if (row == 0 || row > kMax || row > rows_.size() + kMaxGap) return false;
    if (row > rows_.size()) rows_.resize(static_cast<size_t>(row));
    rows_[static_cast<size_t>(row - 1)] = value;
    return true;
  }
  // An undefined row where there is none.
  Row get(uint64_t row) const {
    return row - 1 < rows_.size() ? rows_[static_cast<size_t>(row - 1)] : Row{};
  }
  // `count` rows, or as many of them as there are.
  std::span<const Row> rows(uint64_t first, size_t count) const {
    if (first - 1 >= rows_.size()) return {};
    const auto at = static_cast<size_t>(first - 1);
    return std::span(rows_).subspan(at, std::min(count, rows_.size() - at));
  }

 private:
  std::vector<Row> rows_;
};

}  // namespace flopinj::reduce
