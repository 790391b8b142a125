// What a call says of modules, libraries and handles of kernels, at its EXIT. Private to the table
// of driver calls.
#pragma once
#include <cuda.h>
#include <cupti.h>
#include <injector/vendor/module_calls.h>

namespace flopinj::readers {

template <class P>
ModuleCall load_module(const void* parameters) {
  const auto& p = *static_cast<const P*>(parameters);
  return {.owner = p.module != nullptr ? *p.module : nullptr, .loaded = true};
}

template <class P>
ModuleCall load_library(const void* parameters) {
  const auto& p = *static_cast<const P*>(parameters);
  return {.owner = p.library != nullptr ? *p.library : nullptr, .loaded = true};
}

inline ModuleCall module_of_library(const void* parameters) {
  const auto& p = *static_cast<const cuLibraryGetModule_params*>(parameters);
  return {.owner = p.pMod != nullptr ? *p.pMod : nullptr, .library = p.library};
}

inline ModuleCall function_of_module(const void* parameters) {
  const auto& p = *static_cast<const cuModuleGetFunction_params*>(parameters);
  return {.owner = p.hmod, .handles = p.hfunc, .count = 1, .name = p.name};
}

inline ModuleCall functions_of_module(const void* parameters) {
  const auto& p = *static_cast<const cuModuleEnumerateFunctions_params*>(parameters);
  return {.owner = p.mod, .handles = p.functions, .count = p.numFunctions};
}

inline ModuleCall kernel_of_library(const void* parameters) {
  const auto& p = *static_cast<const cuLibraryGetKernel_params*>(parameters);
  return {.owner = p.library, .handles = p.pKernel, .count = 1, .name = p.name};
}

inline ModuleCall kernels_of_library(const void* parameters) {
  const auto& p = *static_cast<const cuLibraryEnumerateKernels_params*>(parameters);
  return {.owner = p.lib, .handles = p.kernels, .count = p.numKernels};
}

inline ModuleCall function_of_kernel(const void* parameters) {
  const auto& p = *static_cast<const cuKernelGetFunction_params*>(parameters);
  return {.handles = p.pFunc, .count = 1, .kernel = p.kernel};
}

// The program asked for the name.
template <class P>
ModuleCall name_of(const void* parameters) {
  const auto& p = *static_cast<const P*>(parameters);
  return {.handles = &p.hfunc, .count = 1, .name = p.name != nullptr ? *p.name : nullptr};
}

}  // namespace flopinj::readers
