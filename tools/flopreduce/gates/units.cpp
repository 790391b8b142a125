#include "gates/units.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "support/si_number.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

constexpr const char *kTime = "time", *kBytes = "bytes", *kFlop = "FLOP", *kRate = "FLOP/s",
                     *kBandwidth = "B/s", *kEnergy = "energy";

constexpr Unit kUnits[] = {
    {"ns", kTime, 1, false},      {"us", kTime, 1e3, false},   {"ms", kTime, 1e6, false},
    {"s", kTime, 1e9, false},     {"min", kTime, 60e9, false}, {"h", kTime, 3600e9, false},
    {"B", kBytes, 1, true},       {"FLOP", kFlop, 1, true},    {"FLOP/s", kRate, 1, true},
    {"B/s", kBandwidth, 1, true}, {"J", kEnergy, 1, true}};

// Other spellings.
constexpr std::pair<std::string_view, std::string_view> kSpelt[] = {
    {"sec", "s"},         {"FLOPs", "FLOP"},   {"flop", "FLOP"},
    {"flops", "FLOP/s"},  {"FLOPS", "FLOP/s"}, {"FLOPs/s", "FLOP/s"},
    {"flop/s", "FLOP/s"}, {"µs", "us"},        {"μs", "us"}};

// Of keys, by the words that they end with; the first that fits. Keys of FLOP name no unit.
struct Ending {
  std::string_view ending, unit;
};
constexpr Ending kEndings[] = {{"_flop_per_s", "FLOP/s"},
                               {"_byte_per_s", "B/s"},
                               {"_per_s", ""},
                               {"_per_j", ""},
                               {"_ns", "ns"},
                               {"_step_time", "s"},
                               {"_bytes", "B"},
                               {"_energy_j", "J"},
                               {"_flop", "FLOP"},
                               {"_flop_exact", "FLOP"},
                               {"_s", "s"}};

const Unit* named(std::string_view name) {
  const auto* const found =
      std::ranges::find(kUnits, name, [](const Unit& unit) { return std::string_view(unit.name); });
  return found == std::end(kUnits) ? nullptr : found;
}

bool is_of_unit(char c) {
  return (is_alnum(c) && !is_digit(c)) || c == '/' || static_cast<unsigned char>(c) >= 128;
}

}  // namespace

const Unit* unit_of_key(std::string_view key) {
  std::string words = "_" + std::string(key) + "_";
  for (const char* side : {"_a_", "_b_"})  // of a comparison
    if (const size_t at = words.find(side); at != words.npos) words.erase(at, 2);
  words.pop_back();
  for (const auto& [ending, unit] : kEndings)
    if (words.ends_with(ending)) return named(unit);
  return nullptr;
}

WrittenUnit unit_at(std::string_view text) {
  size_t length = 0;
  while (length < text.size() && is_of_unit(text[length])) ++length;
  const std::string_view word = text.substr(0, length);
  const auto spelt = [](std::string_view name) {
    for (const auto& [other, usual] : kSpelt)
      if (name == other) return named(usual);
    return named(name);
  };
  if (const Unit* const unit = spelt(word)) return {unit, {}, length};
  if (word.empty() || !is_si_prefix(word[0])) return {};
  const Unit* const unit = spelt(word.substr(1));
  if (unit == nullptr || !unit->prefixes) return {};
  return {unit, word.substr(0, 1), length};
}

std::string units_like(const Unit& unit) {
  std::string text;
  for (const Unit& one : kUnits)
    if (std::string_view(one.of) == unit.of)
      text += (text.empty() ? "" : ", ") + std::string(one.name);
  return text;
}

}  // namespace flopinj::reduce
