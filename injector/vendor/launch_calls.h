// A launch as a call of the driver asks for it, and how the parameter structures of launch
// functions are read.
#pragma once
#include <collector/identity/launch.h>
#include <cuda.h>
#include <cupti.h>

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

  // As new; see LaunchInProgress.
  void reset() noexcept {
    function = nullptr;
    graph = nullptr;
    stream = nullptr;
    per_thread_stream = device_updatable = cooperative = false;
    parameters_readable = true;
    shape = {};
    parameters = {};
  }
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

// Readers, for the table of driver calls.
namespace flopinj::readers {

// The calls of old keep block shape and parameters in the function object: neither can be read
// here.
inline void read_function_alone(CUfunction function, int width, int height, LaunchCall& call) {
  call.function = function;
  call.shape.grid = {static_cast<uint32_t>(width), static_cast<uint32_t>(height), 1};
  call.shape.block = {0, 0, 0};
  call.parameters_readable = false;
}

// `call` is as new.
template <class P>
void read_kernel(const void* parameters, LaunchCall& call) {
  const auto& p = *static_cast<const P*>(parameters);
  call.function = p.f;
  call.stream = p.hStream;
  read_shape(p, call.shape);
  if (p.kernelParams != nullptr)
    call.parameters.pointers = p.kernelParams;
  else if constexpr (requires { p.extra; })
    call.parameters = parameter_values(nullptr, p.extra);
}

inline void read_cooperative(const void* parameters, LaunchCall& call) {
  read_kernel<cuLaunchCooperativeKernel_params>(parameters, call);
  call.cooperative = true;
}

inline void read_ex(const void* parameters, LaunchCall& call) {
  const auto& p = *static_cast<const cuLaunchKernelEx_params*>(parameters);
  call.function = p.f;
  call.parameters = parameter_values(p.kernelParams, p.extra);
  if (p.config == nullptr) return;  // the call will fail
  call.stream = p.config->hStream;
  read_shape(*p.config, call.shape);
  if (p.config->attrs == nullptr) return;
  for (unsigned i = 0; i < p.config->numAttrs; ++i) {
    const CUlaunchAttribute& attribute = p.config->attrs[i];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
      call.shape.cluster = {attribute.value.clusterDim.x, attribute.value.clusterDim.y,
                            attribute.value.clusterDim.z};
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
      call.cooperative = attribute.value.cooperative != 0;
#if CUDA_VERSION >= 12040
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
      call.device_updatable = attribute.value.deviceUpdatableKernelNode.deviceUpdatable != 0;
#endif
  }
}

inline void read_launch(const void* parameters, LaunchCall& call) {
  read_function_alone(static_cast<const cuLaunch_params*>(parameters)->f, 1, 1, call);
}
inline void read_grid(const void* parameters, LaunchCall& call) {
  const auto& p = *static_cast<const cuLaunchGrid_params*>(parameters);
  read_function_alone(p.f, p.grid_width, p.grid_height, call);
}
inline void read_grid_async(const void* parameters, LaunchCall& call) {
  const auto& p = *static_cast<const cuLaunchGridAsync_params*>(parameters);
  read_function_alone(p.f, p.grid_width, p.grid_height, call);
  call.stream = p.hStream;
}

inline void read_graph(const void* parameters, LaunchCall& call) {
  const auto& p = *static_cast<const cuGraphLaunch_ptsz_params*>(parameters);
  call.graph = p.hGraphExec;
  call.stream = p.hStream;
}

}  // namespace flopinj::readers
