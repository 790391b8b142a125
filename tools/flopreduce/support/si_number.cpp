#include "support/si_number.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "support/text.h"

namespace flopinj::reduce {
namespace {

constexpr std::string_view kPrefixes = "kMGTPEZY";

bool is_word(char c) { return is_alnum(c) || c == '_' || c == '.'; }

// Of kPrefixes; npos: it is none.
size_t prefix_at(char c) { return kPrefixes.find(c == 'K' ? 'k' : c); }

double power_of_1000(size_t n) {
  constexpr std::array<double, 9> kPowers = {1, 1e3, 1e6, 1e9, 1e12, 1e15, 1e18, 1e21, 1e24};
  return kPowers[n];
}

}  // namespace

bool is_si_prefix(char c) { return prefix_at(c) != std::string_view::npos; }

std::optional<double> take_si(std::string_view& text) {
  // from_chars also takes "inf", "nan" and "-1"; a number starts with a digit or a point.
  if (text.empty() || !(is_digit(text[0]) || text[0] == '.')) return std::nullopt;
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || !std::isfinite(value)) return std::nullopt;
  const std::string_view digits(text.data(), static_cast<size_t>(rest - text.data()));
  std::string_view after = text.substr(digits.size());
  if (!after.empty()) {
    const size_t prefix = prefix_at(after[0]);
    const bool exponent = digits.find_first_of("eE") != std::string_view::npos;
    if (prefix != std::string_view::npos && !exponent) {
      value *= power_of_1000(prefix + 1);
      after.remove_prefix(1);
    }
  }
  if (!after.empty() && is_word(after[0])) return std::nullopt;
  if (!std::isfinite(value)) return std::nullopt;
  text = after;
  return value;
}

std::optional<double> parse_si(std::string_view text) {
  const auto value = take_si(text);
  return text.empty() ? value : std::nullopt;
}

std::optional<double> parse_count(std::string_view text) {
  if (!text.ends_with('B')) return parse_si(text);
  std::string giga(text);
  giga.back() = 'G';
  return parse_si(giga);
}

std::optional<double> parse_share(std::string_view text) {
  if (!text.ends_with('%')) return parse_si(text);
  const auto percent = parse_si(text.substr(0, text.size() - 1));
  return percent ? std::optional(*percent / 100) : std::nullopt;
}

std::optional<double> parse_seconds(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"min", 60},  {"m", 60},    {"h", 3600},  {"d", 86400},
      {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"s", 1}};
  for (const auto& [unit, seconds] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const auto value = parse_si(text.substr(0, text.size() - unit.size()));
    return value ? std::optional(*value * seconds) : std::nullopt;
  }
  return parse_si(text);
}

std::optional<u128> parse_whole(std::string_view text) {
  if (!parse_si(text)) return std::nullopt;
  // Digits as an integer, and the power of ten to multiply it by.
  u128 value = 0;
  int power = 0;
  bool fraction = false;
  size_t at = 0;
  for (; at < text.size() && (text[at] == '.' || is_digit(text[at])); ++at) {
    if (text[at] == '.') {
      fraction = true;
      continue;
    }
    const auto digit = static_cast<u128>(text[at] - '0');
    if (__builtin_mul_overflow(value, u128{10}, &value) ||
        __builtin_add_overflow(value, digit, &value))
      return std::nullopt;
    power -= fraction ? 1 : 0;
  }
  if (at + 1 < text.size()) {  // an exponent; parse_si() knows that it is one, and small
    int exponent = 0;
    const char* digits = text.data() + at + (text[at + 1] == '+' ? 2 : 1);
    std::from_chars(digits, text.data() + text.size(), exponent);
    power += exponent;
  } else if (at < text.size()) {
    power += 3 * static_cast<int>(prefix_at(text[at]) + 1);
  }
  for (; power < 0; ++power, value /= 10)
    if (value % 10 != 0) return std::nullopt;
  for (; power > 0 && value != 0; --power)
    if (__builtin_mul_overflow(value, u128{10}, &value)) return std::nullopt;
  return value;
}

std::string format_si(double value) {
  const double size = std::fabs(value);
  if (size < 1000 || !std::isfinite(value)) return printed("%.4g", value);
  size_t prefix = 0;
  while (prefix < kPrefixes.size() && size / power_of_1000(prefix) >= 999.95) ++prefix;
  return printed("%.4g %c", value / power_of_1000(prefix), kPrefixes[prefix - 1]);
}

}  // namespace flopinj::reduce
