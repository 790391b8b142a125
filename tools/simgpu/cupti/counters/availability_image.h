// The counter availability image: which counters a device has, or the slice of it that the program
// runs on. Opaque to clients, which give it to host objects without its size.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "counters/counters.h"

namespace simgpu::cupti {

struct Availability {
  uint32_t chip = 0;
  CounterSet lacking;
};

inline constexpr size_t kAvailabilityBytes = 32 + kCounters;

std::vector<uint8_t> write_availability_image(const Availability& availability);
// Nothing when the bytes, kAvailabilityBytes of them, are not an undamaged image.
std::optional<Availability> read_availability_image(const uint8_t* image);

}  // namespace simgpu::cupti
