// The configuration image: which counters are collected in which pass, for which chip. Opaque to
// clients.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "counters/counters.h"

namespace simgpu::cupti {

struct Schedule {
  uint32_t chip = 0;
  std::vector<std::vector<Counter>> passes;

  bool pass_is_sass(size_t pass) const;
};

// Packs counters into passes. SASS counters patch the code and never share a pass with hardware
// ones: all of them make one pass of their own. Hardware counters go first-fit, heaviest first,
// into passes of kPassCapacity. Duplicates count once. No counters: no passes.
Schedule schedule_passes(uint32_t chip, std::vector<Counter> counters);

std::vector<uint8_t> write_config_image(const Schedule& schedule);
// Nothing when the bytes are not a whole, undamaged image. Trailing bytes are allowed, as CUPTI
// allows them.
std::optional<Schedule> read_config_image(std::span<const uint8_t> image);

}  // namespace simgpu::cupti
