// A graph that was captured, and one that was built.
#include "check.h"

__device__ float table[4];

__global__ void add(int n, float value, float* x) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += value;
}

int main() {
  int n = 256;
  float* x;
  CHECK(cudaMalloc(&x, n * sizeof(float)));
  CHECK(cudaMemset(x, 0, n * sizeof(float)));
  // Graphs have their counts from launches outside that are like their kernels.
  add<<<2, 128>>>(n, 1, x);
  add<<<2, 128>>>(n, 2, x);

  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  cudaGraph_t captured;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < 3; ++i) add<<<2, 128, 0, stream>>>(n, 1, x);
  CHECK(cudaStreamEndCapture(stream, &captured));
  CHECK(cudaGraphInstantiate(&exec, captured, 0));
  for (int i = 0; i < 4; ++i) CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));

  cudaGraph_t built;
  cudaGraphNode_t kernel, copy;
  cudaGraphExec_t second;
  float host[256], value = 1;
  void* arguments[] = {&n, &value, &x};
  cudaKernelNodeParams parameters{};
  parameters.func = reinterpret_cast<void*>(add);
  parameters.gridDim = dim3(2);
  parameters.blockDim = dim3(128);
  parameters.kernelParams = arguments;
  CHECK(cudaGraphCreate(&built, 0));
  CHECK(cudaGraphAddKernelNode(&kernel, built, nullptr, 0, &parameters));
  CHECK(cudaGraphAddMemcpyNode1D(&copy, built, &kernel, 1, host, x, sizeof host,
                                 cudaMemcpyDeviceToHost));
  CHECK(cudaGraphInstantiate(&second, built, 0));
  CHECK(cudaGraphLaunch(second, stream));
  CHECK(cudaStreamSynchronize(stream));
  EXPECT(host[0] == 16 && host[255] == 16);
  value = 2;
  CHECK(cudaGraphExecKernelNodeSetParams(second, kernel, &parameters));
  CHECK(cudaGraphLaunch(second, stream));
  CHECK(cudaStreamSynchronize(stream));
  EXPECT(host[0] == 18);

  // Copies to a variable and from it, and shared memory that one block a multiprocessor leaves.
  const float given[2] = {5, 6};
  float taken[2] = {};
  cudaGraph_t variable;
  cudaGraphNode_t to, from;
  cudaGraphExec_t third;
  CHECK(cudaGraphCreate(&variable, 0));
  CHECK(cudaGraphAddMemcpyNodeToSymbol(&to, variable, nullptr, 0, table, given, sizeof given, 8,
                                       cudaMemcpyHostToDevice));
  CHECK(cudaGraphAddMemcpyNodeFromSymbol(&from, variable, &to, 1, taken, table, sizeof taken, 8,
                                         cudaMemcpyDeviceToHost));
  CHECK(cudaGraphInstantiate(&third, variable, 0));
  CHECK(cudaGraphLaunch(third, stream));
  CHECK(cudaStreamSynchronize(stream));
  EXPECT(taken[0] == 5 && taken[1] == 6);
  CHECK(cudaGraphExecDestroy(third));
  CHECK(cudaGraphDestroy(variable));
  size_t left = 0, less = 0;
  CHECK(cudaOccupancyAvailableDynamicSMemPerBlock(&left, add, 1, 128));
  CHECK(cudaOccupancyAvailableDynamicSMemPerBlock(&less, add, 4, 128));
  EXPECT(left >= 48 << 10 && less < left && less > 0);

  // A node that the program adds to a capture under way, before its next launch.
  cudaStreamCaptureStatus status;
  cudaGraph_t mixed;
  unsigned long long id = 0;
  const cudaGraphNode_t* before = nullptr;
  size_t count = 0;
  cudaGraphNode_t added;
  cudaGraphExec_t fourth;
  CHECK(cudaMemset(x, 0, n * sizeof(float)));
  value = 2;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  add<<<2, 128, 0, stream>>>(n, 1, x);
  CHECK(cudaStreamGetCaptureInfo(stream, &status, &id, &mixed, &before, nullptr, &count));
  EXPECT(status == cudaStreamCaptureStatusActive && id != 0 && count == 1);
  CHECK(cudaGraphAddKernelNode(&added, mixed, before, count, &parameters));
  CHECK(cudaStreamUpdateCaptureDependencies(stream, &added, nullptr, 1,
                                            cudaStreamSetCaptureDependencies));
  CHECK(cudaMemcpyAsync(host, x, sizeof host, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamEndCapture(stream, &mixed));
  CHECK(cudaStreamGetCaptureInfo(stream, &status));
  EXPECT(status == cudaStreamCaptureStatusNone);
  CHECK(cudaGraphInstantiate(&fourth, mixed, 0));
  CHECK(cudaGraphLaunch(fourth, stream));
  CHECK(cudaStreamSynchronize(stream));
  EXPECT(host[0] == 3 && host[255] == 3);
  CHECK(cudaGraphExecDestroy(fourth));
  CHECK(cudaGraphDestroy(mixed));

  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphExecDestroy(second));
  CHECK(cudaGraphDestroy(captured));
  CHECK(cudaGraphDestroy(built));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(x));
}
