// Floating-point types of 16 and 8 bits.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace simgpu::ptx {

// A format of `exponent` and `mantissa` bits. fp8 e4m3 has no infinity: its largest pattern is NaN,
// and finite values go beyond where others have infinity.
template <int exponent, int mantissa, bool has_infinity>
struct Format {
  static constexpr int kBits = 1 + exponent + mantissa;
  static constexpr int kBias = (1 << (exponent - 1)) - 1;
  static constexpr uint32_t kSign = uint32_t{1} << (kBits - 1);
  static constexpr uint32_t kInfinity = ((uint32_t{1} << exponent) - 1) << mantissa;
  static constexpr uint32_t kNan = kSign - 1;
  static constexpr uint32_t kLargest = has_infinity ? kInfinity - 1 : kNan - 1;

  // In the rounding direction that is set. `saturate`: the largest value in place of infinity.
  static uint32_t encode(double v, bool saturate = !has_infinity) {
    const uint64_t bits = std::bit_cast<uint64_t>(v);
    const uint32_t sign = (bits >> 63) != 0 ? kSign : 0;
    const double size = std::fabs(v);
    if (v != v) return kNan;
    const uint32_t beyond = sign | (saturate ? kLargest : kInfinity);
    if (size == std::numeric_limits<double>::infinity()) return beyond;
    int power = static_cast<int>((bits >> 52) & 0x7ff) - 1023;
    if (power < 1 - kBias) power = 1 - kBias;
    // In units of the last place: a whole number after rounding, exact before it.
    const auto scale = std::bit_cast<double>(static_cast<uint64_t>(1023 + mantissa - power) << 52);
    const double units = std::rint(v * scale);
    const uint64_t coded = static_cast<uint64_t>(power + kBias - 1) << mantissa;
    const uint64_t result = coded + static_cast<uint64_t>(std::fabs(units));
    if (result <= kLargest) return sign | static_cast<uint32_t>(result);
    const bool away_from_zero = std::rint(v > 0 ? 0.75 : -0.75) != 0;
    return away_from_zero ? beyond : sign | kLargest;
  }

  static float decode(uint32_t bits) {
    const uint32_t size = bits & (kSign - 1);
    const float sign = (bits & kSign) != 0 ? -1.0F : 1.0F;
    if (has_infinity && size == kInfinity) return sign * std::numeric_limits<float>::infinity();
    if (has_infinity ? size > kInfinity : size == kNan)
      return std::numeric_limits<float>::quiet_NaN();
    const int field = static_cast<int>(size >> mantissa);
    const uint32_t fraction = size & ((uint32_t{1} << mantissa) - 1);
    if (field == 0) return sign * std::ldexp(static_cast<float>(fraction), 1 - kBias - mantissa);
    return sign * std::ldexp(static_cast<float>(fraction | uint32_t{1} << mantissa),
                             field - kBias - mantissa);
  }
};

using Half = Format<5, 10, true>;
using Bfloat = Format<8, 7, true>;
using E4m3 = Format<4, 3, false>;
using E5m2 = Format<5, 2, true>;
using Tf32 = Format<8, 10, true>;  // 19 bits; in a register it is the upper part of a float

inline float half_to_float(uint32_t h) {
  const uint32_t sign = (h & 0x8000U) << 16, size = h & 0x7fffU;
  if (size >= 0x7c00U) return std::bit_cast<float>(sign | 0x7f80'0000U | (size & 0x3ffU) << 13);
  const float value = std::bit_cast<float>(size << 13) * 0x1p112F;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
}
inline float bfloat_to_float(uint32_t b) { return std::bit_cast<float>(b << 16); }

}  // namespace simgpu::ptx
