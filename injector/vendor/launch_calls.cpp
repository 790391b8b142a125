#include <injector/vendor/launch_calls.h>

namespace flopinj {

uint32_t devices_of_launch(const void* parameters) noexcept {
  const auto& p = *static_cast<const cuLaunchCooperativeKernelMultiDevice_params*>(parameters);
  return p.launchParamsList == nullptr ? 0 : p.numDevices;
}

void read_device_launch(const void* parameters, uint32_t index, LaunchCall& call) noexcept {
  const auto& p = *static_cast<const cuLaunchCooperativeKernelMultiDevice_params*>(parameters);
  const CUDA_LAUNCH_PARAMS& one = p.launchParamsList[index];
  call.function = one.function;
  call.stream = one.hStream;
  read_shape(one, call.shape);
  call.parameters = parameter_values(one.kernelParams, nullptr);
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
