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

  void add_gap(const IdleGap& gap);
  // Gaps that are shorter are not among the largest.
  uint64_t least_kept() const { return least_kept_; }
  // What follows this in time; the gap between them is added by the caller.
  void add(const BusyTime& later);

 private:
  void keep_if_large(const IdleGap& gap);
  uint64_t least_kept_ = 1;
};

// Gaps that need not be told apart, added up without a branch: a place for each decade, and one for what
// is no gap.
class ShortGaps {
 public:
  static constexpr uint64_t kLongest = (uint64_t{1} << 27U) - 1;  // ns
  void add(uint64_t ns) { places_[place_of(ns)] += kOne | ns; }
  // How many more may be added; the caller counts them.
  size_t room() const { return room_; }
  void added(size_t gaps) { room_ -= gaps; }
  // What has been added since, in ns. There is room again.
  uint64_t move_to(BusyTime& sums);

 private:
  static constexpr size_t kMost = 1U << 16;
  // A count of up to 2^16 above a sum of up to 2^43.
  static constexpr unsigned kSumBits = 44;
  static constexpr uint64_t kOne = uint64_t{1} << kSumBits;
  static constexpr unsigned kPlaceBits = 32;
  static constexpr size_t kPlaces = 10;  // 0, and the decades up to kLongest
  // By number of bits: with this added, the place is in the upper half of a gap. Where a power of ten has
  // as many bits, gaps from there on carry over.
  static constexpr auto kToPlace = [] {
    std::array<uint64_t, 28> to_place{};
    uint64_t power = 1;  // the next
    uint64_t place = 0;
    for (size_t bits = 1; bits < to_place.size(); ++bits) {
      const bool has_power = static_cast<size_t>(std::bit_width(power)) == bits;
      place += has_power ? 1 : 0;
      to_place[bits] = (place << kPlaceBits) - (has_power ? power : 0);
      if (has_power) power *= 10;
    }
    return to_place;
  }();
  static size_t place_of(uint64_t ns) {
    const auto bits = static_cast<size_t>(std::bit_width(2 * ns | 1) - 1);  // no question whether 0
    return (ns + kToPlace[bits]) >> kPlaceBits;
  }

  std::array<uint64_t, kPlaces> places_{};
  size_t room_ = kMost;
};

}  // namespace flopinj::reduce
