// What every exported CUPTI function shares: no exception leaves it.
#pragma once
#include <cupti_result.h>

#include <cstddef>
#include <new>
#include <span>

#include "versions.h"

namespace simgpu::cupti {

// CUPTI_SUCCESS, or what every call gives where there is no libcuda.so.1 at all:
// CUPTI_ERROR_UNKNOWN from 13.3 on. 13.2 then calls itself until the stack is used up, and so does
// this. (Tried with 13.2.75 and 13.5.25; beside NVIDIA's libcuda.so.1 of 12.2 to 12.5, without a
// GPU, calls that need no driver work, and the others are CUPTI_ERROR_UNKNOWN.)
CUptiResult refused_unstarted();

bool known_size(std::span<const SizeSince> growth, size_t unchanged, size_t size);

template <class Body>
CUptiResult entry(Body&& body) noexcept {
  try {
    if (refused_unstarted() != CUPTI_SUCCESS) return CUPTI_ERROR_UNKNOWN;
    return body();
  } catch (const std::bad_alloc&) {
    return CUPTI_ERROR_OUT_OF_MEMORY;
  } catch (...) {
    return CUPTI_ERROR_UNKNOWN;
  }
}

// For the structures of the profiler APIs: present, and of a size that the simulated version knows.
// `unchanged` is the size in the headers of the build. pPriv is not looked at (tried on the host
// API of CUPTI 13.0).
template <class Params>
bool valid(const Params* params, size_t unchanged) {
  return params != nullptr && known_size(kGrowth<Params>, unchanged, params->structSize);
}

// A call with such a structure.
template <class Params, class Body>
CUptiResult entry(const Params* params, size_t unchanged, Body&& body) noexcept {
  return entry([&]() -> CUptiResult {
    return valid(params, unchanged) ? body() : CUPTI_ERROR_INVALID_PARAMETER;
  });
}

}  // namespace simgpu::cupti
