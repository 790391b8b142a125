// Whether there is a CUDA driver on this machine, as doctor and run say it.
#pragma once
#include <dlfcn.h>

namespace flopinj {

inline constexpr const char* kNoDriverAdvice =
    "Install the NVIDIA driver; in a container, start it with the NVIDIA runtime (docker run "
    "--gpus "
    "all). Without a GPU: flopinj run --simulate.";

// The driver, loaded into this process but not started; null: there is none.
inline void* open_driver() { return dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL); }

inline bool has_driver() {
  void* const driver = open_driver();
  if (driver != nullptr) dlclose(driver);
  return driver != nullptr;
}

}  // namespace flopinj
