// When a device was busy and when it idled: sums over the union of its kernels' times.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace flopinj::reduce {

// Between two kernels, with none running. Kernels as indices of Model::signatures.
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

  void add_gap(const IdleGap& gap) {
    Decade& decade = idle[decade_of(gap.length_ns)];
    ++decade.gaps;
    decade.ns += gap.length_ns;
    if (gap.length_ns >= least_kept_) [[unlikely]]
      keep_if_large(gap);
  }
  // What follows this in time; the gap between them is added by the caller.
  void add(const BusyTime& later);

 private:
  static constexpr auto kPowers = [] {
    std::array<uint64_t, kDecades + 1> powers{1};
    for (size_t i = 1; i < powers.size(); ++i) powers[i] = 10 * powers[i - 1];
    return powers;
  }();
  // floor(log10(value)): 1233 / 4096 is log10(2), near enough for 64 bits.
  static size_t decade_of(uint64_t value) {
    const auto guess = static_cast<size_t>(std::bit_width(value)) * 1233 >> 12U;
    if (guess >= kDecades) return kDecades - 1;
    return guess - (value < kPowers[guess] && guess > 0 ? 1 : 0);
  }
  void keep_if_large(const IdleGap& gap);
  uint64_t least_kept_ = 1;  // what would be among the largest is at least so long
};

}  // namespace flopinj::reduce
