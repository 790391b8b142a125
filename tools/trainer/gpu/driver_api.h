// The CUDA driver API as a table of functions, taken from the process's libcuda.so.1 at run time,
// so that the program builds without a driver and runs with whichever one the loader finds.
#pragma once
#include <cuda.h>

#include <stdexcept>
#include <string>

namespace trainer {

// A driver call failed, or there is no driver. what() is one line for the user.
class CudaError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// cuda.h renames functions to their current version (cuMemAlloc to cuMemAlloc_v2) by macro; the
// table's members and the symbols looked up follow it.
#define TRAINER_DRIVER_FUNCTIONS(X) \
  X(cuInit)                         \
  X(cuGetErrorName)                 \
  X(cuGetErrorString)               \
  X(cuDeviceGetCount)               \
  X(cuDeviceGet)                    \
  X(cuDeviceGetAttribute)           \
  X(cuDevicePrimaryCtxRetain)       \
  X(cuDevicePrimaryCtxRelease)      \
  X(cuCtxSetCurrent)                \
  X(cuModuleLoad)                   \
  X(cuModuleUnload)                 \
  X(cuModuleGetFunction)            \
  X(cuMemAlloc)                     \
  X(cuMemFree)                      \
  X(cuMemHostAlloc)                 \
  X(cuMemcpyHtoDAsync)              \
  X(cuMemcpyDtoHAsync)              \
  X(cuMemsetD32Async)               \
  X(cuStreamCreate)                 \
  X(cuStreamDestroy)                \
  X(cuStreamSynchronize)            \
  X(cuEventCreate)                  \
  X(cuEventRecord)                  \
  X(cuStreamBeginCapture)           \
  X(cuStreamEndCapture)             \
  X(cuGraphInstantiateWithFlags)    \
  X(cuGraphLaunch)                  \
  X(cuGraphDestroy)                 \
  X(cuGraphExecDestroy)             \
  X(cuLaunchKernel)

class DriverApi {
 public:
  // Loads libcuda.so.1 and initialises it. Throws CudaError when there is none or it has no GPU.
  // The library stays loaded for the life of the process.
  DriverApi();

#define X(name) decltype(&::name) name = nullptr;
  TRAINER_DRIVER_FUNCTIONS(X)
#undef X

  // Throws CudaError naming the call unless `result` is success.
  void check(CUresult result, const char* call) const;
  // "CUDA_ERROR_INVALID_IMAGE (device kernel image is invalid)"
  std::string describe(CUresult result) const;
};

}  // namespace trainer
