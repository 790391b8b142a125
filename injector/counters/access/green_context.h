// Launches on green contexts, which have a part of the device. They are left alone: CUPTI wants the
// profiler of each of them enabled by itself, with what it says of its part (headers of 13.5).
#pragma once
#include <injector/vendor/cuda_api.h>

namespace flopinj {

// A call of the driver. `per_thread`: the null stream is the calling thread's own.
inline bool on_green_context(const CudaApi& cuda, CUstream stream, bool per_thread) {
  if (cuda.StreamGetGreenCtx == nullptr) return false;  // before CUDA 12.4
  const bool own = stream == nullptr && per_thread;
  CUgreenCtx green = nullptr;
  return cuda.StreamGetGreenCtx(own ? CU_STREAM_PER_THREAD : stream, &green) == CUDA_SUCCESS &&
         green != nullptr;
}

}  // namespace flopinj
