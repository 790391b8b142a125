#include <collector/launch_patterns.h>

#include <algorithm>

namespace flopinj {
namespace {

uint64_t hash_of(std::span<const PatternRow> rows) {
  uint64_t h = rows.size();
  for (const PatternRow& r : rows) {
    h = (h ^ (uint64_t{r.path} << 32 | r.signature)) * 0x9E3779B97F4A7C15U;
    h = (h ^ (h >> 29) ^ r.step) * 0xBF58476D1CE4E5B9U;
  }
  return h ^ (h >> 32);
}

void extend(std::vector<LaunchPatterns::Run>& runs, uint32_t row) {
  if (!runs.empty()) {
    auto& last = runs.back();
    const uint32_t next = last.first_row == 0 ? 0 : last.first_row + last.count;
    if (next == row) {
      ++last.count;
      return;
    }
  }
  runs.push_back({row, 1});
}

}  // namespace

uint32_t LaunchPatterns::look_up(const Index& index, std::span<const PatternRow> launches) const {
  if (index.empty()) return 0;
  const uint32_t row = index[hash_of(launches) % kSlots];
  if (row == 0 || row - 1 + launches.size() > rows_.size()) return 0;
  return std::equal(launches.begin(), launches.end(), rows_.begin() + (row - 1)) ? row : 0;
}

// One row alone is looked up only where nothing can be learned any more: until then the new order
// becomes rows, and is found as a whole when it comes again.
uint32_t LaunchPatterns::find(std::span<const PatternRow> launches) const {
  if (launches.size() >= kContext)
    if (const uint32_t row = look_up(by_context_, launches.first(kContext))) return row;
  const bool full = rows_.size() >= kMaxPatternRows;
  return full || launches.size() < kContext ? look_up(by_row_, launches.first(1)) : 0;
}

void LaunchPatterns::add(const PatternRow& row) {
  if (by_row_.empty()) {
    by_row_.resize(kSlots);
    by_context_.resize(kSlots);
  }
  rows_.push_back(row);
  const std::span<const PatternRow> all(rows_);
  by_row_[hash_of(all.last(1)) % kSlots] = size();
  if (rows_.size() >= kContext)
    by_context_[hash_of(all.last(kContext)) % kSlots] =
        static_cast<uint32_t>(rows_.size() - kContext + 1);
}

void LaunchPatterns::code(std::span<const PatternRow> launches, uint32_t& next_row,
                          std::vector<Run>& runs) {
  for (; !launches.empty(); launches = launches.subspan(1)) {
    const PatternRow& launch = launches.front();
    const bool expected =
        next_row != 0 && next_row <= rows_.size() && rows_[next_row - 1] == launch;
    if (!expected) next_row = find(launches);
    if (next_row == 0 && launch.step != PatternRow::kNoStep && rows_.size() < kMaxPatternRows) {
      add(launch);
      next_row = size();
    }
    extend(runs, next_row);
    if (next_row != 0) ++next_row;
  }
}

}  // namespace flopinj
