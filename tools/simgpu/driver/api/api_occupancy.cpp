// Occupancy: how many blocks, and clusters of blocks, the modelled chip has room for.
#include <algorithm>

#include "driver/api/api.h"
#include "driver/context.h"
#include "driver/execution/launch.h"
#include "driver/modules/attributes.h"

namespace simgpu::api {
namespace {

constexpr unsigned int kFlags = CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE;

uint32_t blocks_at_once(const Function& function, uint64_t threads, uint64_t dynamic_shared) {
  if (threads > most_threads(function)) return 0;
  return resident_blocks(function, threads, dynamic_shared);
}

// Clusters of a launch that run at once; 0 where one alone does not fit.
uint32_t clusters_at_once(const Function& function, const CUlaunchConfig& config,
                          uint32_t cluster_blocks) {
  const uint64_t threads = uint64_t{config.blockDimX} * config.blockDimY * config.blockDimZ;
  const uint64_t all = uint64_t{blocks_at_once(function, threads, config.sharedMemBytes)} *
                       function.context->device->chip().sm_count;
  return static_cast<uint32_t>(all / cluster_blocks);
}

uint32_t cluster_of(const Function& function, const CUlaunchConfig& config) {
  for (unsigned int i = 0; config.attrs != nullptr && i < config.numAttrs; ++i)
    if (const auto& one = config.attrs[i]; one.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
      return one.value.clusterDim.x * one.value.clusterDim.y * one.value.clusterDim.z;
  if (function.code->cluster[0] == 0) return 1;
  return function.code->cluster[0] * function.code->cluster[1] * function.code->cluster[2];
}

}  // namespace

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* numBlocks, CUfunction func,
                                                              int blockSize, size_t dynamicSMemSize,
                                                              unsigned int flags) {
  if (numBlocks == nullptr || blockSize <= 0 || (flags & ~kFlags) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const auto function = find_function(func);
  if (!function) return function.error;
  *numBlocks = static_cast<int>(
      blocks_at_once(*function.object, static_cast<uint64_t>(blockSize), dynamicSMemSize));
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, CUfunction func, int blockSize,
                                                     size_t dynamicSMemSize) {
  return api::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize,
                                                                   dynamicSMemSize, 0);
}

// The largest block, in warps, of those that fill the most threads.
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* minGridSize, int* blockSize,
                                                   CUfunction func,
                                                   CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                   size_t dynamicSMemSize, int blockSizeLimit,
                                                   unsigned int flags) {
  if (minGridSize == nullptr || blockSize == nullptr || blockSizeLimit < 0 ||
      (flags & ~kFlags) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const auto function = find_function(func);
  if (!function) return function.error;
  constexpr uint32_t kWarp = 32;
  uint32_t limit = most_threads(*function.object);
  if (blockSizeLimit != 0) limit = std::min(limit, static_cast<uint32_t>(blockSizeLimit));
  uint64_t most = 0;
  *minGridSize = *blockSize = 0;
  for (uint32_t threads = limit;; threads = (threads - 1) / kWarp * kWarp) {
    const size_t shared = blockSizeToDynamicSMemSize != nullptr
                              ? blockSizeToDynamicSMemSize(static_cast<int>(threads))
                              : dynamicSMemSize;
    const uint64_t blocks = blocks_at_once(*function.object, threads, shared);
    if (blocks * threads > most) {
      most = blocks * threads;
      *blockSize = static_cast<int>(threads);
      *minGridSize = static_cast<int>(blocks * function->context->device->chip().sm_count);
    }
    if (threads <= kWarp) return CUDA_SUCCESS;
  }
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
  const auto threads = static_cast<uint64_t>(blockSize);
  if (blocks_at_once(*function.object, threads, 0) < static_cast<uint32_t>(numBlocks))
    return CUDA_ERROR_INVALID_VALUE;
  const Chip& chip = function->context->device->chip();
  const uint64_t each = chip.shared_per_sm / static_cast<uint64_t>(numBlocks);
  const uint64_t taken = reserved_shared_bytes(chip) + function->code->shared_bytes;
  *dynamicSmemSize =
      std::min<uint64_t>(each > taken ? each - taken : 0, chip.shared_per_block_optin);
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialClusterSize(int* clusterSize, CUfunction func,
                                            const CUlaunchConfig* config) {
  if (clusterSize == nullptr || config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto function = find_function(func);
  if (!function) return function.error;
  if (function->context->device->chip().compute_major < 9) return CUDA_ERROR_NOT_SUPPORTED;
  *clusterSize = 0;
  for (uint32_t blocks = 1; blocks <= kMaxClusterBlocks; blocks *= 2)
    if (clusters_at_once(*function.object, *config, blocks) != 0)
      *clusterSize = static_cast<int>(blocks);
  return *clusterSize != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

CUresult cuOccupancyMaxActiveClusters(int* numClusters, CUfunction func,
                                      const CUlaunchConfig* config) {
  if (numClusters == nullptr || config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto function = find_function(func);
  if (!function) return function.error;
  if (function->context->device->chip().compute_major < 9) return CUDA_ERROR_NOT_SUPPORTED;
  const uint32_t blocks = cluster_of(*function.object, *config);
  if (blocks == 0 || blocks > kMaxClusterBlocks) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  *numClusters = static_cast<int>(clusters_at_once(*function.object, *config, blocks));
  return CUDA_SUCCESS;
}

}  // namespace simgpu::api
