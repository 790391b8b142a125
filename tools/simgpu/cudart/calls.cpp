// The functions that all versions have, and what needs no driver. cuda_runtime_api.h, which is
// included here, holds their parameters against its own.
#include <cuda_runtime_api.h>

#include "cudart/exporting.h"
#include "cudart/functions.def"

using namespace simgpu::cudart;

CUDART_EXPORT cudaError_t cudaGetLastError() {
  const cudaError_t last = this_thread().last;
  this_thread().last = cudaSuccess;
  return last;
}
CUDART_EXPORT cudaError_t cudaPeekAtLastError() { return this_thread().last; }
CUDART_EXPORT const char* cudaGetErrorName(cudaError_t error) { return error_name(error); }
CUDART_EXPORT const char* cudaGetErrorString(cudaError_t error) { return error_text(error); }

CUDART_EXPORT cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                          cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}

// NVIDIA's tables have no documentation, so there are none.
CUDART_EXPORT cudaError_t cudaGetExportTable(const void** table, const cudaUUID_t*) {
  if (table != nullptr) *table = nullptr;
  return remember(cudaErrorNotSupported);
}
