// When one kernel ran, in 16 bytes.
#pragma once
#include <cstdint>
#include <type_traits>

#include "tables/kernels.h"

namespace flopinj::reduce {

// A kernel's time. One of over 18 minutes does not fit, and is none. Without values of its own at
// first, so that many are copied at once.
struct BusyInterval {
  static constexpr unsigned kLengthBits = 40;
  static constexpr uint64_t kLongest = (uint64_t{1} << kLengthBits) - 1;
  uint64_t begin;
  uint64_t packed;

  // Times beyond are no times: 146 years after whatever the clock counts from.
  static constexpr unsigned kTimeBits = 62;
  // Whether a kernel's time fits.
  static bool has_place(uint64_t start, uint64_t duration) {
    return ((start >> (kTimeBits - kLengthBits) | duration) >> kLengthBits) == 0;
  }

  // A kernel of TraceTables::signatures, as it is in `packed`.
  static uint64_t packed_kernel(uint32_t signature) { return uint64_t{signature} << kLengthBits; }
  uint64_t length() const { return packed & kLongest; }
  uint32_t kernel() const { return static_cast<uint32_t>(packed >> kLengthBits); }
  uint64_t end() const { return begin + length(); }
};
static_assert(std::is_trivial_v<BusyInterval>);
static_assert(SignatureTable::kMax <= uint64_t{1} << (64 - BusyInterval::kLengthBits));

}  // namespace flopinj::reduce
