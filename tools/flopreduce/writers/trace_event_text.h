// Texts of the trace-event form.
#pragma once
#include <array>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "support/text.h"
#include "support/wide.h"

namespace flopinj::reduce {

__extension__ typedef __int128 i128;

// A JSON string of ASCII only, made fit to be shown as in every other form.
inline std::string json_text(std::string_view text) {
  return nlohmann::json(printable(text))
      .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

// Integers up to 2^53 as numbers, larger ones as strings: many readers of JSON have only doubles.
inline std::string exact_number(u128 value) {
  const std::string digits = to_decimal(value);
  return value <= u128{1} << 53 ? digits : '"' + digits + '"';
}

// "12.345": microseconds.
inline std::string microseconds(i128 ns) {
  const bool negative = ns < 0;
  const auto size = static_cast<u128>(negative ? -ns : ns);
  std::array<char, 8> rest{};
  std::snprintf(rest.data(), rest.size(), ".%03u", static_cast<unsigned>(size % 1000));
  return (negative ? "-" : "") + to_decimal(size / 1000) + rest.data();
}

// Texts of names by index, made once as long as there is room.
class Texts {
 public:
  template <typename Make>
  const std::string& of(uint32_t index, Make&& make) {
    constexpr size_t kRoom = 16U << 20;
    if (bytes_ > kRoom) {
      texts_.clear();
      bytes_ = 0;
    }
    const auto [entry, fresh] = texts_.try_emplace(index);
    if (fresh) {
      entry->second = make(index);
      bytes_ += entry->second.size() + sizeof *entry;
    }
    return entry->second;
  }

 private:
  std::unordered_map<uint32_t, std::string> texts_;
  size_t bytes_ = 0;
};

// Colours that chrome://tracing has names for. Perfetto gives each name of a phase its own.
inline std::string_view colour_of(std::string_view phase) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kColours = {{
      {"forward", "rail_response"},
      {"loss", "rail_idle"},
      {"backward", "rail_animation"},
      {"recompute", "olive"},
      {"optimizer", "good"},
      {"communication", "bad"},
  }};
  for (const auto& [name, colour] : kColours)
    if (name == phase) return colour;
  return "grey";
}

}  // namespace flopinj::reduce
