// Ends the program where a call fails or a result is wrong.
#pragma once
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

inline void check(cudaError_t error, int line) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "line %d: %s: %s\n", line, cudaGetErrorName(error),
               cudaGetErrorString(error));
  std::exit(1);
}
inline void expect(bool right, int line) {
  if (right) return;
  std::fprintf(stderr, "line %d: wrong\n", line);
  std::exit(1);
}
#define CHECK(call) check(call, __LINE__)
#define EXPECT(condition) expect(condition, __LINE__)
