#include "passes/rows/row_log.h"

#include <algorithm>
#include <tuple>

namespace flopinj::reduce {

size_t RowLog::bytes() const {
  return sums.size() * sizeof(Sum) + stretches.size() * sizeof(Stretch) +
         parts.size() * sizeof(Part) + unplaced.size() * sizeof(Unplaced);
}

void RowLog::add(const RowLog& other) {
  const auto append = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(sums, other.sums);
  append(stretches, other.stretches);
  append(parts, other.parts);
  append(unplaced, other.unplaced);
}

void RowLog::add(const RowLog& other, std::span<const uint32_t> rows) {
  const size_t before[] = {sums.size(), parts.size(), unplaced.size()};
  add(other);
  const auto renumber = [&](auto& all, size_t from) {
    for (size_t i = from; i < all.size(); ++i) all[i].row = rows[all[i].row];
  };
  renumber(sums, before[0]);
  renumber(parts, before[1]);
  renumber(unplaced, before[2]);
}

void RowLog::add_up() {
  constexpr size_t kFew = 256;
  if (sums.size() < 2 * added_up_ + kFew) return;
  std::ranges::sort(sums, {}, [](const Sum& sum) { return std::tuple(sum.row, sum.kind); });
  size_t size = 0;
  for (const Sum& sum : sums)
    if (size > 0 && sums[size - 1].row == sum.row && sums[size - 1].kind == sum.kind)
      sums[size - 1].amount += sum.amount;
    else
      sums[size++] = sum;
  sums.resize(size);
  added_up_ = size;
}

}  // namespace flopinj::reduce
