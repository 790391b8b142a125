// Which module or function a call of the driver was about, at its EXIT. Private to the table of
// driver calls.
#pragma once
#include <cuda.h>
#include <cupti.h>

namespace flopinj::readers {

template <class P>
CUmodule new_module(const void* parameters) {
  const auto& p = *static_cast<const P*>(parameters);
  return p.module != nullptr ? *p.module : nullptr;
}

inline CUmodule module_asked(const void* parameters) {
  return static_cast<const cuModuleGetFunction_params*>(parameters)->hmod;
}

inline CUmodule library_module(const void* parameters) {
  const auto& p = *static_cast<const cuLibraryGetModule_params*>(parameters);
  return p.pMod != nullptr ? *p.pMod : nullptr;
}

inline CUfunction kernel_function(const void* parameters) {
  const auto& p = *static_cast<const cuKernelGetFunction_params*>(parameters);
  return p.pFunc != nullptr ? *p.pFunc : nullptr;
}

}  // namespace flopinj::readers
