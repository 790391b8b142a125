// Launches that come nearly in the order of their beginnings, put in order in bounded memory: the
// newest are kept until all that began before them must have come, as of BusyTrack.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "passes/rows/timeline.h"
#include "support/without_values.h"

namespace flopinj::reduce {

// Memory that was given back: the parts of a trace follow each other, and each needs as much. Any
// thread.
class SpareLaunches {
 public:
  using Launches = std::vector<LaunchInTime, WithoutValues<LaunchInTime>>;
  Launches take() {
    const std::lock_guard lock(lock_);
    Launches launches;
    if (spare_.empty()) return launches;
    launches.swap(spare_.back());
    spare_.pop_back();
    return launches;
  }
  void give(Launches launches) {
    constexpr size_t kMost = 4;
    launches.clear();
    const std::lock_guard lock(lock_);
    if (spare_.size() < kMost) spare_.push_back(std::move(launches));
  }

 private:
  std::mutex lock_;
  std::vector<Launches> spare_;
};

class NearlyInOrder {
 public:
  // Keeps at least `kept` of the newest launches, up to four times as many. `spare`, which may be
  // null, must outlive this.
  explicit NearlyInOrder(size_t kept, SpareLaunches* spare = nullptr) : kept_(kept), spare_(spare) {
    if (spare_ != nullptr) newest_ = spare_->take();
  }
  // Hands launches that are no longer kept to to.late(launch) where one that began later was handed
  // on before, and all others to to.launches(span), in order.
  template <typename To>
  void add(const LaunchInTime& launch, To& to) {
    if (newest_.size() == 4 * kept_) fold(newest_.size() - kept_, to);
    make_room(1);
    newest_.push_back(launch);
    note_batches(newest_.size() - 1);
  }
  // At most `most`, which is at most `kept`: write(first) writes them there, one after another, and
  // returns how many.
  template <typename Write, typename To>
  void add(size_t most, Write&& write, To& to) {
    if (newest_.size() + most > 4 * kept_) fold(newest_.size() - kept_, to);
    const size_t before = newest_.size();
    make_room(most);
    newest_.resize(before + most);
    newest_.resize(before + write(newest_.data() + before));
    note_batches(before);
  }
  // Of those that were handed on in order; 0 before the first one.
  uint64_t last_begin_ns() const { return last_begin_ns_; }
  // Those that are still kept, in no order but that of equal beginnings, go to take(launch).
  template <typename Take>
  void give(Take&& take) {
    for (const LaunchInTime& launch : newest_) take(launch);
    give_back();
    batches_ = {};
  }
  template <typename To>
  void end(To& to) {
    fold(newest_.size(), to);
    give_back();
    beside_ = {};
  }

 private:
  static bool begins_before(const LaunchInTime& a, const LaunchInTime& b) {
    return a.begin_ns < b.begin_ns;
  }

  // Few launches take little memory. Where there are more, all is taken at once: what is copied
  // into ever larger memory is touched twice.
  void make_room(size_t more) {
    constexpr size_t kFew = 1024;
    const size_t needed = newest_.size() + more;
    if (needed > newest_.capacity()) newest_.reserve(needed <= kFew ? kFew : 4 * kept_);
  }

  void give_back() {
    if (spare_ != nullptr) spare_->give(std::move(newest_));
    newest_ = {};
  }

  // A batch begins where a launch begins before the one before it. These are the launches added
  // last.
  void note_batches(size_t from) {
    for (size_t i = std::max<size_t>(1, from); i < newest_.size(); ++i)
      if (begins_before(newest_[i], newest_[i - 1]))
        batches_.push_back(static_cast<std::ptrdiff_t>(i));
  }

  template <typename To>
  void fold(size_t count, To& to) {
    if (count == 0) return;
    sort_batches();
    const std::span<const LaunchInTime> oldest(newest_.data(), count);
    size_t late = 0;
    for (; late < count && oldest[late].begin_ns < last_begin_ns_; ++late) to.late(oldest[late]);
    if (late < count) {
      last_begin_ns_ = oldest.back().begin_ns;
      to.launches(oldest.subspan(late));
    }
    newest_.erase(newest_.begin(), newest_.begin() + static_cast<std::ptrdiff_t>(count));
    batches_.clear();
  }

  // The first that begins after the launch, soonest found where it is near.
  template <typename At>
  static At first_after(At from, At end, const LaunchInTime& launch) {
    std::ptrdiff_t step = 1;
    for (; step < end - from && !begins_before(launch, from[step]); step *= 2) from += step;
    return std::upper_bound(from, from + std::min(step + 1, end - from), launch, begins_before);
  }
  // The end of those that do not begin after the launch, soonest found where it is near `end`.
  template <typename At>
  static At last_not_after(At begin, At end, const LaunchInTime& launch) {
    std::ptrdiff_t step = 1;
    for (; step < end - begin && begins_before(launch, end[-step]); step *= 2) end -= step;
    return std::upper_bound(end - std::min(step, end - begin), end, launch, begins_before);
  }

  // Launches come batch by batch, each in order: neighbours are merged, two and two, until all are.
  // In most traces the first round is the last.
  void sort_batches() {
    std::vector<std::ptrdiff_t> begins{0};
    begins.insert(begins.end(), batches_.begin(), batches_.end());
    begins.push_back(std::ssize(newest_));
    while (begins.size() > 2) {
      std::vector<std::ptrdiff_t> fewer{0};
      for (size_t i = 2; i <= begins.size(); i += 2) {
        const auto end = begins[std::min(i, begins.size() - 1)];
        merge(newest_.begin() + begins[i - 2], newest_.begin() + begins[i - 1],
              newest_.begin() + end);
        fewer.push_back(end);
      }
      begins = std::move(fewer);
    }
  }
  // Two neighbours, of which the shorter one is kept beside. Of equals those before the middle come
  // first.
  template <typename At>
  void merge(At begin, At middle, At end) {
    if (middle == end) return;
    begin = std::upper_bound(begin, middle, *middle, begins_before);
    end = std::lower_bound(middle, end, *(middle - 1), begins_before);
    if (middle - begin > end - middle) return merge_backward(begin, middle, end);
    beside_.assign(begin, middle);
    At to = begin;
    auto left = beside_.begin();
    for (At right = middle; left != beside_.end();) {
      const auto before = right != end ? first_after(left, beside_.end(), *right) : beside_.end();
      to = std::copy(left, before, to);
      left = before;
      for (; left != beside_.end() && right != end && begins_before(*right, *left); ++right)
        *to++ = *right;
    }
  }
  // From the last one on.
  template <typename At>
  void merge_backward(At begin, At middle, At end) {
    beside_.assign(middle, end);
    At to = end, left = middle;
    for (auto right = beside_.end(); right != beside_.begin();) {
      const At after = last_not_after(begin, left, *(right - 1));
      to = std::move_backward(after, left, to);
      left = after;
      for (; right != beside_.begin() &&
             (left == begin || !begins_before(*(right - 1), *(left - 1)));)
        *--to = *--right;
    }
  }

  size_t kept_;
  SpareLaunches* spare_;
  SpareLaunches::Launches newest_;
  SpareLaunches::Launches beside_;       // while batches are merged
  std::vector<std::ptrdiff_t> batches_;  // of newest_: where they begin, but the first one
  uint64_t last_begin_ns_ = 0;           // of launches that are no longer kept
};

}  // namespace flopinj::reduce
