// Functions of what is not simulated: arrays, textures, surfaces, memory and semaphores that other
// interfaces or processes share.
#include "driver/api/api.h"

namespace simgpu::api {

CUresult cuArrayCreate_v2(CUarray*, const CUDA_ARRAY_DESCRIPTOR*) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuArray3DCreate_v2(CUarray*, const CUDA_ARRAY3D_DESCRIPTOR*) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR*, CUarray) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuArrayDestroy(CUarray) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuMipmappedArrayCreate(CUmipmappedArray*, const CUDA_ARRAY3D_DESCRIPTOR*, unsigned int) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuMipmappedArrayGetLevel(CUarray*, CUmipmappedArray, unsigned int) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuMipmappedArrayDestroy(CUmipmappedArray) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuTexObjectCreate(CUtexObject*, const CUDA_RESOURCE_DESC*, const CUDA_TEXTURE_DESC*,
                           const CUDA_RESOURCE_VIEW_DESC*) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuTexObjectDestroy(CUtexObject) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuSurfObjectCreate(CUsurfObject*, const CUDA_RESOURCE_DESC*) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuSurfObjectDestroy(CUsurfObject) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuImportExternalMemory(CUexternalMemory*, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC*) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr*, CUexternalMemory,
                                         const CUDA_EXTERNAL_MEMORY_BUFFER_DESC*) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray*, CUexternalMemory,
                                                 const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC*) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuDestroyExternalMemory(CUexternalMemory) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuImportExternalSemaphore(CUexternalSemaphore*,
                                   const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC*) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuSignalExternalSemaphoresAsync(const CUexternalSemaphore*,
                                         const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS*, unsigned int,
                                         CUstream) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuWaitExternalSemaphoresAsync(const CUexternalSemaphore*,
                                       const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS*, unsigned int,
                                       CUstream) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuDestroyExternalSemaphore(CUexternalSemaphore) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuIpcGetMemHandle(CUipcMemHandle*, CUdeviceptr) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr*, CUipcMemHandle, unsigned int) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuIpcCloseMemHandle(CUdeviceptr) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuIpcGetEventHandle(CUipcEventHandle*, CUevent) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuIpcOpenEventHandle(CUevent*, CUipcEventHandle) { return CUDA_ERROR_NOT_SUPPORTED; }

}  // namespace simgpu::api
