#include <import/json_text.h>

#include <array>
#include <charconv>
#include <cmath>

namespace flopinj::import {
namespace {

// Bytes at which end_of_json() has something to do inside of a list or an object.
constexpr std::array<bool, 256> kStructure = [] {
  std::array<bool, 256> bytes{};
  for (const char c : {'"', '{', '}', '[', ']'}) bytes[static_cast<uint8_t>(c)] = true;
  return bytes;
}();

// Past the quote that ends the string whose first character is at `at`.
const char* end_of_string(const char* at, const char* end) {
  const char* const begin = at;
  while ((at = static_cast<const char*>(std::memchr(at, '"', static_cast<size_t>(end - at)))) !=
         nullptr) {
    const char* slash = at;
    while (slash != begin && slash[-1] == '\\') --slash;
    ++at;
    if ((at - 1 - slash) % 2 == 0) return at;
  }
  return nullptr;
}

bool ends_word(char c) {
  return c == ',' || c == '}' || c == ']' || c == ' ' || c == '\n' || c == '\r' || c == '\t' ||
         c == ':' || c == '"';
}

void append_utf8(uint32_t code, std::string& to) {
  const auto tail = [&](uint32_t bits) { to += static_cast<char>(0x80 | (bits & 0x3f)); };
  if (code < 0x80) {
    to += static_cast<char>(code);
  } else if (code < 0x800) {
    to += static_cast<char>(0xc0 | code >> 6);
    tail(code);
  } else if (code < 0x10000) {
    to += static_cast<char>(0xe0 | code >> 12);
    tail(code >> 6);
    tail(code);
  } else {
    to += static_cast<char>(0xf0 | code >> 18);
    tail(code >> 12);
    tail(code >> 6);
    tail(code);
  }
}

// The four digits of an escape at `text`, if they are there.
std::optional<uint32_t> code_unit(std::string_view text) {
  uint32_t code = 0;
  if (text.size() < 4) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + 4, code, 16);
  return error == std::errc{} && end == text.data() + 4 ? std::optional(code) : std::nullopt;
}

// What \u and the digits behind it say; `text` loses what was read.
void append_escaped(std::string_view& text, std::string& to) {
  constexpr uint32_t kReplacement = 0xfffd;
  auto code = code_unit(text);
  if (!code) return append_utf8(kReplacement, to);
  text.remove_prefix(4);
  if (*code >= 0xd800 && *code < 0xdc00 && text.starts_with("\\u")) {
    const auto low = code_unit(text.substr(2));
    if (low && *low >= 0xdc00 && *low < 0xe000) {
      text.remove_prefix(6);
      code = 0x10000 + ((*code - 0xd800) << 10) + (*low - 0xdc00);
    }
  }
  append_utf8(*code >= 0xd800 && *code < 0xe000 ? kReplacement : *code, to);
}

std::string_view unquoted(std::string_view value) {
  if (value.size() < 2 || value.front() != '"') return value;
  return value.substr(1, value.size() - 2);
}

}  // namespace

const char* skip_json_space(const char* at, const char* end) {
  while (at != end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) ++at;
  return at;
}

const char* end_of_json(const char* at, const char* end) {
  if (at == end) return nullptr;
  if (*at == '"') return end_of_string(at + 1, end);
  if (*at != '{' && *at != '[') {
    const char* const begin = at;
    while (at != end && !ends_word(*at)) ++at;
    return at == begin ? nullptr : at;
  }
  for (size_t depth = 0; at != end;) {
    const char c = *at;
    if (!kStructure[static_cast<uint8_t>(c)]) {
      ++at;
    } else if (c == '"') {
      at = end_of_string(at + 1, end);
      if (at == nullptr) return nullptr;
    } else {
      ++at;
      if (c == '{' || c == '[')
        ++depth;
      else if (--depth == 0)
        return at;
    }
  }
  return nullptr;
}

std::string_view json_string(std::string_view value, std::string& buffer) {
  std::string_view text = unquoted(value);
  size_t slash = text.find('\\');
  if (slash == text.npos) return text;
  buffer.clear();
  while (slash != text.npos && slash + 1 < text.size()) {
    buffer += text.substr(0, slash);
    const char c = text[slash + 1];
    text.remove_prefix(slash + 2);
    constexpr std::string_view kLetters = "bfnrt", kMeant = "\b\f\n\r\t";
    if (c == 'u')
      append_escaped(text, buffer);
    else if (const size_t at = kLetters.find(c); at != kLetters.npos)
      buffer += kMeant[at];
    else
      buffer += c;
    slash = text.find('\\');
  }
  buffer += text;
  return buffer;
}

std::optional<double> json_number(std::string_view value) {
  value = unquoted(value);
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size() || !std::isfinite(number))
    return std::nullopt;
  return number;
}

std::optional<int64_t> json_whole(std::string_view value) {
  value = unquoted(value);
  int64_t whole = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), whole);
  if (error != std::errc{}) return std::nullopt;
  if (end == value.data() + value.size()) return whole;
  const auto number = json_number(value);  // "4.0", "1e3"
  constexpr double kMost = 9e18;
  if (!number || std::abs(*number) > kMost) return std::nullopt;
  return static_cast<int64_t>(*number);
}

std::optional<int64_t> json_microseconds(std::string_view value, bool& finer) {
  value = unquoted(value);
  constexpr int64_t kMost = INT64_MAX / 2000;
  int64_t whole = 0;
  const char* const end = value.data() + value.size();
  auto [at, error] = std::from_chars(value.data(), end, whole);
  if (error != std::errc{} || whole > kMost || whole < -kMost) return std::nullopt;
  int64_t ns = whole * 1000, digit = 100;
  const int64_t sign = value.front() == '-' ? -1 : 1;
  if (at != end && *at == '.')
    for (++at; at != end && *at >= '0' && *at <= '9'; ++at, digit /= 10)
      ns += sign * (*at - '0') * digit;
  if (at == end) {
    finer |= ns % 1000 != 0;
    return ns;
  }
  const auto number = json_number(value);  // with an exponent
  if (!number || std::abs(*number) > static_cast<double>(kMost)) return std::nullopt;
  ns = std::llround(*number * 1000);
  finer |= ns % 1000 != 0;
  return ns;
}

}  // namespace flopinj::import
