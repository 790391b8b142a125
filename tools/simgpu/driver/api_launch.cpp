// Launches and occupancy.
#include <algorithm>

#include "driver/api.h"
#include "driver/capture.h"
#include "driver/context.h"
#include "driver/launch.h"

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

uint32_t fitting_blocks(const Function& function, int blockSize, size_t shared) {
  if (blockSize <= 0) return 0;
  return resident_blocks(function.context->device->chip(), static_cast<uint64_t>(blockSize),
                         shared);
}

}  // namespace

CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                        unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                        unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                        void** kernelParams, void** extra) {
  LaunchShape shape;
  shape.grid = {gridDimX, gridDimY, gridDimZ};
  shape.block = {blockDimX, blockDimY, blockDimZ};
  shape.dynamic_shared_bytes = sharedMemBytes;
  return launch(f, shape, hStream, kernelParams, extra);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** kernelParams,
                          void** extra) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  LaunchShape shape;
  shape.grid = {config->gridDimX, config->gridDimY, config->gridDimZ};
  shape.block = {config->blockDimX, config->blockDimY, config->blockDimZ};
  shape.dynamic_shared_bytes = config->sharedMemBytes;
  if (const CUresult error = apply_attributes(*config, shape); error != CUDA_SUCCESS) return error;
  return launch(f, shape, config->hStream, kernelParams, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                   unsigned int gridDimZ, unsigned int blockDimX,
                                   unsigned int blockDimY, unsigned int blockDimZ,
                                   unsigned int sharedMemBytes, CUstream hStream,
                                   void** kernelParams) {
  LaunchShape shape;
  shape.grid = {gridDimX, gridDimY, gridDimZ};
  shape.block = {blockDimX, blockDimY, blockDimZ};
  shape.dynamic_shared_bytes = sharedMemBytes;
  shape.cooperative = true;
  return launch(f, shape, hStream, kernelParams, nullptr);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* numBlocks, CUfunction func,
                                                              int blockSize, size_t dynamicSMemSize,
                                                              unsigned int) {
  if (numBlocks == nullptr || blockSize <= 0) return CUDA_ERROR_INVALID_VALUE;
  const auto function = find_function(func);
  if (!function) return function.error;
  *numBlocks = static_cast<int>(fitting_blocks(*function.object, blockSize, dynamicSMemSize));
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, CUfunction func, int blockSize,
                                                     size_t dynamicSMemSize) {
  return api::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize,
                                                                   dynamicSMemSize, 0);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* minGridSize, int* blockSize,
                                                   CUfunction func,
                                                   CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                   size_t dynamicSMemSize, int blockSizeLimit,
                                                   unsigned int) {
  if (minGridSize == nullptr || blockSize == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto function = find_function(func);
  if (!function) return function.error;
  const int limit = blockSizeLimit > 0 && blockSizeLimit < 1024 ? blockSizeLimit : 1024;
  uint32_t best = 0;
  *blockSize = 0;
  *minGridSize = 0;
  for (int size = limit - limit % 32; size >= 32; size -= 32) {
    const size_t shared =
        blockSizeToDynamicSMemSize != nullptr ? blockSizeToDynamicSMemSize(size) : dynamicSMemSize;
    const uint32_t blocks = fitting_blocks(*function.object, size, shared);
    const uint32_t threads = blocks * static_cast<uint32_t>(size);
    if (threads <= best) continue;
    best = threads;
    *blockSize = size;
    *minGridSize = static_cast<int>(blocks * function->context->device->chip().sm_count);
  }
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int* minGridSize, int* blockSize, CUfunction func,
                                          CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                          size_t dynamicSMemSize, int blockSizeLimit) {
  return api::cuOccupancyMaxPotentialBlockSizeWithFlags(
      minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit, 0);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* dynamicSmemSize, CUfunction func,
                                                 int numBlocks, int blockSize) {
  if (dynamicSmemSize == nullptr || numBlocks <= 0 || blockSize <= 0)
    return CUDA_ERROR_INVALID_VALUE;
  const auto function = find_function(func);
  if (!function) return function.error;
  const Chip& chip = function->context->device->chip();
  const size_t reserved = chip.compute_major >= 8 ? 1024 : 0;
  const size_t share = chip.shared_per_sm / static_cast<size_t>(numBlocks);
  *dynamicSmemSize =
      std::min<size_t>(share > reserved ? share - reserved : 0, chip.shared_per_block_optin);
  return CUDA_SUCCESS;
}

}  // namespace simgpu::api
