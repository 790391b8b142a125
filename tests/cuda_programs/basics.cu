// Plain launches, events, variables of the device, attributes, errors.
#include <cstring>

#include "check.h"

__constant__ float scale[4];
__device__ int calls;

template <class T>
__global__ void scaled_sum(int n, const T* x, T* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) atomicAdd(&calls, 1);
  if (i < n) y[i] = static_cast<T>(scale[i % 4]) * x[i] + y[i];
}

__global__ void dynamic_sum(float* y) {
  extern __shared__ float values[];
  values[threadIdx.x] = y[threadIdx.x];
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) values[threadIdx.x] += values[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[0] = values[0];
}

template <class T>
void run(int n) {
  T *host = new T[n], *x, *y;
  for (int i = 0; i < n; ++i) host[i] = static_cast<T>(i);
  CHECK(cudaMalloc(&x, n * sizeof(T)));
  CHECK(cudaMalloc(&y, n * sizeof(T)));
  CHECK(cudaMemcpy(x, host, n * sizeof(T), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(y, 0, n * sizeof(T)));
  scaled_sum<<<(n + 127) / 128, 128>>>(n, x, y);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, y, n * sizeof(T), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i) EXPECT(host[i] == static_cast<T>(i * (i % 4 + 1)));
  CHECK(cudaFree(x));
  CHECK(cudaFree(y));
  delete[] host;
}

int main() {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  EXPECT(devices == 1);
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, 0));
  EXPECT(properties.warpSize == 32 && properties.multiProcessorCount > 0 && properties.major >= 7);
  const float values[] = {1, 2, 3, 4};
  CHECK(cudaMemcpyToSymbol(scale, values, sizeof values));
  float back[2];
  CHECK(cudaMemcpyFromSymbol(back, scale, sizeof back, 8));
  EXPECT(back[0] == 3 && back[1] == 4);
  void* address;
  size_t bytes;
  CHECK(cudaGetSymbolAddress(&address, calls));
  CHECK(cudaGetSymbolSize(&bytes, calls));
  EXPECT(bytes == sizeof calls);

  cudaEvent_t start, end;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&end));
  CHECK(cudaEventRecord(start));
  run<float>(1000);
  run<double>(777);
  CHECK(cudaEventRecord(end));
  CHECK(cudaEventSynchronize(end));
  float milliseconds = 0;
  CHECK(cudaEventElapsedTime(&milliseconds, start, end));
  EXPECT(milliseconds > 0);
  int counted = 0;
  CHECK(cudaMemcpyFromSymbol(&counted, calls, sizeof counted));
  EXPECT(counted == 2);

  float* y;
  CHECK(cudaMalloc(&y, 1024 * sizeof(float)));
  CHECK(cudaMemset(y, 0, 1024 * sizeof(float)));
  cudaFuncAttributes attributes;
  CHECK(cudaFuncGetAttributes(&attributes, dynamic_sum));
  EXPECT(attributes.maxThreadsPerBlock == 1024 && attributes.numRegs > 0);
  constexpr int kShared = 60 << 10;
  dynamic_sum<<<1, 256, kShared>>>(y);
  EXPECT(cudaGetLastError() != cudaSuccess);
  CHECK(cudaGetLastError());
  CHECK(cudaFuncSetAttribute(dynamic_sum, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared));
  dynamic_sum<<<1, 256, kShared>>>(y);
  CHECK(cudaDeviceSynchronize());
  int blocks = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, dynamic_sum, 256, 1024));
  EXPECT(blocks > 0);
  int least = 0, block = 0;
  CHECK(cudaOccupancyMaxPotentialBlockSize(&least, &block, scaled_sum<float>));
  EXPECT(block > 0 && block % 32 == 0);

  dynamic_sum<<<1, 2048>>>(y);
  const char* const name = cudaGetErrorName(cudaPeekAtLastError());
  EXPECT(std::strcmp(name, "cudaErrorInvalidConfiguration") == 0);
  EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
  EXPECT(cudaGetLastError() == cudaSuccess);
  cudaPointerAttributes known;
  CHECK(cudaPointerGetAttributes(&known, y));
  EXPECT(known.type == cudaMemoryTypeDevice && known.device == 0);
  CHECK(cudaPointerGetAttributes(&known, &known));
  EXPECT(known.type == cudaMemoryTypeUnregistered);
  CHECK(cudaFree(y));
  CHECK(cudaDeviceReset());
}
