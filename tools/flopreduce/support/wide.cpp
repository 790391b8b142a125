#include "support/wide.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "support/text.h"

namespace flopinj::reduce {

u128 mul_div_round(u128 a, uint64_t b, uint64_t c, bool& overflow) {
  uint64_t small = 0;  // divided in one instruction
  if (a <= UINT64_MAX && !__builtin_mul_overflow(static_cast<uint64_t>(a), b, &small))
    return u128{small / c} + (small % c >= c - small % c ? 1 : 0);
  // a = q * c + r, so a * b / c = q * b + r * b / c, and r * b < 2^128.
  const u128 q = a / c;
  const u128 r = a % c;
  u128 whole = 0;
  if (__builtin_mul_overflow(q, static_cast<u128>(b), &whole)) {
    overflow = true;
    return kU128Max;
  }
  const u128 product = r * b;
  u128 rest = product / c;
  const u128 remainder = product % c;
  if (remainder >= c - remainder) ++rest;  // as 2 * remainder >= c
  if (!add_saturating(whole, rest)) overflow = true;
  return whole;
}

std::string to_decimal(u128 value) {
  if (value <= UINT64_MAX) return std::to_string(static_cast<uint64_t>(value));
  std::string digits;
  do {
    digits.push_back(static_cast<char>('0' + static_cast<int>(value % 10)));
    value /= 10;
  } while (value != 0);
  std::reverse(digits.begin(), digits.end());
  return digits;
}

std::string to_grouped(u128 value) {
  std::string digits = to_decimal(value);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), 1, ',');
  return digits;
}

namespace {

std::string four_digits(double value) {
  const int decimals = value >= 999.95 ? 0 : value >= 99.995 ? 1 : value >= 9.9995 ? 2 : 3;
  return printed("%.*f", decimals, value);
}

}  // namespace

std::string to_human(u128 value, std::string_view unit) {
  static constexpr std::array<const char*, 9> kPrefix = {"",  "k", "M", "G", "T",
                                                         "P", "E", "Z", "Y"};
  std::string text;
  if (value < 1000) {
    text = to_decimal(value) + " ";
  } else {
    double scaled = static_cast<double>(value);
    size_t prefix = 0;
    while (scaled >= 999.95 && prefix + 1 < kPrefix.size()) {
      scaled /= 1000;
      ++prefix;
    }
    text = four_digits(scaled) + " " + kPrefix[prefix];
  }
  return text.append(unit);
}

std::string to_human_time(u128 nanoseconds) {
  const auto ns = static_cast<double>(nanoseconds);
  if (ns < 1e3) return to_decimal(nanoseconds) + " ns";
  if (ns < 999.95e3) return four_digits(ns / 1e3) + " us";
  if (ns < 999.95e6) return four_digits(ns / 1e6) + " ms";
  return four_digits(ns / 1e9) + " s";
}

std::string ratio_text(double value) {
  if (value < 0) return "-" + ratio_text(-value);
  if (value >= 999.95) return to_grouped(static_cast<u128>(std::fmin(value, 3e38) + 0.5));
  if (value >= 0.1) return four_digits(value);
  if (!(value > 0)) return "0";
  return printed("%.*f", std::min(6, 2 - static_cast<int>(std::floor(std::log10(value)))), value);
}

}  // namespace flopinj::reduce
