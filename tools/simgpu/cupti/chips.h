// The chips that CUPTI 13.0 knows by name, in families whose metric names agree.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

namespace simgpu::cupti {

struct Chip {
  const char* name;
  uint32_t family;  // column of the metric table, see metrics.cpp
};

std::span<const Chip> chips();
std::span<const char* const> chip_names();

// Index into chips(). Names are matched exactly, case included, as CUPTI does.
std::optional<uint32_t> find_chip(const char* name);

}  // namespace simgpu::cupti
