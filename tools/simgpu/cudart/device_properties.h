// cudaDeviceProp, as far as the simulated chips have it.
#pragma once
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "cudart/runtime.h"

namespace simgpu::cudart {

// As CUDA 12's driver_types.h lays it out.
struct DeviceProperties12 {
  char name[256];
  cudaUUID_t uuid;
  char luid[8];
  unsigned int luidDeviceNodeMask;
  size_t totalGlobalMem, sharedMemPerBlock;
  int regsPerBlock, warpSize;
  size_t memPitch;
  int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate;
  size_t totalConstMem;
  int major, minor;
  size_t textureAlignment, texturePitchAlignment;
  int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory,
      computeMode;
  int textures[40];  // maxTexture1D to maxSurfaceCubemapLayered
  size_t surfaceAlignment;
  int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver,
      asyncEngineCount, unifiedAddressing, memoryClockRate, memoryBusWidth, l2CacheSize,
      persistingL2CacheMaxSize, maxThreadsPerMultiProcessor, streamPrioritiesSupported,
      globalL1CacheSupported, localL1CacheSupported;
  size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID,
      hostNativeAtomicSupported, singleToDoublePrecisionPerfRatio, pageableMemoryAccess,
      concurrentManagedAccess, computePreemptionSupported, canUseHostPointerForRegisteredMem,
      cooperativeLaunch, cooperativeMultiDeviceLaunch;
  size_t sharedMemPerBlockOptin;
  int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost,
      maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize;
  size_t reservedSharedMemPerBlock;
  int hostRegisterSupported, sparseCudaArraySupported, hostRegisterReadOnlySupported,
      timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;
  unsigned int gpuDirectRDMAFlushWritesOptions;
  int gpuDirectRDMAWritesOrdering;
  unsigned int memoryPoolSupportedHandleTypes;
  int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch, unifiedFunctionPointers;
  int reserved[63];
};
// As programs that CUDA 12's nvcc compiled have it.
static_assert(sizeof(DeviceProperties12) == 1032);
static_assert(offsetof(DeviceProperties12, surfaceAlignment) == 568);
static_assert(offsetof(DeviceProperties12, clusterLaunch) == 772);

template <class Properties>
CUresult fill_properties(Properties* to, int device) {
  if (to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::memset(to, 0, sizeof *to);
  if (const CUresult error = cuDeviceGetName(to->name, sizeof to->name, device);
      error != CUDA_SUCCESS)
    return error;
  CUuuid uuid;
  if (cuDeviceGetUuid(&uuid, device) == CUDA_SUCCESS) std::memcpy(&to->uuid, &uuid, sizeof uuid);
  if (const CUresult error = cuDeviceTotalMem(&to->totalGlobalMem, device); error != CUDA_SUCCESS)
    return error;
  const auto set = [device](auto& member, CUdevice_attribute attribute) {
    int value = 0;
    if (cuDeviceGetAttribute(&value, attribute, device) == CUDA_SUCCESS)
      member = static_cast<std::remove_reference_t<decltype(member)>>(value);
  };
#define CUDART_PROPERTY(member, attribute) \
  if constexpr (requires { to->member; }) set(to->member, CU_DEVICE_ATTRIBUTE_##attribute);
#include "cudart/device_properties.def"
#undef CUDART_PROPERTY
  return CUDA_SUCCESS;
}

}  // namespace simgpu::cudart
