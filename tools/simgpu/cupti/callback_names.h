// Names of driver and runtime API callbacks, generated from the CUPTI headers' enumerations.
#pragma once
#include <cstdint>

namespace simgpu::cupti {

// Null for an id that does not exist. Names carry their version suffix: "cuMemAlloc_v2",
// "cudaLaunchKernel_v7000".
const char* driver_callback_name(uint32_t id);
const char* runtime_callback_name(uint32_t id);

}  // namespace simgpu::cupti
