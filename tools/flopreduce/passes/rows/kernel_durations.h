// How long the launches of each kernel took: for tables of kernels, and for what a summary keeps of
// it (the format's KernelDurations). Launches made while counters were read are left out.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
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
  static constexpr uint32_t kPage = 64;
  using Page = std::array<uint64_t, kPage>;

  explicit Durations(size_t kernels) : kernels_(kernels) {}

  // Launches, whose buckets are added by themselves or not known.
  void add(size_t kernel, uint64_t launches, const ShortestLongest& times);
  // Of buckets from number x kPage on. Stays where it is.
  Page& page(size_t kernel, uint32_t number);
  void add_bucket(size_t kernel, uint32_t bucket, uint64_t launches);
  void add(const Durations& o);

  bool full() const { return full_; }
  LaunchTimes of(size_t kernel) const;
  // Calls visit(bucket, launches) for each bucket of a kernel with launches, in rising order.
  template <typename Visit>
  void for_each_bucket(size_t kernel, Visit&& visit) const {
    if (full_) return;
    for (const auto& [number, page] : kernels_[kernel].pages)
      for (uint32_t i = 0; i < kPage; ++i)
        if (page[i] > 0) visit(number * kPage + i, page[i]);
  }

 private:
  struct Kernel {
    uint64_t launches = 0;
    ShortestLongest times;
    std::map<uint32_t, Page> pages;
  };
  std::optional<double> median_ns(size_t kernel) const;

  std::vector<Kernel> kernels_;
  size_t pages_ = 0;
  bool full_ = false;
  Page nowhere_{};  // for what has no room
};

// A number for each kernel, as the names of signatures say it.
struct KernelNumbers {
  std::vector<uint32_t> names;         // by number: NamePool; kNoIndex: not known
  std::vector<uint32_t> of_signature;  // numbers

  explicit KernelNumbers(const SignatureTable& signatures);
};

class KernelDurations final : public LaunchConsumer {
 public:
  // Both must outlive this.
  KernelDurations(const TraceTables& tables, const KernelNumbers& kernels)
      : tables_(tables), kernels_(kernels), durations_(kernels.names.size()) {}
  void launches(const RowTable& rows, const LaunchPiece& piece) override;
  void tally(const RowTable& rows, uint32_t row, const TallyRow& tally) override;
  void packet(uint32_t trace, const Packet& packet) override;
  void end(const RowTable& rows) override;
  // Of launches, without tallies, up to end().
  ShortestLongest times(uint32_t row) const {
    return row < rows_.size() ? ShortestLongest{rows_[row].shortest_ns, rows_[row].longest_ns}
                              : ShortestLongest{};
  }
  void add(const KernelDurations& o) { durations_.add(o.durations_); }
  // Fills Totals::launch_times.
  void give(Totals& totals) const;
  // Of the launches of one trace, whose rows these are.
  std::vector<trace::KernelDurations> messages(RowTable& rows) const;

 private:
  struct OfRow {
    uint64_t shortest_ns = UINT64_MAX, longest_ns = 0;
    // With the bucket of the last launch: few kernels need two.
    uint32_t page_number = UINT32_MAX;  // none yet
    Durations::Page* page = nullptr;
  };
  const TraceTables& tables_;
  const KernelNumbers& kernels_;
  Durations durations_;
  std::vector<OfRow> rows_;
};

}  // namespace flopinj::reduce
