// When a device was busy and when it idled: sums over the union of its kernels' times.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace flopinj::reduce {

// Between two kernels, with none running. Kernels as indices of TraceTables::signatures.
struct IdleGap {
  uint64_t begin_ns = 0;  // the trace's clock
  uint64_t length_ns = 0;
  uint32_t before = 0, after = 0;
};

struct BusyTime {
  // Gaps of [10^k, 10^(k+1)) ns are in place k; the last place has all longer ones. Not of 0 ns.
  static constexpr size_t kDecades = 12;
  static constexpr size_t kLargest = 10;
  struct Decade {
    uint64_t gaps = 0, ns = 0;
  };

  bool any = false;
  uint64_t begin_ns = 0, end_ns = 0;  // from the first kernel's start to the last one's end
  uint64_t busy_ns = 0;
  std::array<Decade, kDecades> idle{};
  std::vector<IdleGap> largest;  // longest first
  // Kernels, or parts of them, that came so late in the file that their time could not be joined
  // any more: they are not in busy_ns.
  uint64_t late = 0, late_ns = 0;

  void add_gap(const IdleGap& gap);
  // Gaps that are shorter are not among the largest.
  uint64_t least_kept() const { return least_kept_; }
  // What follows this in time; the gap between them is added by the caller.
  void add(const BusyTime& later);

 private:
  void keep_if_large(const IdleGap& gap);
  uint64_t least_kept_ = 1;
};

}  // namespace flopinj::reduce
