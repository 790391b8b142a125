// How the test programs name their work: each case is launched a number of times inside an NVTX
// range of its own, and printed as one line of JSON, from whose shape cases.py works out the
// expected operations.
#pragma once
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace gputest {

inline void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(result));
  std::exit(1);
}

// `shape` is the inside of a JSON object, such as "\"n\": 5". `launch` launches the work once.
template <class Launch>
void run_case(const std::string& name, const std::string& kind, const std::string& shape,
              int repeats, Launch launch) {
  nvtxRangePushA(name.c_str());
  for (int i = 0; i < repeats; ++i) launch();
  check(cudaGetLastError(), name.c_str());
  nvtxRangePop();
  check(cudaDeviceSynchronize(), name.c_str());
  std::printf("{\"case\": \"%s\", \"kind\": \"%s\", \"repeats\": %d, %s}\n", name.c_str(),
              kind.c_str(), repeats, shape.c_str());
  std::fflush(stdout);
}

inline std::string field(const char* name, long long value) {
  return "\"" + std::string(name) + "\": " + std::to_string(value);
}

// Zeroed device memory for the life of the process.
template <class T>
T* device_array(size_t count) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, count * sizeof(T)), "cudaMalloc");
  check(cudaMemset(memory, 0, count * sizeof(T)), "cudaMemset");
  return static_cast<T*>(memory);
}

}  // namespace gputest
