#include <collector/trace/utf8.h>

namespace flopinj {
namespace {

// Bytes of the valid character at the front of `s`, 0 where there is none. RFC 3629, section 4.
size_t character_bytes(std::string_view s) {
  const auto at = [s](size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0U; };
  const auto tail = [&](size_t i) { return (at(i) & 0xC0U) == 0x80U; };
  const unsigned first = at(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return tail(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (!tail(1) || !tail(2)) return 0;
    if (first == 0xE0 && at(1) < 0xA0) return 0;  // overlong
    if (first == 0xED && at(1) > 0x9F) return 0;  // surrogate
    return 3;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    if (first == 0xF0 && at(1) < 0x90) return 0;  // overlong
    if (first == 0xF4 && at(1) > 0x8F) return 0;  // past U+10FFFF
    return 4;
  }
  return 0;
}

}  // namespace

std::string to_utf8(std::string_view text, size_t max_bytes) {
  std::string out;
  while (!text.empty()) {
    const size_t valid = character_bytes(text);
    const size_t bytes = valid == 0 ? 1 : valid;
    if (out.size() + bytes > max_bytes) break;
    if (valid == 0)
      out += '?';
    else
      out.append(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  return out;
}

}  // namespace flopinj
