// How long launches took, by kernel: the shortest, the longest, and how many there are in each
// bucket of durations (common/step_buckets.h). Kernels are numbers from 0.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "step_buckets.h"
#include "support/shortest_longest.h"
#include "tables/totals.h"

namespace flopinj::reduce {

class Durations {
 public:
  // Of 64 buckets, of one kernel: 36 MB. A table that needs more keeps no buckets at all: which
  // kernels found room would depend on the order.
  static constexpr size_t kMostPages = 1U << 16;

  explicit Durations(size_t kernels) : kernels_(kernels) {}
  Durations(Durations&&) = default;
  Durations& operator=(Durations&&) = default;
  Durations(const Durations&) = delete;
  Durations& operator=(const Durations&) = delete;
  ~Durations() = default;

  // One launch.
  void add(size_t kernel, uint64_t ns) {
    Kernel& k = kernels_[kernel];
    ++k.launches;
    k.times.add(ShortestLongest::of_one(ns));
    add_to_bucket(kernel, ns);
  }
  // The same, of which only the bucket is asked for later.
  void add_to_bucket(size_t kernel, uint64_t ns) {
    if (uint64_t* const count = place(kernel, step_bucket(ns))) ++*count;
  }
  // Launches of which no more is known.
  void add(size_t kernel, uint64_t launches, const ShortestLongest& times);
  // Launches that were added so, in a bucket.
  void add_bucket(size_t kernel, uint32_t bucket, uint64_t launches);
  void add(const Durations& o);

  bool full() const { return full_; }
  LaunchTimes of(size_t kernel) const;
  // Calls visit(bucket, launches) for each bucket of a kernel with launches, in rising order.
  template <typename Visit>
  void for_each_bucket(size_t kernel, Visit&& visit) const {
    for (auto at = pages_.lower_bound(key(kernel, 0));
         at != pages_.end() && at->first >> 8 == kernel; ++at)
      for (uint32_t i = 0; i < kPage; ++i)
        if (at->second[i] > 0)
          visit(static_cast<uint32_t>(at->first & 0xFF) * kPage + i, at->second[i]);
  }

 private:
  static constexpr uint32_t kPage = 64;
  static constexpr uint32_t kNoPage = UINT32_MAX;
  using Page = std::array<uint64_t, kPage>;
  struct Kernel {
    uint64_t launches = 0;
    ShortestLongest times;
    Page* page = nullptr;  // that was used last; null where there is no room
    uint32_t page_number = kNoPage;
  };
  static uint64_t key(size_t kernel, uint32_t page) { return uint64_t{kernel} << 8 | page; }
  // Null where there is no room.
  uint64_t* place(size_t kernel, uint32_t bucket) {
    Kernel& k = kernels_[kernel];
    if (k.page_number != bucket / kPage) use_page(kernel, bucket / kPage);
    return k.page == nullptr ? nullptr : &(*k.page)[bucket % kPage];
  }
  void use_page(size_t kernel, uint32_t page);
  void give_up();
  std::optional<double> median_ns(size_t kernel) const;

  std::vector<Kernel> kernels_;
  std::map<uint64_t, Page> pages_;
  bool full_ = false;
};

}  // namespace flopinj::reduce
