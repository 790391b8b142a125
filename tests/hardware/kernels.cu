// Kernels of our own with the arithmetic of some that were read on a real GPU.
#include <cuda_runtime.h>

#include <cstdio>

constexpr int kElements = 1 << 12, kBlock = 256;
__device__ int place() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

__global__ void swish(const float* x, float* y) {
  const int i = place();
  y[i] = x[i] / (1.0f + expf(-x[i]));
}
__global__ void swish_gradient(const float* x, const float* y, const float* dy, float* dx) {
  const int i = place();
  dx[i] = dy[i] * (y[i] + (1.0f - y[i]) / (1.0f + expf(-x[i])));
}
__global__ void triad(const float* x, float* y, float scale) {
  const int i = place();
  y[i] = x[i] + scale * y[i];
}
int main() {
  float* memory[4];
  for (float*& one : memory) {
    cudaMalloc(&one, kElements * sizeof(float));
    cudaMemset(one, 0x3f, kElements * sizeof(float));
  }
  auto [a, b, c, d] = memory;
  swish<<<kElements / kBlock, kBlock>>>(a, b);
  swish_gradient<<<kElements / kBlock, kBlock>>>(a, b, c, d);
  triad<<<kElements / kBlock, kBlock>>>(a, b, 2.0f);
  return cudaDeviceSynchronize() != cudaSuccess;
}
