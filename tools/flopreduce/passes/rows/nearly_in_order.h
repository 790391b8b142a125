// Launches that come nearly in the order of their beginnings, put in order in bounded memory: the
// newest are kept until all that began before them must have come, as of BusyTrack.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "passes/rows/timeline.h"
#include "support/without_values.h"

namespace flopinj::reduce {

class NearlyInOrder {
 public:
  // Keeps at least `kept` of the newest launches, up to four times as many.
  explicit NearlyInOrder(size_t kept) : kept_(kept) {}
  // Hands launches that are no longer kept to to.late(launch) where one that began later was handed
  // on before, and all others to to.launches(span), in order.
  template <typename To>
  void add(const LaunchInTime& launch, To& to) {
    if (newest_.size() == 4 * kept_) fold(3 * kept_, to);
    newest_.push_back(launch);
    note_batches(newest_.size() - 1);
  }
  // At most `most`, which is at most `kept`: write(first) writes them there, one after another, and
  // returns how many.
  template <typename Write, typename To>
  void add(size_t most, Write&& write, To& to) {
    const size_t size = newest_.size();
    if (size + most > 4 * kept_) fold(std::min(3 * kept_, size), to);
    const size_t before = newest_.size();
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
    newest_ = {};
    batches_ = {};
  }
  template <typename To>
  void end(To& to) {
    fold(newest_.size(), to);
    newest_ = {};
    beside_ = {};
  }

 private:
  static bool begins_before(const LaunchInTime& a, const LaunchInTime& b) {
    return a.begin_ns < b.begin_ns;
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

  // Launches come batch by batch, each in order: neighbours are merged, two and two, until all are.
  // In most traces the first round is the last.
  void sort_batches() {
    std::vector<std::ptrdiff_t> begins{0};
    const auto from = newest_.begin();
    begins.insert(begins.end(), batches_.begin(), batches_.end());
    begins.push_back(std::ssize(newest_));
    while (begins.size() > 2) {
      std::vector<std::ptrdiff_t> fewer{0};
      for (size_t i = 2; i <= begins.size(); i += 2) {
        const auto end = from + begins[std::min(i, begins.size() - 1)];
        const auto middle = from + begins[i - 1];
        if (middle != end) {
          auto to = std::upper_bound(from + begins[i - 2], middle, *middle, begins_before);
          beside_.assign(to, middle);
          auto left = beside_.begin();
          for (auto right = middle; left != beside_.end();) {
            const auto before =
                right != end ? first_after(left, beside_.end(), *right) : beside_.end();
            to = std::copy(left, before, to);
            left = before;
            for (; left != beside_.end() && right != end && begins_before(*right, *left); ++right)
              *to++ = *right;
          }
        }
        fewer.push_back(end - from);
      }
      begins = std::move(fewer);
    }
  }

  size_t kept_;
  std::vector<LaunchInTime, WithoutValues<LaunchInTime>> newest_;
  std::vector<LaunchInTime, WithoutValues<LaunchInTime>> beside_;  // while batches are merged
  std::vector<std::ptrdiff_t> batches_;  // of newest_: where they begin, but the first one
  uint64_t last_begin_ns_ = 0;           // of launches that are no longer kept
};

}  // namespace flopinj::reduce
