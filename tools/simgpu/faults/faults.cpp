#include "faults/faults.h"

#include <algorithm>
#include <charconv>

namespace simgpu {
namespace {

struct Entry {
  std::string_view name, unit, effect;  // unit is empty for a flag
  bool Faults::*flag;
  uint64_t Faults::*number;
  std::string Faults::*text;
};
constexpr Entry kEntries[] = {
#define SIMGPU_FLAG(name, effect) {#name, "", effect, &Faults::name, nullptr, nullptr},
#define SIMGPU_NUMBER(name, unit, effect) {#name, unit, effect, nullptr, &Faults::name, nullptr},
#define SIMGPU_TEXT(name, unit, effect) {#name, unit, effect, nullptr, nullptr, &Faults::name},
#include "faults/faults.def"
#undef SIMGPU_FLAG
#undef SIMGPU_NUMBER
#undef SIMGPU_TEXT
};

// From 1; 0 for text that is none.
uint64_t parse_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : 0;
}

// Why the item was passed over; empty if it was not.
std::string apply(std::string_view item, Faults& faults) {
  const size_t equals = item.find('=');
  const auto name = item.substr(0, equals);
  const auto argument = equals == item.npos ? std::string_view() : item.substr(equals + 1);
  for (const Entry& entry : kEntries) {
    if (entry.name != name) continue;
    if (entry.flag != nullptr && equals == item.npos) {
      faults.*entry.flag = true;
      return {};
    }
    if (entry.flag != nullptr) return "'" + std::string(item) + "' takes no number";
    if (entry.text != nullptr) {
      faults.*entry.text = argument;
      if (!argument.empty()) return {};
      return "'" + std::string(item) + "' needs a " + std::string(entry.unit);
    }
    faults.*entry.number = parse_number(argument);
    if (faults.*entry.number != 0) return {};
    return "'" + std::string(item) + "' needs a number from 1, as in " + std::string(name) + "=3";
  }
  return "'" + std::string(item) + "' is not a fault; SIMGPU_FAULT=list prints them";
}

}  // namespace

Faults parse_faults(std::string_view text, std::vector<std::string>& complaints) {
  Faults faults;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    if (comma != 0)
      if (std::string why = apply(text.substr(0, comma), faults); !why.empty())
        complaints.push_back("SIMGPU_FAULT: " + why);
    text = comma == text.npos ? std::string_view() : text.substr(comma + 1);
  }
  return faults;
}

std::string list_of_faults() {
  std::string out;
  for (const Entry& entry : kEntries) {
    std::string line(entry.name);
    if (!entry.unit.empty()) line.append("=").append(entry.unit);
    line.resize(std::max<size_t>(line.size() + 1, 28), ' ');
    out += line.append(entry.effect).append("\n");
  }
  return out;
}

std::span<const LeftOver> left_overs() {
  static constexpr LeftOver kAll[] = {
#define SIMGPU_LEFT_OVER(functions, when, why) {functions, when, why},
#include "faults/left_overs.def"
#undef SIMGPU_LEFT_OVER
  };
  return kAll;
}

bool allowed_in_callback(std::string_view function) {
  for (const std::string_view suffix : {"_ptsz", "_ptds", "_v2"})
    if (function.ends_with(suffix)) function.remove_suffix(suffix.size());
  const auto among = [function](std::string_view functions) {
    return (" " + std::string(functions) + " ").find(" " + std::string(function) + " ") !=
           std::string::npos;
  };
  return among("cuCtxSynchronize cuStreamSynchronize") ||
         std::ranges::any_of(left_overs(), [&](const LeftOver& l) { return among(l.functions); });
}

}  // namespace simgpu
