#pragma once
#include <optional>

#include "driver/device.h"

namespace simgpu {

// Nothing for a number that is no attribute; 0 for features that are not simulated.
std::optional<int> device_attribute(const Device& device, CUdevice_attribute attribute);

}  // namespace simgpu
