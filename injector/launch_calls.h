// The driver's launch functions as data: what each one's parameter structure says about the launch.
#pragma once
#include <collector/model.h>
#include <cuda.h>

#include <cstdint>
#include <span>

namespace flopinj {

// One launch as the program asked for it. Pointers are the program's and valid until its
// call returns.
struct LaunchCall {
  CUfunction function = nullptr;  // may be a CUkernel in disguise
  CUgraphExec graph = nullptr;    // of a graph launch; then only the stream is set beside it
  CUstream stream = nullptr;
  bool per_thread_stream = false;   // the null stream means the thread's own default stream
  bool device_updatable = false;    // under capture: kernels may change the node
  bool parameters_readable = true;  // false: set through the old cuParamSet calls
  LaunchShape shape;
  ParameterValues parameters;
};

enum class LaunchKind : uint8_t { kKernel, kMultiDevice, kGraph };

struct LaunchFunction {
  uint32_t cbid;
  LaunchKind kind;
  // Fills `call` from the parameter structure of this cbid; `index` counts the devices of a
  // multi-device launch.
  void (*read)(const void* parameters, uint32_t index, LaunchCall& call);
};

std::span<const LaunchFunction> launch_functions();  // sorted by cbid
const LaunchFunction* find_launch_function(uint32_t cbid) noexcept;

uint32_t devices_of_launch(const void* multi_device_parameters) noexcept;

// The packed buffer of CUDA's `extra` list; nothing where the list has none.
ParameterValues parameter_values(void* const* kernel_parameters, void* const* extra) noexcept;

}  // namespace flopinj
