// A graph that was captured, and one that was built.
#include "check.h"

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
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphExecDestroy(second));
  CHECK(cudaGraphDestroy(captured));
  CHECK(cudaGraphDestroy(built));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(x));
}
