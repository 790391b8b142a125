#include <collector/base/hash.h>
#include <collector/trace/launch_patterns.h>

#include <algorithm>
#include <new>
#include <utility>

namespace flopinj {
namespace {

// Rows with the same hash that are compared: an order that repeats itself within a step has many.
constexpr int kMostCompared = 8;

size_t slot_of(const PatternRow* rows, size_t slots) {
  uint64_t h = 0;
  for (size_t i = 0; i < LaunchPatterns::kContext; ++i) {
    h = hash_mix(h, hash_pair(rows[i].path, rows[i].signature));
    h = hash_mix(h, uint64_t{rows[i].step} << 1 | (rows[i].call ? 1 : 0));
  }
  return h % slots;
}

void extend(std::vector<LaunchPatterns::Run>& runs, uint32_t row, size_t count) {
  const auto launches = static_cast<uint32_t>(count);
  if (!runs.empty()) {
    auto& last = runs.back();
    const uint32_t next = last.first_row == 0 ? 0 : last.first_row + last.count;
    if (next == row) {
      last.count += launches;
      return;
    }
  }
  runs.push_back({row, launches});
}

}  // namespace

// How many launches are the rows from this one on.
size_t LaunchPatterns::repeats(uint32_t row, Launches launches) const {
  if (row == 0 || row > rows_.size()) return 0;
  const auto from = rows_.begin() + (row - 1);
  const auto [same, _] = std::mismatch(from, rows_.end(), launches.begin(), launches.end());
  return static_cast<size_t>(same - from);
}

// The row from which on most of the launches are repeated; 0 where none is known.
uint32_t LaunchPatterns::longest(Launches launches) const {
  if (!newest_ || launches.size() < kContext) return 0;
  uint32_t best = 0;
  size_t most = kContext - 1;
  uint32_t row = (*newest_)[slot_of(launches.data(), kSlots)];
  for (int i = 0; i < kMostCompared && row != 0; ++i, row = older_[row - 1]) {
    const size_t same = repeats(row, launches);
    if (same <= most) continue;
    best = row;
    most = same;
  }
  return best;
}

// How many of the launches, which are the last of recent_, came in this order when such ones were
// asked for before; kLongRun of them are enough to know.
size_t LaunchPatterns::seen_before(Launches launches) {
  if (!places_.make()) throw std::bad_alloc();
  const size_t here = recent_.size() - launches.size();
  uint32_t& place = (*places_)[slot_of(launches.data(), kSlots)];
  const size_t before = std::exchange(place, static_cast<uint32_t>(here + 1));
  if (before == 0) return 0;
  const auto most = launches.first(std::min(launches.size(), kLongRun));
  const auto [end, _] = std::mismatch(most.begin(), most.end(), recent_.begin() + (before - 1),
                                      [](const PatternRow& a, const PatternRow& b) {
                                        return a == b && a.step != PatternRow::kNoStep;
                                      });
  return static_cast<size_t>(end - most.begin());
}

// The first row of a run for these launches; 0 where they are in no pattern. Rows are made of what
// has come before, up to where a long run is known, if that makes this run at least twice as long:
// so the same place asks for rows a few times at most.
uint32_t LaunchPatterns::find(Launches launches) {
  if (launches.size() < kContext) return 0;
  const uint32_t row = longest(launches);
  const size_t known = repeats(row, launches);
  const bool full = rows_.size() + kLongRun > kMaxPatternRows;
  if (full || known >= kLongRun || known == launches.size()) return row;
  const size_t again = seen_before(launches);
  const auto long_run_from = [&](size_t at) {
    const Launches rest = launches.subspan(at);
    return repeats(longest(rest), rest) >= kLongRun;
  };
  size_t fresh = std::max(kContext, known);
  while (fresh < again && !long_run_from(fresh)) ++fresh;
  fresh = std::min(fresh, again);
  const bool worth = fresh >= std::max(kContext, 2 * known);
  if (!worth) return row;
  add(launches.first(fresh));
  return size() - static_cast<uint32_t>(fresh) + 1;
}

// Of orders that come several times among these rows, the first is found first, since it goes on
// longest.
void LaunchPatterns::add(Launches launches) {
  if (!newest_.make()) throw std::bad_alloc();
  const size_t known = rows_.size();
  rows_.insert(rows_.end(), launches.begin(), launches.end());
  older_.resize(rows_.size());
  if (rows_.size() < kContext) return;
  const size_t from = known < kContext ? 0 : known - kContext + 1;
  for (size_t at = rows_.size() - kContext + 1; at-- > from;)
    older_[at] =
        std::exchange((*newest_)[slot_of(&rows_[at], kSlots)], static_cast<uint32_t>(at + 1));
}

void LaunchPatterns::code(Launches launches, uint32_t& next_row, std::vector<Run>& runs) {
  if (recent_.size() + launches.size() > kMaxRecent) {
    recent_.clear();
    if (places_) (*places_).fill(0);
  }
  recent_.insert(recent_.end(), launches.begin(), launches.end());
  while (!launches.empty()) {
    size_t count = repeats(next_row, launches);
    if (count == 0) {
      next_row = find(launches);
      count = next_row == 0 ? 1 : repeats(next_row, launches);
    }
    extend(runs, next_row, count);
    if (next_row != 0) next_row += static_cast<uint32_t>(count);
    launches = launches.subspan(count);
  }
}

}  // namespace flopinj
