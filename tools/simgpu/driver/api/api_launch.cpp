// Launches.
#include <algorithm>

#include "driver/api/api.h"
#include "driver/context.h"
#include "driver/execution/launch.h"
#include "driver/graphs/capture.h"

namespace simgpu::api {
namespace {

CUresult launch(CUfunction f, const LaunchShape& shape, CUstream hStream, void** kernelParams,
                void** extra) {
  const auto function = find_function(f);
  if (!function) return function.error;
  const auto stream = resolve_stream(hStream);
  if (!stream) return stream.error;
  if (stream->context != function->context) return CUDA_ERROR_INVALID_HANDLE;
  LaunchWork work;
  const CUresult error = prepare_launch(function.object, shape, kernelParams, extra, work);
  return error != CUDA_SUCCESS ? error : submit(stream.object, std::move(work));
}

// What the launch attributes mean for a simulated kernel; those that only hint at performance are
// accepted.
CUresult apply_attributes(const CUlaunchConfig& config, LaunchShape& shape) {
  if (config.numAttrs > 0 && config.attrs == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned int i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config.attrs[i];
    switch (attribute.id) {
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        shape.cluster = {attribute.value.clusterDim.x, attribute.value.clusterDim.y,
                         attribute.value.clusterDim.z};
        break;
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        shape.cooperative = attribute.value.cooperative != 0;
        break;
      default:
        if (attribute.id < 0 || attribute.id >= CU_LAUNCH_ATTRIBUTE_MAX)
          return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                        unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                        unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                        void** kernelParams, void** extra) {
  const LaunchShape shape{.grid = {gridDimX, gridDimY, gridDimZ},
                          .block = {blockDimX, blockDimY, blockDimZ},
                          .dynamic_shared_bytes = sharedMemBytes};
  return launch(f, shape, hStream, kernelParams, extra);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** kernelParams,
                          void** extra) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  LaunchShape shape = shape_of(*config);
  if (const CUresult error = apply_attributes(*config, shape); error != CUDA_SUCCESS) return error;
  return launch(f, shape, config->hStream, kernelParams, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                   unsigned int gridDimZ, unsigned int blockDimX,
                                   unsigned int blockDimY, unsigned int blockDimZ,
                                   unsigned int sharedMemBytes, CUstream hStream,
                                   void** kernelParams) {
  const LaunchShape shape{.grid = {gridDimX, gridDimY, gridDimZ},
                          .block = {blockDimX, blockDimY, blockDimZ},
                          .dynamic_shared_bytes = sharedMemBytes,
                          .cooperative = true};
  return launch(f, shape, hStream, kernelParams, nullptr);
}

}  // namespace simgpu::api
