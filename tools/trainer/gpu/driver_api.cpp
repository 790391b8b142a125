#include "gpu/driver_api.h"

#include <dlfcn.h>

namespace trainer {
namespace {

template <class Function>
void look_up(void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  if (function == nullptr) {
    throw CudaError(std::string("the CUDA driver is too old: libcuda.so.1 has no ") + symbol +
                    "; update the NVIDIA driver");
  }
}

}  // namespace

DriverApi::DriverApi() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    throw CudaError(std::string("no CUDA driver: ") + dlerror() +
                    "; install the NVIDIA driver or put its folder on LD_LIBRARY_PATH");
  }
#define TRAINER_STRING(name) #name
#define X(name) look_up(library, TRAINER_STRING(name), name);
  TRAINER_DRIVER_FUNCTIONS(X)
#undef X
#undef TRAINER_STRING
  const CUresult started = cuInit(0);
  int devices = 0;
  if (started == CUDA_SUCCESS) check(cuDeviceGetCount(&devices), "cuDeviceGetCount");
  if (started == CUDA_ERROR_NO_DEVICE || (started == CUDA_SUCCESS && devices == 0)) {
    throw CudaError(
        "no GPU: the CUDA driver reports no device; check nvidia-smi and CUDA_VISIBLE_DEVICES");
  }
  check(started, "cuInit");
}

void DriverApi::check(CUresult result, const char* call) const {
  if (result != CUDA_SUCCESS) throw CudaError(std::string(call) + " failed: " + describe(result));
}

std::string DriverApi::describe(CUresult result) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) {
    return "CUDA error " + std::to_string(static_cast<int>(result));
  }
  std::string line = name;
  if (cuGetErrorString(result, &text) == CUDA_SUCCESS && text != nullptr) {
    line += std::string(" (") + text + ")";
  }
  return line;
}

}  // namespace trainer
