#include "passes/rows/busy_track.h"

#include <algorithm>

namespace flopinj::reduce {
namespace {

// The first that begins after `limit`, of intervals in order: most of the time there is none, or it
// is near.
const BusyInterval* up_to(const BusyInterval* at, const BusyInterval* end, uint64_t limit) {
  if (at == end || (end - 1)->begin <= limit) return end;
  while (end - at > 4 && at[4].begin <= limit) at += 4;
  while (at->begin <= limit) ++at;
  return at;
}

}  // namespace

void BusyTrack::late(uint64_t ns) {
  ++sums_.late;
  sums_.late_ns += ns;
}

// Few intervals take little memory. Where there are more, all is taken at once: what is copied into
// ever larger memory is touched twice.
BusyInterval* BusyTrack::room(size_t most) {
  constexpr size_t kFew = 1024;
  before_room_ = newest_.size();
  const size_t needed = before_room_ + most;
  if (needed > newest_.capacity()) newest_.reserve(needed <= kFew ? kFew : 4 * kept_ + most);
  newest_.resize(needed);
  return newest_.data() + before_room_;
}

void BusyTrack::added(size_t count) {
  newest_.resize(before_room_ + count);
  if (count == 0) return;
  const bool follows =
      !runs_.empty() && newest_[before_room_ - 1].begin <= newest_[before_room_].begin;
  if (follows)
    runs_.back().end += count;
  else
    runs_.push_back({before_room_, newest_.size()});
  if (newest_.size() > 4 * kept_) fold(newest_.size() - kept_);
}

void BusyTrack::add(std::span<const BusyInterval> batch) {
  std::copy(batch.begin(), batch.end(), room(batch.size()));
  added(batch.size());
}

// Intervals in the order of their beginnings, after all that was folded before, as far as they
// begin no later than `limit`. Returns the first that is left.
const BusyInterval* BusyTrack::fold_run(const BusyInterval* at, const BusyInterval* end,
                                        uint64_t limit) {
  if (part_ && !sums_.any) {
    for (; at != end && at->begin <= limit && head_.size() < kept_; ++at) {
      auto place = head_.end();
      while (place != head_.begin() && (place - 1)->begin > at->begin) --place;
      head_.insert(place, *at);
    }
    if (at == end || at->begin > limit) return at;
  }
  if (!sums_.any) {
    sums_.any = true;
    sums_.begin_ns = at->begin;
    folded_ = {at->begin, at->begin, at->begin, *at};
    // What the first intervals cover is theirs: the sums begin where the last of them ends.
    if (!head_.empty()) {
      const BusyInterval& last = *std::max_element(
          head_.begin(), head_.end(),
          [](const BusyInterval& a, const BusyInterval& b) { return a.end() < b.end(); });
      folded_ = {last.end(), head_.back().begin, last.end(), last};
    }
  }
  const BusyInterval* const to = up_to(at, end, limit);
  while (at != to) {
    if (short_gaps_.room() == 0) take_short_gaps();
    auto some = std::min(short_gaps_.room(), static_cast<size_t>(to - at));
    if (at->begin < folded_.last_begin) [[unlikely]] {
      late(std::min(at->end(), folded_.end) - std::min(at->begin, folded_.end));
      some = 1;
    }
    fold_some({at, some});
    at += some;
  }
  return at;
}

// What is neither busy nor a gap is no time: busy is how far the end has moved, less the gaps.
void BusyTrack::take_short_gaps() { sums_.busy_ns -= short_gaps_.move_to(sums_); }

// What is known to be in order, and not empty.
void BusyTrack::fold_some(std::span<const BusyInterval> some) {
  folded_.last_begin = std::max(folded_.last_begin, some.back().begin);
  const BusyInterval* at = some.data();
  const BusyInterval* const end = at + some.size();
  uint64_t covered = folded_.end;
  BusyInterval last = folded_.last;
  uint64_t long_gaps = 0;
  const auto longest_short = [this] {
    return std::min(sums_.least_kept() - 1, ShortGaps::kLongest);
  };
  uint64_t most = longest_short();
  const BusyInterval* one_by_one = at + 1;  // up to here; tried again a little after it was in vain
  while (at != end) {
    const BusyInterval& i = *at++;
    uint64_t gap = i.begin > covered ? i.begin - covered : 0;
    if (gap > most) [[unlikely]] {
      sums_.add_gap({covered, gap, last.kernel(), i.kernel()});
      covered += gap;
      long_gaps += gap;
      most = longest_short();
      gap = 0;
    }
    short_gaps_.add(gap);
    covered += gap;
    // One that begins and ends in a gap's last moment leaves the kernel before as it is.
    last.packed = i.end() > covered ? i.packed : last.packed;
    covered = std::max(covered, i.end());
    if (at < one_by_one || end - at < ShortGaps::kAtOnce) continue;
    const BusyInterval* const to = short_gaps_.add_between(at, end, covered, most);
    if (to == at) one_by_one = at + ShortGaps::kAtOnce;
    for (const BusyInterval* back = to; back != at && (--back)->end() > covered;) {
      if (back->length() == 0) continue;
      last.packed = back->packed;
      break;
    }
    at = to;
    covered = std::max(covered, at[-1].end());
  }
  short_gaps_.added(some.size());
  sums_.busy_ns += covered - folded_.end - long_gaps;
  folded_.end = sums_.end_ns = covered;
  folded_.last = last;
}

// The oldest `count` intervals. Runs overlap little: most of the time the next interval is of the
// same run as the last one.
void BusyTrack::fold(size_t count) {
  std::sort(runs_.begin(), runs_.end(), [this](const Run& a, const Run& b) {
    return newest_[a.at].begin < newest_[b.at].begin;
  });
  struct Active {
    uint64_t begin;  // of its next interval
    Run* run;
  };
  std::vector<Active> active;
  const auto begin_of = [this](const Run& run) { return newest_[run.at].begin; };
  const BusyInterval* const all = newest_.data();
  for (auto waiting = runs_.begin(); count > 0;) {
    if (active.empty()) {
      active.push_back({begin_of(*waiting), &*waiting});
      ++waiting;
    }
    size_t first = 0;
    uint64_t limit = UINT64_MAX;  // the first interval of another run
    for (size_t i = 1; i < active.size(); ++i) {
      const bool sooner = active[i].begin < active[first].begin;
      limit = std::min(limit, active[sooner ? first : i].begin);
      if (sooner) first = i;
    }
    std::swap(active[0], active[first]);
    if (waiting != runs_.end() && begin_of(*waiting) <= limit) {
      limit = begin_of(*waiting);
      if (limit < active[0].begin) {
        active.push_back({limit, &*waiting++});
        continue;
      }
    }
    Run& run = *active[0].run;
    const BusyInterval* const from = all + run.at;
    const BusyInterval* const to = fold_run(from, all + std::min(run.end, run.at + count), limit);
    count -= static_cast<size_t>(to - from);
    run.at = static_cast<size_t>(to - all);
    if (run.at == run.end)
      active.erase(active.begin());
    else
      active[0].begin = to->begin;
  }
  take_short_gaps();
  drop_folded();
}

void BusyTrack::drop_folded() {
  std::erase_if(runs_, [](const Run& run) { return run.at == run.end; });
  std::sort(runs_.begin(), runs_.end(), [](const Run& a, const Run& b) { return a.at < b.at; });
  size_t size = 0;
  for (Run& run : runs_) {
    std::copy(newest_.begin() + static_cast<std::ptrdiff_t>(run.at),
              newest_.begin() + static_cast<std::ptrdiff_t>(run.end),
              newest_.begin() + static_cast<std::ptrdiff_t>(size));
    const size_t length = run.end - run.at;
    run = {size, size + length};
    size += length;
  }
  newest_.resize(size);
}

// All that is left, which has to end where the sums of a part begin; what does not is late.
void BusyTrack::fold_before(uint64_t begin) {
  for (Run& run : runs_) {
    for (size_t i = run.at; i < run.end; ++i) {
      BusyInterval& interval = newest_[i];
      if (interval.end() <= begin) continue;
      late(interval.end() - std::max(begin, interval.begin));
      interval.begin = std::min(interval.begin, begin);
      interval.packed = BusyInterval::packed_kernel(interval.kernel()) | (begin - interval.begin);
    }
  }
  fold(newest_.size());
}

void BusyTrack::append(const BusyTrack& later) {
  add(later.head_);
  if (later.sums_.any) {
    const uint64_t begin = later.folded_.first_begin;
    fold_before(begin);
    if (folded_.end > begin) {  // folded already: too late to be kept apart
      late(folded_.end - begin);
      sums_.busy_ns -= std::min(sums_.busy_ns, folded_.end - begin);
    }
    folded_.last_begin = later.folded_.last_begin;
    folded_.end = later.folded_.end;
    folded_.last = later.folded_.last;
  }
  sums_.add(later.sums_);
  for (const Run& run : later.runs_)
    add(std::span(later.newest_).subspan(run.at, run.end - run.at));
}

BusyTime BusyTrack::take() {
  fold(newest_.size());
  return sums_;
}

}  // namespace flopinj::reduce
