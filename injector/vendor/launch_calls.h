// A launch as a call of the driver asks for it.
#pragma once
#include <collector/identity/launch.h>
#include <cuda.h>

#include <cstdint>

namespace flopinj {

// One launch as the program asked for it. Pointers are the program's and valid until its
// call returns.
struct LaunchCall {
  CUfunction function = nullptr;  // or a CUkernel, cast (kernel_handles.h)
  CUgraphExec graph = nullptr;    // of a graph launch; then only the stream is set beside it
  CUstream stream = nullptr;
  bool per_thread_stream = false;   // the null stream means the thread's own default stream
  bool device_updatable = false;    // under capture: kernels may change the node
  bool cooperative = false;         // all blocks must be resident at once
  bool parameters_readable = true;  // false: set through the old cuParamSet calls
  LaunchShape shape;
  ParameterValues parameters;
};

enum class LaunchKind : uint8_t { kKernel, kMultiDevice, kGraph };

// Launches of one call on several devices: how many, and each of them.
uint32_t devices_of_launch(const void* multi_device_parameters) noexcept;
void read_device_launch(const void* multi_device_parameters, uint32_t index, LaunchCall&) noexcept;

// Of every structure that has these fields by CUDA's names.
template <class P>
void read_shape(const P& p, LaunchShape& shape) {
  shape.grid = {p.gridDimX, p.gridDimY, p.gridDimZ};
  shape.block = {p.blockDimX, p.blockDimY, p.blockDimZ};
  shape.dynamic_shared_bytes = p.sharedMemBytes;
}

// The packed buffer of CUDA's `extra` list; nothing where the list has none.
ParameterValues parameter_values(void* const* kernel_parameters, void* const* extra) noexcept;

}  // namespace flopinj
