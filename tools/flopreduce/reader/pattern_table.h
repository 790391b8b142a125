// Launch orders that batches of one trace refer to by row number.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
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
    bool operator==(const Row&) const = default;
  };

  // Ids in the rows are looked up where a batch uses them.
  void add(const trace::Interned::Pattern& message, DamageLog& damage);
  // Rows count from 1. False for one that is refused.
  bool set(uint64_t row, const Row& value) {
    if (row == 0 || row > kMax || row > all().size() + kMaxGap) return false;
    if (rows_ == nullptr || rows_.use_count() > 1)
      rows_ = std::make_shared<std::vector<Row>>(all().begin(), all().end());
    if (row > rows_->size()) rows_->resize(static_cast<size_t>(row));
    (*rows_)[static_cast<size_t>(row - 1)] = value;
    return true;
  }
  // An undefined row where there is none.
  Row get(uint64_t row) const {
    return row - 1 < all().size() ? all()[static_cast<size_t>(row - 1)] : Row{};
  }
  // `count` rows, or as many of them as there are.
  std::span<const Row> rows(uint64_t first, size_t count) const {
    if (first - 1 >= all().size()) return {};
    const auto at = static_cast<size_t>(first - 1);
    return all().subspan(at, std::min(count, all().size() - at));
  }
  // Equal tables have memory once: ranks of a job launch alike. Only on one thread.
  void share_with(const PatternTable& other) {
    if (rows_ == nullptr) return;
    if (std::ranges::equal(all(), other.all()))
      rows_ = other.rows_;
    else
      rows_->shrink_to_fit();
  }

 private:
  std::span<const Row> all() const {
    return rows_ ? std::span<const Row>(*rows_) : std::span<const Row>();
  }

  std::shared_ptr<std::vector<Row>> rows_;
};

}  // namespace flopinj::reduce
