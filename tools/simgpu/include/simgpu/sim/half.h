// gpu::f16 and gpu::f16x2: IEEE binary16 that counts, one at a time and packed in pairs.
//
// Every result is rounded once, to nearest even, as on hardware: sums and products of two halves
// are exact in double, and a fused multiply-add that is rounded to double first never lands on a
// tie it was not on, because whatever can reach a half's rounding bit lies within double's 53 bits.
// A packed operation counts as one instruction (kHadd, kHmul, kHfma), as the SASS counters see it.
#pragma once
#include <simgpu/sim/scalar.h>

#include <bit>

namespace simgpu {

// Rounds to nearest even; overflow gives infinity, NaN stays (quiet) NaN.
constexpr uint16_t half_bits(double v) {
  const uint64_t bits = std::bit_cast<uint64_t>(v);
  const uint32_t sign = static_cast<uint32_t>(bits >> 48) & 0x8000U;
  const int exponent = static_cast<int>((bits >> 52) & 0x7ff) - 1023;
  uint64_t mantissa = bits & ((uint64_t{1} << 52) - 1);
  if (exponent == 1024 && mantissa != 0) return static_cast<uint16_t>(sign | 0x7e00U);
  if (exponent > 15) return static_cast<uint16_t>(sign | 0x7c00U);
  if (exponent < -25) return static_cast<uint16_t>(sign);  // below half of the least subnormal
  mantissa |= uint64_t{1} << 52;
  const int dropped = exponent >= -14 ? 42 : 42 + (-14 - exponent);
  const uint64_t kept = mantissa >> dropped;
  const uint64_t rest = mantissa & ((uint64_t{1} << dropped) - 1);
  const uint64_t tie = uint64_t{1} << (dropped - 1);
  const uint64_t up = rest > tie || (rest == tie && (kept & 1) != 0) ? 1 : 0;
  // `kept` carries the hidden bit, so the exponent field starts one lower; a carry out of it is the
  // right carry.
  const uint64_t field = exponent >= -14 ? static_cast<uint64_t>(exponent + 14) << 10 : 0;
  return static_cast<uint16_t>(sign | (field + kept + up));
}

constexpr float half_value(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000U) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fU;
  const uint32_t mantissa = bits & 0x3ffU;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000U | (mantissa << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
  return sign != 0 ? -magnitude : magnitude;
}

}  // namespace simgpu

namespace gpu {

class f16 {
 public:
  f16() = default;
  constexpr f16(float v) : bits_(simgpu::half_bits(static_cast<double>(v))) {}  // NOLINT: as __half
  constexpr f16(double v) : bits_(simgpu::half_bits(v)) {}                      // NOLINT: as __half
  template <std::integral I>
  constexpr f16(I v) : bits_(simgpu::half_bits(static_cast<double>(v))) {}
  constexpr explicit f16(f32 v) : f16(float(v)) {}
  constexpr explicit f16(f64 v) : f16(double(v)) {}

  constexpr explicit operator float() const { return simgpu::half_value(bits_); }
  constexpr explicit operator double() const { return static_cast<double>(float(*this)); }
  constexpr explicit operator f32() const { return f32(float(*this)); }
  constexpr explicit operator f64() const { return f64(double(*this)); }
  constexpr uint16_t bits() const { return bits_; }

  f16& operator+=(f16 b);
  f16& operator-=(f16 b);
  f16& operator*=(f16 b);
  constexpr f16 operator-() const {
    f16 negated = *this;
    negated.bits_ ^= 0x8000U;
    return negated;
  }

 private:
  uint16_t bits_;
};

struct alignas(4) f16x2 {
  f16 x, y;  // x is the low half, as in __half2
  f16x2() = default;
  constexpr f16x2(f16 low, f16 high) : x(low), y(high) {}
};

static_assert(sizeof(f16) == 2 && std::is_trivially_copyable_v<f16>);
static_assert(sizeof(f16x2) == 4 && alignof(f16x2) == 4 && std::is_trivially_copyable_v<f16x2>);

}  // namespace gpu

namespace simgpu {
inline gpu::f16 half_sum(gpu::f16 a, gpu::f16 b) { return gpu::f16(double(a) + double(b)); }
inline gpu::f16 half_product(gpu::f16 a, gpu::f16 b) { return gpu::f16(double(a) * double(b)); }
inline gpu::f16 half_fma(gpu::f16 a, gpu::f16 b, gpu::f16 c) {
  return gpu::f16(double(a) * double(b) + double(c));
}
}  // namespace simgpu

namespace gpu {

inline f16 operator+(f16 a, f16 b) {
  simgpu::count(simgpu::Count::kHadd);
  return simgpu::half_sum(a, b);
}
inline f16 operator-(f16 a, f16 b) {
  simgpu::count(simgpu::Count::kHadd);
  return simgpu::half_sum(a, -b);
}
inline f16 operator*(f16 a, f16 b) {
  simgpu::count(simgpu::Count::kHmul);
  return simgpu::half_product(a, b);
}
inline f16 operator/(f16 a, f16 b) {
  return f16(double(a) / double(b));
}  // not counted, as in scalar.h
inline f16 fma(f16 a, f16 b, f16 c) {
  simgpu::count(simgpu::Count::kHfma);
  return simgpu::half_fma(a, b, c);
}
inline f16& f16::operator+=(f16 b) { return *this = *this + b; }
inline f16& f16::operator-=(f16 b) { return *this = *this - b; }
inline f16& f16::operator*=(f16 b) { return *this = *this * b; }

constexpr bool operator==(f16 a, f16 b) { return float(a) == float(b); }
constexpr auto operator<=>(f16 a, f16 b) { return float(a) <=> float(b); }

inline f16x2 operator+(f16x2 a, f16x2 b) {
  simgpu::count(simgpu::Count::kHadd);
  return {simgpu::half_sum(a.x, b.x), simgpu::half_sum(a.y, b.y)};
}
inline f16x2 operator-(f16x2 a, f16x2 b) {
  simgpu::count(simgpu::Count::kHadd);
  return {simgpu::half_sum(a.x, -b.x), simgpu::half_sum(a.y, -b.y)};
}
inline f16x2 operator*(f16x2 a, f16x2 b) {
  simgpu::count(simgpu::Count::kHmul);
  return {simgpu::half_product(a.x, b.x), simgpu::half_product(a.y, b.y)};
}
inline f16x2 fma(f16x2 a, f16x2 b, f16x2 c) {
  simgpu::count(simgpu::Count::kHfma);
  return {simgpu::half_fma(a.x, b.x, c.x), simgpu::half_fma(a.y, b.y, c.y)};
}

}  // namespace gpu
