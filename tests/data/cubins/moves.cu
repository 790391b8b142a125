// Instructions that the counters of floating-point instructions hold, with and without arithmetic.
#include <cuda_fp16.h>

// fp32 alone: ptxas loads its constants, and clears its sum, with HFMA2 where it likes.
extern "C" __global__ void sgemm(const float* a, const float* b, float* c, int n) {
  __shared__ float as[16][16], bs[16][16];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  float sum = 0;
  for (int t = 0; t < n / 16; ++t) {
    as[y][x] = a[row * n + t * 16 + x];
    bs[y][x] = b[(t * 16 + y) * n + column];
    __syncthreads();
    for (int k = 0; k < 16; ++k) sum += as[y][k] * bs[k][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}
// Conversions between half and float are sums with -0.
extern "C" __global__ void half_to_float(const __half* h, float* f, __half* g) {
  const int i = threadIdx.x;
  f[i] = __half2float(h[i]) * 3.0f;
  g[i] = __float2half(f[i + 64]);
}
extern "C" __global__ void half_products(__half2* p, __half2 a) {
  p[threadIdx.x] = __hmul2(p[threadIdx.x], a);
}
extern "C" __global__ void half_multiply_adds(__half2* p, __half2 a, __half2 b, int n) {
  __half2 x = p[threadIdx.x];
  for (int i = 0; i < n; ++i) x = __hfma2(x, a, b);
  p[threadIdx.x] = x;
}
// A multiply-add, a sum that may be written as one, and a constant.
extern "C" __global__ void half_mixed(__half2* p, __half2 a, float* f, int n) {
  const int i = threadIdx.x;
  p[i] = __hfma2(p[i], a, __float2half2_rn(2.0f));
  p[i + 64] = __hadd2(p[i + 64], a);
  f[i] = n > 7 ? 3.5f : n > 3 ? 1.25f : expf(f[i]);
}
extern "C" __global__ void signs(float* f, double* d) {
  const int i = threadIdx.x;
  f[i] = -f[i];
  f[i + 64] = fabsf(f[i + 64]);
  d[i] = -d[i];
}
extern "C" __global__ void sums(float* f, double* d) {
  const int i = threadIdx.x;
  f[i] += f[i + 64];
  d[i] = d[i] * d[i + 64] + d[i + 128];
}
