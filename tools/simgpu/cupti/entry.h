// What every exported CUPTI function shares: no exception leaves it, and a failure is kept for
// cuptiGetLastError.
#pragma once
#include <cupti_result.h>

#include <cstddef>
#include <new>

namespace simgpu::cupti {

// This thread's last failure, for cuptiGetLastError.
CUptiResult& last_error() noexcept;

inline CUptiResult report(CUptiResult result) noexcept {
  if (result != CUPTI_SUCCESS) last_error() = result;
  return result;
}

template <class Body>
CUptiResult entry(Body&& body) noexcept {
  try {
    return report(body());
  } catch (const std::bad_alloc&) {
    return report(CUPTI_ERROR_OUT_OF_MEMORY);
  } catch (...) {
    return report(CUPTI_ERROR_UNKNOWN);
  }
}

// For the structures of the profiler APIs: present, and of exactly the size this version knows.
// CUPTI 13.0 refuses both smaller and larger ones, and does not look at pPriv (tried on the host
// API).
template <class Params>
bool valid(const Params* params, size_t size) noexcept {
  return params != nullptr && params->structSize == size;
}

}  // namespace simgpu::cupti
