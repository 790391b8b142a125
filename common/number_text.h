// Figures as people read them.
#pragma once
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>

namespace flopinj {

// 700 -> "700", 1234567 -> "1,234,567"
inline std::string number_text(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

// Three digits and a decimal unit: 25125 -> "25.1 kB"
inline std::string size_text(uint64_t bytes) {
  constexpr std::array kUnits = {"B", "kB", "MB", "GB", "TB"};
  auto size = static_cast<double>(bytes);
  size_t unit = 0;
  for (; size >= 999.5 && unit + 1 < kUnits.size(); ++unit) size /= 1000;
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.3g %s", size, kUnits[unit]);
  return text.data();
}

}  // namespace flopinj
