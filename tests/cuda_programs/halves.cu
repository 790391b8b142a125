// Half precision: an instruction of one value counts half of what one of two does.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "check.h"

constexpr int kThreads = 201;  // odd: no even number of operations hides half of one

__global__ void halves(__half* x, __half2* pairs, __nv_bfloat16* y) {
  const int i = static_cast<int>(threadIdx.x);
  x[i] = __hfma(x[i], x[i], x[i]);                   // 2
  pairs[i] = __hfma2(pairs[i], pairs[i], pairs[i]);  // 4
  y[i] = __hmul_rn(__hadd_rn(y[i], y[i]), y[i]);     // 2
}

int main() {
  __half* x;
  __half2* pairs;
  __nv_bfloat16* y;
  CHECK(cudaMallocManaged(&x, kThreads * sizeof *x));
  CHECK(cudaMallocManaged(&pairs, kThreads * sizeof *pairs));
  CHECK(cudaMallocManaged(&y, kThreads * sizeof *y));
  for (int i = 0; i < kThreads; ++i) {
    x[i] = __float2half(2);
    pairs[i] = __floats2half2_rn(2, 3);
    y[i] = __float2bfloat16(3);
  }
  halves<<<1, kThreads>>>(x, pairs, y);
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < kThreads; ++i) {
    EXPECT(__half2float(x[i]) == 6);
    EXPECT(__low2float(pairs[i]) == 6 && __high2float(pairs[i]) == 12);
    EXPECT(__bfloat162float(y[i]) == 18);
  }
}
