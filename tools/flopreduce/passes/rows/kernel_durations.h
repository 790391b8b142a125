// How long the launches of each kernel took: for tables of kernels, and for what a summary keeps of
// it (the format's KernelDurations). Launches made while counters were read are left out.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "flop_trace.pb.h"
#include "passes/rows/launch_consumer.h"
#include "step_buckets.h"
#include "support/shortest_longest.h"
#include "tables/totals.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

// By kernel, which are numbers from 0: the shortest, the longest, and how many there are in each
// bucket of durations (common/step_buckets.h).
class Durations {
 public:
  // Of 64 buckets, of one kernel: 66 MB with their places. A table that needs more keeps no
  // buckets at all: which kernels found room would depend on the order.
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
    if (uint64_t* const count = place(k, step_bucket(ns))) ++*count;
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
    if (!kernels_[kernel].pages) return;
    for (uint32_t page = 0; page < kPages; ++page)
      if (const auto& counts = (*kernels_[kernel].pages)[page])
        for (uint32_t i = 0; i < kPage; ++i)
          if ((*counts)[i] > 0) visit(page * kPage + i, (*counts)[i]);
  }

 private:
  static constexpr uint32_t kPage = 64;
  static constexpr uint32_t kPages = (kStepBuckets + kPage - 1) / kPage;
  using Page = std::array<uint64_t, kPage>;
  struct Kernel {
    uint64_t launches = 0;
    ShortestLongest times;
    std::unique_ptr<std::array<std::unique_ptr<Page>, kPages>> pages;
  };
  // Null where there is no room.
  uint64_t* place(Kernel& kernel, uint32_t bucket) {
    if (kernel.pages != nullptr)
      if (Page* const page = (*kernel.pages)[bucket / kPage].get()) return &(*page)[bucket % kPage];
    return new_place(kernel, bucket);
  }
  uint64_t* new_place(Kernel& kernel, uint32_t bucket);
  void give_up();
  std::optional<double> median_ns(size_t kernel) const;

  std::vector<Kernel> kernels_;
  size_t pages_ = 0;
  bool full_ = false;
};

class KernelDurations final : public LaunchConsumer {
 public:
  // `tables` must outlive this.
  explicit KernelDurations(const TraceTables& tables);
  void launches(const RowTable& rows, const LaunchPiece& piece) override;
  void tally(const RowTable& rows, uint32_t row, const TallyRow& tally) override;
  void packet(uint32_t trace, const Packet& packet) override;
  void add(const KernelDurations& o) { durations_.add(o.durations_); }
  // Fills Totals::launch_times.
  void give(Totals& totals) const;
  // Of the launches of one trace, whose rows these are.
  std::vector<trace::KernelDurations> messages(RowTable& rows) const;

 private:
  const TraceTables& tables_;
  // A number for each kernel, as the names of signatures say it.
  std::vector<uint32_t> names_;   // by kernel: NamePool; kNoIndex: not known
  std::vector<uint32_t> kernel_;  // by signature
  Durations durations_;
};

}  // namespace flopinj::reduce
