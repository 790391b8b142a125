#include "chips.h"

#include <array>
#include <cstring>

namespace simgpu::cupti {
namespace {

constexpr Chip kChips[] = {
    {"GV100", 0},  {"GV11B", 1},  {"TU102", 2},  {"TU104", 2},  {"TU106", 2},  {"TU116", 3},
    {"TU117", 3},  {"GA100", 4},  {"GA102", 5},  {"GA103", 5},  {"GA104", 5},  {"GA106", 5},
    {"GA107", 5},  {"GA10B", 6},  {"GH100", 7},  {"AD102", 8},  {"AD103", 8},  {"AD104", 8},
    {"AD106", 8},  {"AD107", 8},  {"GB100", 9},  {"GB102", 9},  {"GB110", 10}, {"GB10B", 11},
    {"GB202", 12}, {"GB203", 12}, {"GB205", 12}, {"GB206", 12}, {"GB207", 12}, {"GB20B", 13}};

constexpr auto kNames = [] {
  std::array<const char*, std::size(kChips)> names{};
  for (size_t i = 0; i < names.size(); ++i) names[i] = kChips[i].name;
  return names;
}();

}  // namespace

std::span<const Chip> chips() { return kChips; }
std::span<const char* const> chip_names() { return kNames; }

std::optional<uint32_t> find_chip(const char* name) {
  for (uint32_t i = 0; i < std::size(kChips); ++i)
    if (std::strcmp(kChips[i].name, name) == 0) return i;
  return std::nullopt;
}

}  // namespace simgpu::cupti
