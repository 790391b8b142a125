// Launches that come nearly in the order of their beginnings, put in order in bounded memory: the
// newest are kept until all that began before them must have come, as of BusyTrack.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace flopinj::reduce {

template <typename Launch>
class NearlyInOrder {
 public:
  explicit NearlyInOrder(size_t kept) : kept_(kept) {}
  // Calls visit(launch, late) for launches that are no longer kept: all that are not late are in
  // order, and a late one begins before one of them.
  template <typename Visit>
  void add(const Launch& launch, Visit&& visit) {
    if (newest_.size() == 2 * kept_) fold(kept_, visit);
    newest_.push_back(launch);
  }
  template <typename Visit>
  void end(Visit&& visit) {
    fold(newest_.size(), visit);
    newest_ = {};
    beside_ = {};
  }

 private:
  static bool begins_before(const Launch& a, const Launch& b) { return a.begin_ns < b.begin_ns; }

  template <typename Visit>
  void fold(size_t count, Visit&& visit) {
    sort_batches();
    for (size_t i = 0; i < count; ++i) {
      const bool late = newest_[i].begin_ns < last_begin_ns_;
      if (!late) last_begin_ns_ = newest_[i].begin_ns;
      visit(static_cast<const Launch&>(newest_[i]), late);
    }
    newest_.erase(newest_.begin(), newest_.begin() + static_cast<std::ptrdiff_t>(count));
  }

  // Launches come batch by batch, each in order: neighbours are merged, two and two, until all are.
  // In most traces the first round is the last.
  void sort_batches() {
    std::vector<std::ptrdiff_t> begins{0};
    const auto from = newest_.begin();
    for (auto at = from; at != newest_.end(); begins.push_back(at - from))
      at = std::is_sorted_until(at, newest_.end(), begins_before);
    while (begins.size() > 2) {
      std::vector<std::ptrdiff_t> fewer{0};
      for (size_t i = 2; i <= begins.size(); i += 2) {
        const auto end = from + begins[std::min(i, begins.size() - 1)];
        const auto middle = from + begins[i - 1];
        if (middle != end) {
          auto to = std::upper_bound(from + begins[i - 2], middle, *middle, begins_before);
          beside_.assign(to, middle);
          auto left = beside_.begin();
          for (auto right = middle; left != beside_.end(); ++to) {
            const bool next = right != end && begins_before(*right, *left);
            *to = next ? *right++ : *left++;
          }
        }
        fewer.push_back(end - from);
      }
      begins = std::move(fewer);
    }
  }

  size_t kept_;
  std::vector<Launch> newest_, beside_;  // the latter while batches are merged
  uint64_t last_begin_ns_ = 0;           // of launches that are no longer kept
};

}  // namespace flopinj::reduce
