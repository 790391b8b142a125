// 128-bit unsigned arithmetic that cannot overflow in silence. FLOP totals of long runs pass 2^64,
// and a trace may claim anything.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace flopinj::reduce {

__extension__ typedef unsigned __int128 u128;

inline constexpr u128 kU128Max = ~static_cast<u128>(0);

// a += b, held at the largest value. False when it was held.
inline bool add_saturating(u128& a, u128 b) {
  u128 sum = 0;
  const bool overflow = __builtin_add_overflow(a, b, &sum);
  a = overflow ? kU128Max : sum;
  return !overflow;
}

inline bool add_saturating(uint64_t& a, uint64_t b) {
  uint64_t sum = 0;
  const bool overflow = __builtin_add_overflow(a, b, &sum);
  a = overflow ? UINT64_MAX : sum;
  return !overflow;
}

// a * b / c to the nearest integer, halves up, without losing bits in between. c must not be 0.
// Sets `overflow` and returns the largest value when the result does not fit.
u128 mul_div_round(u128 a, uint64_t b, uint64_t c, bool& overflow);

inline double quotient(u128 a, u128 b) { return static_cast<double>(a) / static_cast<double>(b); }

std::string to_decimal(u128 value);

// "1.234 G" with four significant digits and an SI prefix; exact below 1000.
std::string to_human(u128 value, std::string_view unit);
// "1.234 ms" from nanoseconds.
std::string to_human_time(u128 nanoseconds);
// "1.986", "0.467", "34.43", "1,755" of a number without a unit.
std::string ratio_text(double value);
// "12,345,678"
std::string to_grouped(u128 value);

}  // namespace flopinj::reduce
