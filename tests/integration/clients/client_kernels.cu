// Kernels of the test clients, with counts that are plain to see.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

namespace wmma = nvcuda::wmma;

#define KERNEL extern "C" __global__ void

// n fused multiply-adds: 2n FLOP.
KERNEL axpy(int n, float a, const float* x, float* y) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = fmaf(a, x[i], y[i]);
}

// One block of one thread, k fused multiply-adds: the work is in no grid.
KERNEL dot(int k, const float* x, float* y) {
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) sum = fmaf(x[0], x[0], sum);
  y[0] = sum;
}

static __device__ void wait_while(const unsigned* flag, unsigned value) {
  while (*static_cast<const volatile unsigned*>(flag) == value) __nanosleep(1000);
}

// One thread that runs until the word is no longer `value`; no FLOP.
KERNEL wait_for_flag(const unsigned* flag, unsigned value) { wait_while(flag, value); }

// The same under a name that says nothing of waiting.
KERNEL spin(const unsigned* flag, unsigned value) { wait_while(flag, value); }

// As many multiply-adds as the data say: no parameter tells.
KERNEL data_dependent(const int* k, float* y) {
  float sum = 0.0f;
  for (int i = 0; i < k[0]; ++i) sum = fmaf(sum, sum, sum);
  y[0] = sum;
}

// n additions in double, n half2 multiply-adds (4 FLOP each, one packed instruction).
KERNEL mixed_precision(int n, double* d, __half2* h) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  d[i] = __dadd_rn(d[i], d[i]);
  h[i] = __hfma2(h[i], h[i], h[i]);
}

// How a type is stored, and the name and depth that wmma has for it.
template <class T>
struct Source {
  using Name = T;
  static constexpr int kDepth = 16;
  static __device__ T narrow(float value) { return static_cast<T>(value); }
};
template <>
struct Source<float> {
  using Name = wmma::precision::tf32;
  static constexpr int kDepth = 8;
  static __device__ float narrow(float value) { return wmma::__float_to_tf32(value); }
};

// C = A * B, row-major, m x n and k deep. One warp for each 16 x 16 tile of C; tiles over the edge
// are padded with zeros, and counted: 2 * 16^3 FLOP for each tile and depth of 16.
template <class T>
static __device__ void tiled_product(int m, int n, int k, const float* a, const float* b,
                                     float* c) {
  extern __shared__ __align__(32) unsigned char shared[];
  T* const left = reinterpret_cast<T*>(shared);
  T* const right = left + 256;
  float* const sum = reinterpret_cast<float*>(right + 256);
  const int lane = static_cast<int>(threadIdx.x);
  const int row = static_cast<int>(blockIdx.y) * 16;
  const int column = static_cast<int>(blockIdx.x) * 16;
  constexpr int kDepth = Source<T>::kDepth;
  using Name = typename Source<T>::Name;
  wmma::fragment<wmma::accumulator, 16, 16, kDepth, float> tile;
  wmma::fill_fragment(tile, 0.0f);
  for (int depth = 0; depth < k; depth += 16) {
    for (int i = lane; i < 256; i += 32) {
      const int x = i % 16, y = i / 16;
      float l = 0.0f, r = 0.0f;
      if (row + y < m && depth + x < k) l = a[(row + y) * k + depth + x];
      if (depth + y < k && column + x < n) r = b[(depth + y) * n + column + x];
      left[i] = Source<T>::narrow(l);
      right[i] = Source<T>::narrow(r);
    }
    __syncthreads();
    for (int part = 0; part < 16; part += kDepth) {
      wmma::fragment<wmma::matrix_a, 16, 16, kDepth, Name, wmma::row_major> rows;
      wmma::fragment<wmma::matrix_b, 16, 16, kDepth, Name, wmma::row_major> columns;
      wmma::load_matrix_sync(rows, left + part, 16);
      wmma::load_matrix_sync(columns, right + part * 16, 16);
      wmma::mma_sync(tile, rows, columns, tile);
    }
    __syncthreads();
  }
  wmma::store_matrix_sync(sum, tile, 16, wmma::mem_row_major);
  __syncthreads();
  for (int i = lane; i < 256; i += 32)
    if (row + i / 16 < m && column + i % 16 < n) c[(row + i / 16) * n + column + i % 16] = sum[i];
}
KERNEL product_fp16(int m, int n, int k, const float* a, const float* b, float* c) {
  tiled_product<__half>(m, n, k, a, b, c);
}
KERNEL product_bf16(int m, int n, int k, const float* a, const float* b, float* c) {
  tiled_product<__nv_bfloat16>(m, n, k, a, b, c);
}
KERNEL product_tf32(int m, int n, int k, const float* a, const float* b, float* c) {
  tiled_product<float>(m, n, k, a, b, c);
}

// y = A x for an n x n matrix, one thread for each row: 2n^2 - n FLOP.
KERNEL matrix_vector(int n, const float* a, const float* x, float* y) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= n) return;
  float sum = a[row * n] * x[0];
  for (int i = 1; i < n; ++i) sum = sum + a[row * n + i] * x[i];
  y[row] = sum;
}

// A = x y^T, one thread for each row: n^2 FLOP.
KERNEL outer_product(int n, const float* x, const float* y, float* a) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= n) return;
  for (int i = 0; i < n; ++i) a[row * n + i] = x[row] * y[i];
}

// The sum of each row: n^2 - n FLOP.
KERNEL row_sum(int n, const float* a, float* y) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= n) return;
  float sum = a[row * n];
  for (int i = 1; i < n; ++i) sum = sum + a[row * n + i];
  y[row] = sum;
}

// Named as a collective is: it must never be measured.
KERNEL ncclDevKernel_AllReduce_Sum_f32_RING_LL(int n, float* y) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = __fadd_rn(y[i], y[i]);
}
