// Launches on green contexts, which have a part of the device. They are left alone: CUPTI wants the
// profiler of each of them enabled by itself, with what it says of its part (headers of 13.5).
#pragma once
#include <injector/vendor/cuda_api.h>
#include <injector/vendor/launch_calls.h>

namespace flopinj {

// A call of the driver: for launches that want a window, or come while one is open.
inline bool on_green_context(const CudaApi& cuda, const LaunchCall& call) {
  if (cuda.StreamGetGreenCtx == nullptr) return false;  // before CUDA 12.4
  const bool own = call.stream == nullptr && call.per_thread_stream;
  CUgreenCtx green = nullptr;
  return cuda.StreamGetGreenCtx(own ? CU_STREAM_PER_THREAD : call.stream, &green) == CUDA_SUCCESS &&
         green != nullptr;
}

}  // namespace flopinj
