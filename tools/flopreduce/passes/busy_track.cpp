#include "passes/busy_track.h"

#include <algorithm>

namespace flopinj::reduce {

void BusyTrack::late(uint64_t ns) {
  ++sums_.late;
  sums_.late_ns += ns;
}

void BusyTrack::add(std::span<const BusyInterval> batch) {
  if (batch.empty()) return;
  const bool follows = !runs_.empty() && newest_.back().begin <= batch.front().begin;
  if (follows)
    runs_.back().end += batch.size();
  else
    runs_.push_back({newest_.size(), newest_.size() + batch.size()});
  newest_.insert(newest_.end(), batch.begin(), batch.end());
  if (newest_.size() > 4 * kept_) fold(newest_.size() - kept_);
}

// Intervals in the order of their beginnings, after all that was folded before, as far as they begin
// no later than `limit`. Returns the first that is left.
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
    folded_ = {at->begin, at->begin, at->begin, at->kernel()};
    // What the first intervals cover is theirs: the sums begin where the last of them ends.
    if (!head_.empty()) {
      const BusyInterval& last = *std::max_element(
          head_.begin(), head_.end(),
          [](const BusyInterval& a, const BusyInterval& b) { return a.end() < b.end(); });
      folded_ = {last.end(), head_.back().begin, last.end(), last.kernel()};
    }
  }
  while (at != end && at->begin <= limit) {
    if (short_gaps_.room() == 0) take_short_gaps();
    const auto most = std::min(short_gaps_.room(), static_cast<size_t>(end - at));
    at = fold_some(at, at + most, limit);
  }
  return at;
}

// What is neither busy nor a gap is no time: busy is how far the end has moved, less the gaps.
void BusyTrack::take_short_gaps() { sums_.busy_ns -= short_gaps_.move_to(sums_); }

const BusyInterval* BusyTrack::fold_some(const BusyInterval* at, const BusyInterval* end,
                                         uint64_t limit) {
  const BusyInterval* const first = at;
  Folded f = folded_;
  uint64_t long_gaps = 0;
  const auto longest_short = [this] {
    return std::min(sums_.least_kept() - 1, ShortGaps::kLongest);
  };
  uint64_t most = longest_short();
  for (; at != end && at->begin <= limit; ++at) {
    const uint64_t its_end = at->end();
    if (at->begin < f.last_begin) [[unlikely]]
      late(std::min(its_end, f.end) - std::min(at->begin, f.end));
    else
      f.last_begin = at->begin;
    uint64_t gap = at->begin > f.end ? at->begin - f.end : 0;
    if (gap > most) [[unlikely]] {
      sums_.add_gap({f.end, gap, f.last, at->kernel()});
      f.end += gap;
      long_gaps += gap;
      most = longest_short();
      gap = 0;
    }
    short_gaps_.add(gap);
    // One that begins and ends in a gap's last moment leaves the kernel before as it is.
    const uint64_t reached = f.end + gap;
    f.last = its_end > reached ? at->kernel() : f.last;
    f.end = std::max(reached, its_end);
  }
  short_gaps_.added(static_cast<size_t>(at - first));
  sums_.busy_ns += f.end - folded_.end - long_gaps;
  folded_ = f;
  sums_.end_ns = f.end;
  return at;
}

// The oldest `count` intervals. Runs overlap little: most of the time the next interval is of the
// same run as the last one.
void BusyTrack::fold(size_t count) {
  std::sort(runs_.begin(), runs_.end(), [this](const Run& a, const Run& b) {
    return newest_[a.at].begin < newest_[b.at].begin;
  });
  std::vector<Run*> active;
  for (size_t waiting = 0; count > 0;) {
    if (active.empty()) active.push_back(&runs_[waiting++]);
    const auto begin_of = [this](const Run* run) { return newest_[run->at].begin; };
    std::swap(active[0],
              *std::min_element(active.begin(), active.end(), [&](const Run* a, const Run* b) {
                return begin_of(a) < begin_of(b);
              }));
    if (waiting < runs_.size() && begin_of(&runs_[waiting]) < begin_of(active[0])) {
      active.push_back(&runs_[waiting++]);
      continue;
    }
    uint64_t limit = UINT64_MAX;  // the first interval of another run
    for (size_t i = 1; i < active.size(); ++i) limit = std::min(limit, begin_of(active[i]));
    if (waiting < runs_.size()) limit = std::min(limit, begin_of(&runs_[waiting]));
    Run& run = *active[0];
    const BusyInterval* const first = newest_.data();
    const auto to = static_cast<size_t>(
        fold_run(first + run.at, first + std::min(run.end, run.at + count), limit) - first);
    count -= to - run.at;
    run.at = to;
    if (run.at == run.end) active.erase(active.begin());
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
    if (folded_.end > begin) {  // folded already: too late to be told apart
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
