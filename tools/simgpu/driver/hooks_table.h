// The driver's side of the seam to the simulated CUPTI (simgpu/hooks.h).
#pragma once
#include <simgpu/hooks.h>

namespace simgpu {

const Driver* hooks_table();

}  // namespace simgpu
