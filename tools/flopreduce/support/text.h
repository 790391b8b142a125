// Names that come from a trace, made fit to be shown. A trace may carry any bytes.
#pragma once
#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/wide.h"

namespace flopinj::reduce {

// Letters and digits of ASCII, whatever the locale.
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
constexpr char lower(char c) { return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c; }
constexpr bool is_alnum(char c) { return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z'); }
std::string lower(std::string_view text);

// `bytes` with everything that could move a terminal's cursor, change its colours or reorder its
// text written as \xNN (bytes) or \u{N} (code points): C0 and C1 controls, DEL, bidirectional
// controls, line separators, and bytes that are not UTF-8.
std::string printable(std::string_view bytes);

// What parts words on a line of a file, and a text without it at both ends.
inline constexpr std::string_view kBlanks = " \t\r";
std::string_view trimmed(std::string_view text);

std::string hash_text(uint64_t hash);  // 16 hexadecimal digits: JSON numbers are too short

// Readable form of a mangled C++ name, at most `limit` bytes; the name itself where it is not a
// mangled name. Mangled names can be written that expand without end: the work is bounded by
// `limit` too.
std::string demangle(std::string_view mangled, size_t limit = 2048);

// `text` cut in the middle to at most `width` code points, "..." in the gap. `text` must be valid
// UTF-8 (printable()).
std::string shorten(const std::string& text, size_t width);

// All of them so, and where two would read the same the gap is where they do not differ, as far as
// there is room.
std::vector<std::string> shorten_apart(const std::vector<std::string>& texts, size_t width);

// Overwrites bytes that are not UTF-8.
void replace_invalid_utf8(char* data, size_t size, char with);

// Whether `text` holds `part`, letters of ASCII in any case.
bool contains_any_case(std::string_view text, std::string_view part);

// Code points in valid UTF-8.
size_t display_width(std::string_view text);

// `text` cut to at most `limit` bytes, not inside a code point, with "..." at the end where it was
// cut.
std::string cut(std::string_view text, size_t limit);

// As printf() writes it, in less than 64 characters.
[[gnu::format(printf, 1, 2)]] std::string printed(const char* format, ...);

// The parts of a list, empty ones too; of an empty list none.
std::vector<std::string_view> parts_of(std::string_view list, char separator);
// And back: the texts of a list's elements, with `between` between them.
template <typename List, typename Text = std::identity>
std::string joined(const List& list, std::string_view between, Text text = {}) {
  std::string all;
  bool first = true;
  for (const auto& one : list) {
    if (!std::exchange(first, false)) all += between;
    all += std::invoke(text, one);
  }
  return all;
}
// "a, b and 3 more"
template <typename List, typename Text = std::identity>
std::string first_few(const List& list, size_t most, Text text = {}) {
  const size_t shown = std::min(most, list.size());
  std::string all = joined(std::span(list).first(shown), ", ", text);
  if (shown < list.size()) all += " and " + to_grouped(list.size() - shown) + " more";
  return all;
}

}  // namespace flopinj::reduce
