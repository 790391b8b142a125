// The rows of a trace's patterns as calls: rows that follow each other in one range path, and have
// one sequence number or none. Batches refer to the same rows again and again, so that these are
// found once.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reader/pattern_table.h"

namespace flopinj::reduce {

class PatternCalls {
 public:
  struct Call {
    uint32_t begin = 0, end = 0;  // rows
    uint32_t path = 0;            // id
    uint32_t calls = 0;           // of an operator, that begin among its rows
    uint64_t step = 0;            // from the last sequence number to its own; 0 where it has none
    bool numbered = false;
    uint32_t launches() const { return end - begin; }
  };

  // Of a table with all of its rows, which must outlive this.
  explicit PatternCalls(const PatternTable& patterns);
  const PatternTable& patterns() const { return *patterns_; }
  // Of `count` rows from `first` on those that there are.
  std::span<const PatternTable::Row> rows(uint64_t first, size_t count) const {
    return patterns_->rows(first, count);
  }
  // Those of rows [first, end), which there are.
  std::span<const Call> calls(uint64_t first, uint64_t end) const {
    const auto from = std::ranges::upper_bound(calls_, first, {}, &Call::end);
    return {from, std::ranges::lower_bound(from, calls_.end(), end, {}, &Call::begin)};
  }
  size_t number(const Call& call) const { return static_cast<size_t>(&call - calls_.data()); }
  size_t size() const { return calls_.size(); }
  // Of calls of an operator, that begin among rows.
  static uint32_t begun(std::span<const PatternTable::Row> rows) {
    return static_cast<uint32_t>(std::ranges::count(rows, true, &PatternTable::Row::call));
  }

 private:
  const PatternTable* patterns_;
  std::vector<Call> calls_;
};

}  // namespace flopinj::reduce
