// Finds the simulated driver's side of the seam (simgpu/hooks.h).
#pragma once
#include <simgpu/hooks.h>

namespace simgpu::cupti {

// The driver table of the libcuda.so.1 in this process: the one already loaded, or symbols of the
// executable, or a fresh one from the library path. Null when there is none, when it is not a
// simulated driver, or when it speaks another version of the seam (one line on stderr).
const Driver* link_driver();

// Whether there is a libcuda.so.1 at all, simulated or not.
bool driver_is_loaded();

}  // namespace simgpu::cupti
