// Gaps of which only sums are needed, added up without a branch.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "passes/rows/busy_interval.h"
#include "tables/busy_time.h"

namespace flopinj::reduce {

class ShortGaps {
 public:
  static constexpr uint64_t kLongest = (uint64_t{1} << 27U) - 1;  // ns
  void add(uint64_t ns) { places_[place_of(ns)] += kOne | ns; }
  // The gap before each of [at, end), intervals in order, after all before them, which end at
  // `covered`; at[-1] must be there. kAtOnce are added at a time: stops before as many of which one
  // begins before the one before it has ended, or has a gap of more than `most`, which is kLongest
  // or less. Returns where. Adds nothing where the processor has no AVX2.
  const BusyInterval* add_between(const BusyInterval* at, const BusyInterval* end, uint64_t covered,
                                  uint64_t most);
  static constexpr std::ptrdiff_t kAtOnce = 4;
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
  // By number of bits: with this added, the place is in the upper half of a gap. Where a power of
  // ten has as many bits, gaps from there on carry over.
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
  // Of gaps that were added several at a time: in place k all of 10^(k-1) ns or more.
  uint64_t at_least_[kPlaces][kAtOnce]{};
  size_t room_ = kMost;
};

}  // namespace flopinj::reduce
