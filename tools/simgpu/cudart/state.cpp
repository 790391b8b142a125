// Threads, devices and their contexts, errors.
#include <array>
#include <mutex>

#include "cudart/device_properties.h"
#include "cudart/runtime.h"

namespace simgpu::cudart {
namespace {

constexpr int kMostDevices = 16;

struct Primary {
  std::once_flag once;
  CUcontext context = nullptr;
  CUresult error = CUDA_SUCCESS;
};

// Kept for the life of the process.
CUresult make_current(int device) {
  static auto* const primaries = new std::array<Primary, kMostDevices>;
  if (device < 0 || device >= kMostDevices) return CUDA_ERROR_INVALID_DEVICE;
  Primary& primary = (*primaries)[static_cast<size_t>(device)];
  std::call_once(primary.once,
                 [&] { primary.error = cuDevicePrimaryCtxRetain(&primary.context, device); });
  return primary.error == CUDA_SUCCESS ? cuCtxSetCurrent(primary.context) : primary.error;
}

struct Error {
  cudaError_t code;
  const char* name;
  const char* text;  // null: the driver's
};
constexpr Error kErrors[] = {
#define CUDART_ERROR(name, text) {name, #name, text},
#include "cudart/errors.def"
#undef CUDART_ERROR
};

const Error* find_error(cudaError_t code) {
  for (const Error& one : kErrors)
    if (one.code == code) return &one;
  return nullptr;
}

}  // namespace

Thread& this_thread() {
  static thread_local Thread one;
  return one;
}

CUresult ready() {
  if (const CUresult error = cuInit(0); error != CUDA_SUCCESS) return error;
  CUcontext current = nullptr;
  if (cuCtxGetCurrent(&current) == CUDA_SUCCESS && current != nullptr) return CUDA_SUCCESS;
  return make_current(this_thread().device);
}

CUresult use_device(int device) {
  int count = 0;
  if (const CUresult error = cuDeviceGetCount(&count); error != CUDA_SUCCESS) return error;
  if (device < 0 || device >= count) return CUDA_ERROR_INVALID_DEVICE;
  this_thread().device = device;
  return make_current(device);
}

CUresult current_device(int* device) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUcontext current = nullptr;
  if (cuCtxGetCurrent(&current) == CUDA_SUCCESS && current != nullptr)
    return cuCtxGetDevice(device);
  *device = this_thread().device;
  return CUDA_SUCCESS;
}

CUcontext current_context() {
  CUcontext current = nullptr;
  cuCtxGetCurrent(&current);
  return current;
}

cudaError_t device_count(int* count) {
  if (count == nullptr) return cudaErrorInvalidValue;
  const CUresult error = cuDeviceGetCount(count);
  return error == CUDA_SUCCESS && *count == 0 ? cudaErrorNoDevice : as_runtime(error);
}

cudaError_t stream_device(cudaStream_t stream, int* device) {
  CUcontext context = nullptr;
  CUresult error = cuStreamGetCtx(stream, &context);
  if (error == CUDA_SUCCESS) error = cuCtxPushCurrent(context);
  if (error != CUDA_SUCCESS) return as_runtime(error);
  error = cuCtxGetDevice(device);
  cuCtxPopCurrent(&context);
  return as_runtime(error);
}

cudaError_t device_properties(cudaDeviceProp* properties, int device) {
  return as_runtime(fill_properties(properties, device));
}

cudaError_t entry_point(const char* symbol, void** function, int version, unsigned long long flags,
                        cudaDriverEntryPointQueryResult* status) {
  return as_runtime(cuGetProcAddress(symbol, function, version, flags,
                                     reinterpret_cast<CUdriverProcAddressQueryResult*>(status)));
}

const char* error_name(cudaError_t error) {
  const Error* const known = find_error(error);
  return known != nullptr ? known->name : "unrecognized error code";
}

const char* error_text(cudaError_t error) {
  const Error* const known = find_error(error);
  const char* text = known != nullptr ? known->text : nullptr;
  if (text == nullptr && cuGetErrorString(static_cast<CUresult>(error), &text) != CUDA_SUCCESS)
    text = "unrecognized error code";
  return text;
}

}  // namespace simgpu::cudart
