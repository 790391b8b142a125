#include "support/text.h"

#include <libiberty/demangle.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <map>

#include "printable_text.h"

namespace flopinj::reduce {
namespace {

bool starts_character(char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }

struct Collected {
  std::string text;
  size_t limit = 0;
};
struct Enough {};  // thrown through the demangler, which holds nothing on the heap

void collect(const char* piece, size_t size, void* opaque) {
  auto& out = *static_cast<Collected*>(opaque);
  out.text.append(piece, size);
  if (out.text.size() > out.limit) throw Enough{};
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::string printable(std::string_view bytes) { return flopinj::printable(bytes); }

void replace_invalid_utf8(char* data, size_t size, char with) {
  for (size_t at = 0; at < size;) {
    const CodePoint c = decode({data + at, size - at});
    if (c.size == 0) data[at] = with;
    at += c.size == 0 ? 1 : c.size;
  }
}

std::string hash_text(uint64_t hash) { return printed("%016" PRIx64, hash); }

std::string demangle(std::string_view mangled, size_t limit) {
  const std::string name(mangled.substr(0, mangled.find('\0')));
  constexpr size_t kLongestInput = 16384;  // the demangler's stack use grows with its input
  if (name.rfind("_Z", 0) != 0 || name.size() > kLongestInput) return cut(mangled, limit);
  Collected out{.text = {}, .limit = limit};
  try {
    // Unlike abi::__cxa_demangle it hands out pieces and collects nothing, so output can be
    // bounded.
    if (cplus_demangle_v3_callback(name.c_str(), DMGL_PARAMS | DMGL_TYPES, collect, &out) == 0) {
      return cut(mangled, limit);
    }
  } catch (const Enough&) {
  }
  return cut(out.text, limit);
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = lower(c);
  return out;
}

bool contains_any_case(std::string_view text, std::string_view part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end(),
                     [](char a, char b) { return lower(a) == lower(b); }) != text.end();
}

size_t display_width(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, starts_character));
}

std::string shorten(const std::string& text, size_t width) {
  const size_t all = display_width(text);
  if (all <= width) return text;
  if (width < 8) width = 8;
  const size_t head = (width - 3) * 2 / 3;
  const size_t tail = width - 3 - head;
  std::string out;
  size_t at = 0;
  for (const char c : text) {
    if (starts_character(c)) {
      if (at == head) out += "...";
      ++at;
    }
    if (at <= head || at > all - tail) out.push_back(c);
  }
  return out;
}

namespace {

// Bytes of the first `points` code points.
size_t bytes_of(std::string_view text, size_t points) {
  size_t at = 0;
  for (size_t n = 0; at < text.size(); ++at)
    if (starts_character(text[at]) && n++ == points) break;
  return at;
}

size_t common_start(std::string_view a, std::string_view b) {
  size_t n = 0;
  while (n < std::min(a.size(), b.size()) && a[n] == b[n]) ++n;
  while (n > 0 && n < a.size() && !starts_character(a[n])) --n;
  return n;
}

}  // namespace

std::vector<std::string> shorten_apart(const std::vector<std::string>& texts, size_t width) {
  constexpr size_t kGap = 3, kFew = 6;
  std::vector<std::string> out;
  std::map<std::string, std::vector<size_t>> same;
  for (size_t i = 0; i < texts.size(); ++i)
    same[out.emplace_back(shorten(texts[i], width))].push_back(i);
  for (const auto& [shown, rows] : same) {
    const std::string& first = texts[rows[0]];
    size_t start = first.size();  // what all of them begin with
    for (const size_t row : rows) start = std::min(start, common_start(first, texts[row]));
    const size_t head = width / 4;
    if (rows.size() == 1 || start == first.size() || width < 4 * kFew) continue;
    for (const size_t row : rows) {
      const std::string& text = texts[row];
      const size_t begin = bytes_of(text, head);
      const size_t from = bytes_of(text, display_width(text.substr(0, start)) -
                                             std::min(kFew, display_width(text.substr(0, start))));
      if (from > begin)
        out[row] = text.substr(0, begin) + "..." + shorten(text.substr(from), width - head - kGap);
    }
  }
  return out;
}

std::string cut(std::string_view text, size_t limit) {
  if (text.size() <= limit) return std::string(text);
  size_t end = limit >= 3 ? limit - 3 : 0;
  while (end > 0 && !starts_character(text[end])) --end;
  return std::string(text.substr(0, end)) + "...";
}

std::string printed(const char* format, ...) {
  std::array<char, 64> text{};
  std::va_list values;
  va_start(values, format);
  std::vsnprintf(text.data(), text.size(), format, values);
  va_end(values);
  return text.data();
}

std::vector<std::string_view> parts_of(std::string_view list, char separator) {
  std::vector<std::string_view> parts;
  while (!list.empty()) {
    parts.push_back(list.substr(0, list.find(separator)));
    list.remove_prefix(std::min(list.size(), parts.back().size() + 1));
  }
  return parts;
}

}  // namespace flopinj::reduce
