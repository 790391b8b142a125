// What PTX counts nothing for, and machine code makes several instructions of.
#include "check.h"

constexpr int kThreads = 99;

__global__ void divisions(float* x, double* y, float* sum) {
  __shared__ float shared;
  const int i = static_cast<int>(threadIdx.x);
  if (i == 0) shared = 0;
  __syncthreads();
  x[i] = 6 / x[i];
  y[i] = sqrt(y[i]);
  const float angle = x[i];
  x[i] = __sinf(angle) * __cosf(angle);  // a product; both functions share one of machine code
  atomicAdd(&shared, 1.0f);
  __syncthreads();
  if (i == 0) *sum = shared;
}

int main() {
  float *x, *sum;
  double* y;
  CHECK(cudaMallocManaged(&x, kThreads * sizeof *x));
  CHECK(cudaMallocManaged(&y, kThreads * sizeof *y));
  CHECK(cudaMallocManaged(&sum, sizeof *sum));
  for (int i = 0; i < kThreads; ++i) x[i] = 2, y[i] = 9;
  divisions<<<1, kThreads>>>(x, y, sum);
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < kThreads; ++i) {
    EXPECT(x[i] < -0.1396f && x[i] > -0.1398f);  // sin(6) / 2
    EXPECT(y[i] == 3);
  }
  EXPECT(*sum == kThreads);
}
