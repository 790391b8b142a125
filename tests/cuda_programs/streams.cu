// Streams of two threads, whose default streams are their own if the program is compiled so; pools,
// host functions and events between streams.
#include <atomic>
#include <thread>
#include <vector>

#include "check.h"

__global__ void step(int n, double* x) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = 0.5 * x[i] + 1.0;
}

void work(std::atomic<int>* ended) {
  constexpr int n = 300;
  std::vector<double> host(n, 2.0);
  double *x, *y;
  cudaStream_t stream;
  cudaEvent_t done;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  CHECK(cudaMallocAsync(&x, n * sizeof(double), stream));
  CHECK(cudaMemcpyAsync(x, host.data(), n * sizeof(double), cudaMemcpyHostToDevice, stream));
  for (int i = 0; i < 5; ++i) step<<<3, 128, 0, stream>>>(n, x);
  CHECK(cudaEventRecord(done, stream));
  CHECK(cudaStreamWaitEvent(nullptr, done, 0));
  CHECK(cudaMalloc(&y, n * sizeof(double)));
  CHECK(cudaMemcpyAsync(y, x, n * sizeof(double), cudaMemcpyDeviceToDevice));
  step<<<3, 128>>>(n, y);
  CHECK(cudaMemcpy(host.data(), y, n * sizeof(double), cudaMemcpyDeviceToHost));
  for (const double value : host) EXPECT(value == 2.0);
  CHECK(cudaLaunchHostFunc(
      stream, [](void* counter) { ++*static_cast<std::atomic<int>*>(counter); }, ended));
  CHECK(cudaFreeAsync(x, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaFree(y));
  CHECK(cudaStreamDestroy(stream));
}

int main() {
  std::atomic<int> ended{0};
  // One after the other: of launches side by side some may have no count of their own.
  std::thread(work, &ended).join();
  work(&ended);
  CHECK(cudaDeviceSynchronize());
  EXPECT(ended == 2);
}
