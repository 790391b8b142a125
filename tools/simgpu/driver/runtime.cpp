#include "driver/runtime.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

namespace simgpu {

Runtime& Runtime::get() {
  static Runtime* const runtime = new Runtime;
  return *runtime;
}

CUresult Runtime::initialize() {
  const std::lock_guard lock(init_mutex_);
  if (init_result_ != CUDA_ERROR_NOT_INITIALIZED) return init_result_;
  settings_ = read_settings();
  if (settings_.faults.no_device || settings_.devices == 0)
    return init_result_ = CUDA_ERROR_NO_DEVICE;
  for (int i = 0; i < settings_.devices; ++i)
    devices_.push_back(std::make_unique<Device>(i, settings_.chip));
  init_result_ = CUDA_SUCCESS;
  initialized_.store(true, std::memory_order_release);
  load_injection();
  return init_result_;
}

// The driver's injection protocol: CUDA_INJECTION64_PATH names a library; cuInit loads it and calls
// its `int InitializeInjection(void)` once. Whatever goes wrong there is not the program's concern.
void Runtime::load_injection() {
  const char* path = std::getenv("CUDA_INJECTION64_PATH");
  if (path == nullptr || *path == '\0' || injected_) return;
  injected_ = true;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    complain("CUDA_INJECTION64_PATH is ignored: " + std::string(why != nullptr ? why : path));
    return;
  }
  using Initialize = int (*)();
  const auto initialize = reinterpret_cast<Initialize>(dlsym(library, "InitializeInjection"));
  if (initialize == nullptr) {
    complain("CUDA_INJECTION64_PATH is ignored: " + std::string(path) +
             " has no InitializeInjection");
    return;
  }
  initialize();
}

Device* Runtime::device(CUdevice ordinal) const {
  if (ordinal < 0 || ordinal >= device_count()) return nullptr;
  return devices_[static_cast<size_t>(ordinal)].get();
}

Device* Runtime::device_of_address(uint64_t address) const {
  for (const auto& device : devices_)
    if (device->memory().in_range(address)) return device.get();
  return nullptr;
}

}  // namespace simgpu
