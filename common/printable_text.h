// Texts that others wrote, made fit to be shown.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace flopinj {

struct CodePoint {
  uint32_t value = 0;
  size_t size = 0;  // bytes; 0 where the bytes are not UTF-8
};

// The first of `s`, which is not empty.
inline CodePoint decode(std::string_view s) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(s[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t size = first >= 0xF0 && first < 0xF5 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 0;
  if (size == 0 || first >= 0xF5 || s.size() < size) return {};
  uint32_t value = first & (0xFFU >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3FU);
  }
  const bool overlong = (size == 3 && value < 0x800) || (size == 4 && value < 0x10000);
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (overlong || surrogate || value > 0x10FFFF) return {};
  return {value, size};
}

// Moves a terminal's cursor, changes its colours or reorders its text.
inline bool is_dangerous(uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x200B && c <= 0x200F) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || c == 0x061C ||
         c == 0xFEFF || (c >= 0xE0000 && c <= 0xE007F);
}

// `bytes` with everything that could move a terminal's cursor, change its colours or reorder its
// text written as \xNN (bytes) or \u{N} (code points): C0 and C1 controls, DEL, bidirectional
// controls, line separators, and bytes that are not UTF-8.
inline std::string printable(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  std::array<char, 16> escape{};
  while (!bytes.empty()) {
    const auto plain =
        std::find_if(bytes.begin(), bytes.end(), [](char c) { return c < 0x20 || c >= 0x7F; });
    out.append(bytes.begin(), plain);
    bytes.remove_prefix(static_cast<size_t>(plain - bytes.begin()));
    if (bytes.empty()) break;
    const CodePoint c = decode(bytes);
    const size_t size = c.size == 0 ? 1 : c.size;
    if (c.size != 0 && !is_dangerous(c.value)) {
      out.append(bytes.substr(0, size));
    } else {
      const bool byte = c.size <= 1;
      const uint32_t value = c.size == 0 ? static_cast<uint8_t>(bytes[0]) : c.value;
      std::snprintf(escape.data(), escape.size(), byte ? "\\x%02X" : "\\u{%X}", value);
      out.append(escape.data());
    }
    bytes.remove_prefix(size);
  }
  return out;
}

}  // namespace flopinj
