// Values in few bytes: small numbers take one each, a text its number.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "support/wide.h"

namespace flopinj::reduce {

// Adds a value at the end. A row names its members: `static auto packed(Self& of)` returns
// std::tie() of them. They are unsigned numbers, texts, such rows, and optional values, arrays and
// vectors of these. `number_of(text)` keeps texts.
template <typename V, typename NumberOf>
void write_packed(std::vector<uint8_t>& to, const V& value, const NumberOf& number_of) {
  if constexpr (std::same_as<V, u128> || std::unsigned_integral<V>) {
    auto left = value;
    if constexpr (!std::same_as<V, bool>)
      for (; left > 0x7F; left = static_cast<V>(left >> 7))
        to.push_back(static_cast<uint8_t>(static_cast<uint8_t>(left) | 0x80));
    to.push_back(static_cast<uint8_t>(left));
  } else if constexpr (std::same_as<V, std::string>) {
    write_packed(to, uint32_t{number_of(value)}, number_of);
  } else if constexpr (requires { value.has_value(); }) {
    write_packed(to, value.has_value(), number_of);
    if (value) write_packed(to, *value, number_of);
  } else if constexpr (requires { typename std::tuple_size<V>::type; }) {
    for (const auto& one : value) write_packed(to, one, number_of);
  } else if constexpr (requires(V v) { v.resize(size_t{}); }) {
    write_packed(to, value.size(), number_of);
    for (const auto& one : value) write_packed(to, one, number_of);
  } else {
    std::apply([&](const auto&... members) { (write_packed(to, members, number_of), ...); },
               V::packed(value));
  }
}

// Reads what write_packed() has written, and goes on behind it. `texts`: by number.
template <typename V>
void read_packed(const uint8_t*& from, V& value, const std::vector<std::string>& texts) {
  if constexpr (std::same_as<V, u128> || std::unsigned_integral<V>) {
    value = 0;
    if constexpr (std::same_as<V, bool>)
      value = *from != 0;
    else
      for (unsigned shift = 0;; shift += 7, ++from) {
        value = static_cast<V>(value | static_cast<V>(static_cast<V>(*from & 0x7F) << shift));
        if (*from < 0x80) break;
      }
    ++from;
  } else if constexpr (std::same_as<V, std::string>) {
    uint32_t text = 0;
    read_packed(from, text, texts);
    value = texts[text];
  } else if constexpr (requires { value.has_value(); }) {
    bool has = false;
    read_packed(from, has, texts);
    if (has)
      read_packed(from, value.emplace(), texts);
    else
      value.reset();
  } else if constexpr (requires { typename std::tuple_size<V>::type; }) {
    for (auto& one : value) read_packed(from, one, texts);
  } else if constexpr (requires(V v) { v.resize(size_t{}); }) {
    size_t size = 0;
    read_packed(from, size, texts);
    value.resize(size);
    for (auto& one : value) read_packed(from, one, texts);
  } else {
    std::apply([&](auto&... members) { (read_packed(from, members, texts), ...); },
               V::packed(value));
  }
}

}  // namespace flopinj::reduce
