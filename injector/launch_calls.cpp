// The parameter structure of a callback id never changes, whatever CUPTI is running: a new
// structure gets a new id. Functions that differ only in the default stream (_ptsz) share theirs.
#include <cupti.h>
#include <injector/launch_calls.h>

#include <algorithm>
#include <array>

namespace flopinj {
namespace {

// The legacy calls keep block shape and parameters in the function object: neither can be read
// here.
void legacy(CUfunction function, int width, int height, LaunchCall& call) {
  call.function = function;
  call.shape.grid = {static_cast<uint32_t>(width), static_cast<uint32_t>(height), 1};
  call.shape.block = {0, 0, 0};
  call.parameters_readable = false;
}

template <class P>
void read_shape(const P& p, LaunchShape& shape) {
  shape.grid = {p.gridDimX, p.gridDimY, p.gridDimZ};
  shape.block = {p.blockDimX, p.blockDimY, p.blockDimZ};
  shape.dynamic_shared_bytes = p.sharedMemBytes;
}

template <class P>
void read_kernel(const void* parameters, LaunchCall& call) {
  const auto& p = *static_cast<const P*>(parameters);
  call.function = p.f;
  call.stream = p.hStream;
  read_shape(p, call.shape);
  if constexpr (requires { p.extra; })
    call.parameters = parameter_values(p.kernelParams, p.extra);
  else
    call.parameters = parameter_values(p.kernelParams, nullptr);
}

void read_ex(const void* parameters, LaunchCall& call) {
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
#if CUDA_VERSION >= 12040
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
      call.device_updatable = attribute.value.deviceUpdatableKernelNode.deviceUpdatable != 0;
#endif
  }
}

void read_multi_device(const void* parameters, uint32_t index, LaunchCall& call) {
  const auto& p = *static_cast<const cuLaunchCooperativeKernelMultiDevice_params*>(parameters);
  const CUDA_LAUNCH_PARAMS& one = p.launchParamsList[index];
  call.function = one.function;
  call.stream = one.hStream;
  read_shape(one, call.shape);
  call.parameters = parameter_values(one.kernelParams, nullptr);
}

template <void (*Read)(const void*, LaunchCall&), bool PerThread>
void read_one(const void* parameters, uint32_t, LaunchCall& call) {
  Read(parameters, call);
  call.per_thread_stream = PerThread;
}

void read_launch(const void* parameters, uint32_t, LaunchCall& call) {
  legacy(static_cast<const cuLaunch_params*>(parameters)->f, 1, 1, call);
}
void read_grid(const void* parameters, uint32_t, LaunchCall& call) {
  const auto& p = *static_cast<const cuLaunchGrid_params*>(parameters);
  legacy(p.f, p.grid_width, p.grid_height, call);
}
void read_grid_async(const void* parameters, uint32_t, LaunchCall& call) {
  const auto& p = *static_cast<const cuLaunchGridAsync_params*>(parameters);
  legacy(p.f, p.grid_width, p.grid_height, call);
  call.stream = p.hStream;
}

void read_graph(const void* parameters, LaunchCall& call) {
  const auto& p = *static_cast<const cuGraphLaunch_ptsz_params*>(parameters);
  call.graph = p.hGraphExec;
  call.stream = p.hStream;
}

constexpr auto kKernel = LaunchKind::kKernel;
constexpr auto kPlain = read_kernel<cuLaunchKernel_params>;
constexpr auto kCooperative = read_kernel<cuLaunchCooperativeKernel_params>;

constexpr std::array kFunctions{
    LaunchFunction{CUPTI_DRIVER_TRACE_CBID_cuLaunch, kKernel, read_launch},
    LaunchFunction{CUPTI_DRIVER_TRACE_CBID_cuLaunchGrid, kKernel, read_grid},
    LaunchFunction{CUPTI_DRIVER_TRACE_CBID_cuLaunchGridAsync, kKernel, read_grid_async},
    LaunchFunction{CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, kKernel, read_one<kPlain, false>},
    LaunchFunction{CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz, kKernel, read_one<kPlain, true>},
    LaunchFunction{CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel, kKernel,
                   read_one<kCooperative, false>},
    LaunchFunction{CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz, kKernel,
                   read_one<kCooperative, true>},
    LaunchFunction{CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernelMultiDevice,
                   LaunchKind::kMultiDevice, read_multi_device},
    LaunchFunction{CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, LaunchKind::kGraph,
                   read_one<read_graph, false>},
    LaunchFunction{CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz, LaunchKind::kGraph,
                   read_one<read_graph, true>},
    LaunchFunction{CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, kKernel, read_one<read_ex, false>},
    LaunchFunction{CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz, kKernel, read_one<read_ex, true>},
};
static_assert(std::ranges::is_sorted(kFunctions, {}, &LaunchFunction::cbid));

}  // namespace

std::span<const LaunchFunction> launch_functions() { return kFunctions; }

const LaunchFunction* find_launch_function(uint32_t cbid) noexcept {
  const auto at = std::ranges::lower_bound(kFunctions, cbid, {}, &LaunchFunction::cbid);
  return at != kFunctions.end() && at->cbid == cbid ? &*at : nullptr;
}

uint32_t devices_of_launch(const void* parameters) noexcept {
  const auto& p = *static_cast<const cuLaunchCooperativeKernelMultiDevice_params*>(parameters);
  return p.launchParamsList == nullptr ? 0 : p.numDevices;
}

ParameterValues parameter_values(void* const* kernel_parameters, void* const* extra) noexcept {
  ParameterValues values;
  if (kernel_parameters != nullptr) {
    values.pointers = kernel_parameters;
    return values;
  }
  if (extra == nullptr) return values;
  constexpr int kMostPairs = 8;  // CUDA knows two; a list without its end is not followed for ever
  for (int i = 0; i < kMostPairs && extra[2 * i] != CU_LAUNCH_PARAM_END; ++i) {
    void* const value = extra[2 * i + 1];
    if (extra[2 * i] == CU_LAUNCH_PARAM_BUFFER_POINTER) values.packed = value;
    if (extra[2 * i] == CU_LAUNCH_PARAM_BUFFER_SIZE && value != nullptr)
      values.packed_bytes = *static_cast<const size_t*>(value);
  }
  if (values.packed_bytes == 0) values.packed = nullptr;
  return values;
}

}  // namespace flopinj
