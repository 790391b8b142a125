// The driver API's functions without what all of them share (init check, report to the observer,
// exception barrier): api_exports.cpp puts that around them.
#pragma once
// cuda.h then declares every version of a function under its real name.
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>

// As in cudaProfiler.h, which the Python wheels of CUDA's headers lack.
extern "C" {
CUresult CUDAAPI cuProfilerStart();
CUresult CUDAAPI cuProfilerStop();
}

namespace simgpu::api {

#define SIMGPU_API(version, base, name, params, args) CUresult name params;
#define SIMGPU_PTSZ SIMGPU_API
#define SIMGPU_PTDS SIMGPU_API
#define SIMGPU_EARLY SIMGPU_API
#include "driver/api/api_calls.def"
#undef SIMGPU_API
#undef SIMGPU_PTSZ
#undef SIMGPU_PTDS
#undef SIMGPU_EARLY

}  // namespace simgpu::api
