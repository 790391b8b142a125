// Which module a call of the driver was about and which handles of kernels it gave, at its EXIT.
// Private to the table of driver calls.
#pragma once
#include <cuda.h>
#include <cupti.h>
#include <injector/vendor/module_calls.h>

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

inline GivenHandles functions(const CUfunction* first, size_t count = 1) {
  return {first, nullptr, count};
}
inline GivenHandles kernels(const CUkernel* first, size_t count = 1) {
  return {nullptr, first, count};
}

inline GivenHandles function_of_module(const void* parameters) {
  return functions(static_cast<const cuModuleGetFunction_params*>(parameters)->hfunc);
}

inline GivenHandles functions_of_module(const void* parameters) {
  const auto& p = *static_cast<const cuModuleEnumerateFunctions_params*>(parameters);
  return functions(p.functions, p.numFunctions);
}

inline GivenHandles function_of_kernel(const void* parameters) {
  return functions(static_cast<const cuKernelGetFunction_params*>(parameters)->pFunc);
}

inline GivenHandles kernel_of_library(const void* parameters) {
  return kernels(static_cast<const cuLibraryGetKernel_params*>(parameters)->pKernel);
}

inline GivenHandles kernels_of_library(const void* parameters) {
  const auto& p = *static_cast<const cuLibraryEnumerateKernels_params*>(parameters);
  return kernels(p.kernels, p.numKernels);
}

// Of a graph's node, which has the handle that it was made with, or the driver's own.
template <class P>
GivenHandles of_node(const void* parameters) {
  const auto* const node = static_cast<const P*>(parameters)->nodeParams;
  GivenHandles given;
  if (node == nullptr) return given;
  given = functions(&node->func);
  if constexpr (requires { node->kern; })
    if (node->func == nullptr) given = kernels(&node->kern);
  given.repeated = true;
  return given;
}

}  // namespace flopinj::readers
