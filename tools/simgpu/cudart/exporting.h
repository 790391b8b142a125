// How a function of a list such as functions.def becomes an exported one.
#pragma once
#include "cudart/runtime.h"

namespace simgpu::cudart {

// What is not ready yet is no error.
inline cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) this_thread().last = error;
  return error;
}

struct PerThreadStream {
  PerThreadStream() { this_thread().per_thread_stream = true; }
  ~PerThreadStream() { this_thread().per_thread_stream = false; }
};
struct LegacyStream {};

template <class Scope, class Body>
cudaError_t answer(bool needs_context, Body body) noexcept {
  try {
    [[maybe_unused]] const Scope scope;
    const CUresult error = needs_context ? ready() : cuInit(0);
    return remember(error != CUDA_SUCCESS ? as_runtime(error) : as_runtime(body()));
  } catch (...) {
    return remember(cudaErrorMemoryAllocation);
  }
}

template <class To, class From, class Call>
cudaError_t with_parameters(const From* from, Call call) {
  To to{};
  const cudaError_t error = driver_parameters(from, &to);
  return error != cudaSuccess ? error : as_runtime(call(&to));
}

template <class Call>
CUresult with_row(const void* to, const void* from, size_t bytes, Call call) {
  const CUDA_MEMCPY3D row = row_copy(to, from, bytes);
  return call(&row);
}

// With the address of a variable of the program, and an offset in it.
template <class Call>
cudaError_t with_symbol(const void* symbol, size_t offset, Call call) {
  CUdeviceptr address = 0;
  if (const cudaError_t error = find_variable(symbol, &address, nullptr); error != cudaSuccess)
    return error;
  return as_runtime(call(reinterpret_cast<void*>(address + offset)));
}

}  // namespace simgpu::cudart

#define CUDART_EXPORT extern "C" __attribute__((visibility("default")))
#define CUDART_FUNCTION(scope, context, symbol, parameters, ...) \
  CUDART_EXPORT cudaError_t symbol parameters {                  \
    using namespace simgpu::cudart;                              \
    return answer<scope>(context, [&] { return __VA_ARGS__; });  \
  }
#define CUDART(name, parameters, ...) \
  CUDART_FUNCTION(LegacyStream, true, name, parameters, __VA_ARGS__)
#define CUDART_EARLY(name, parameters, ...) \
  CUDART_FUNCTION(LegacyStream, false, name, parameters, __VA_ARGS__)
#define CUDART_PTSZ(name, parameters, ...)                           \
  CUDART_FUNCTION(LegacyStream, true, name, parameters, __VA_ARGS__) \
  CUDART_FUNCTION(PerThreadStream, true, name##_ptsz, parameters, __VA_ARGS__)
#define CUDART_PTDS(name, parameters, ...)                           \
  CUDART_FUNCTION(LegacyStream, true, name, parameters, __VA_ARGS__) \
  CUDART_FUNCTION(PerThreadStream, true, name##_ptds, parameters, __VA_ARGS__)
