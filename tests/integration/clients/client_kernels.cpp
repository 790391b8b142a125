// Kernels of the test clients, with counts that are plain to see.
#include <simgpu/kernel.h>

// n fused multiply-adds: 2n FLOP.
GPU_KERNEL axpy(int n, gpu::f32 a, gpu::ptr<const gpu::f32> x, gpu::ptr<gpu::f32> y) {
  const int i = static_cast<int>(gpu::block_index().x * gpu::block_dim().x + gpu::thread_index().x);
  if (i < n) y[i] = gpu::fma(a, gpu::f32(x[i]), gpu::f32(y[i]));
}

// One block of one thread, k fused multiply-adds: the work is in no grid.
GPU_KERNEL dot(int k, gpu::ptr<const gpu::f32> x, gpu::ptr<gpu::f32> y) {
  gpu::f32 sum = 0.0f;
  for (int i = 0; i < k; ++i) sum = gpu::fma(gpu::f32(x[0]), gpu::f32(x[0]), sum);
  y[0] = sum;
}

// One thread that runs until the word is no longer `value`; no FLOP.
GPU_KERNEL wait_for_flag(gpu::ptr<const unsigned> flag, unsigned value) {
  gpu::wait_while(flag, value);
}

// The same under a name that says nothing of waiting.
GPU_KERNEL spin(gpu::ptr<const unsigned> flag, unsigned value) { gpu::wait_while(flag, value); }

// As many multiply-adds as the data say: no parameter tells.
GPU_KERNEL data_dependent(gpu::ptr<const int> k, gpu::ptr<gpu::f32> y) {
  gpu::f32 sum = 0.0f;
  for (int i = 0; i < k[0]; ++i) sum = gpu::fma(sum, sum, sum);
  y[0] = sum;
}

// n additions in double, n half2 multiply-adds (4 FLOP each, one packed instruction).
GPU_KERNEL mixed_precision(int n, gpu::ptr<gpu::f64> d, gpu::ptr<gpu::f16x2> h) {
  const int i = static_cast<int>(gpu::block_index().x * gpu::block_dim().x + gpu::thread_index().x);
  if (i >= n) return;
  d[i] = gpu::f64(d[i]) + gpu::f64(d[i]);
  h[i] = gpu::fma(gpu::f16x2(h[i]), gpu::f16x2(h[i]), gpu::f16x2(h[i]));
}

// C = A * B, row-major, m x n and k deep. One warp for each 16 x 16 tile of C; tiles over the edge
// are padded with zeros, and counted: 2 * 16^3 FLOP for each tile and depth of 16.
template <class T>
GPU_DEVICE void tiled_product(int m, int n, int k, gpu::ptr<const gpu::f32> a,
                              gpu::ptr<const gpu::f32> b, gpu::ptr<gpu::f32> c) {
  T* const left = gpu::shared<T>();
  T* const right = left + 256;
  gpu::f32* const sum = reinterpret_cast<gpu::f32*>(right + 256);
  const int lane = static_cast<int>(gpu::thread_index().x);
  const int row = static_cast<int>(gpu::block_index().y) * 16;
  const int column = static_cast<int>(gpu::block_index().x) * 16;
  for (int i = lane; i < 256; i += 32) sum[i] = 0.0f;
  for (int depth = 0; depth < k; depth += 16) {
    for (int i = lane; i < 256; i += 32) {
      const int x = i % 16, y = i / 16;
      gpu::f32 l = 0.0f, r = 0.0f;
      if (row + y < m && depth + x < k) l = a[(row + y) * k + depth + x];
      if (depth + y < k && column + x < n) r = b[(depth + y) * n + column + x];
      left[i] = gpu::narrow<T>(l);
      right[i] = gpu::narrow<T>(r);
    }
    gpu::sync();
    gpu::mma<T>(left, right, sum);
    gpu::sync();
  }
  for (int i = lane; i < 256; i += 32)
    if (row + i / 16 < m && column + i % 16 < n) c[(row + i / 16) * n + column + i % 16] = sum[i];
}
GPU_KERNEL product_fp16(int m, int n, int k, gpu::ptr<const gpu::f32> a, gpu::ptr<const gpu::f32> b,
                        gpu::ptr<gpu::f32> c) {
  tiled_product<gpu::f16>(m, n, k, a, b, c);
}
GPU_KERNEL product_bf16(int m, int n, int k, gpu::ptr<const gpu::f32> a, gpu::ptr<const gpu::f32> b,
                        gpu::ptr<gpu::f32> c) {
  tiled_product<gpu::bf16>(m, n, k, a, b, c);
}
GPU_KERNEL product_tf32(int m, int n, int k, gpu::ptr<const gpu::f32> a, gpu::ptr<const gpu::f32> b,
                        gpu::ptr<gpu::f32> c) {
  tiled_product<gpu::tf32>(m, n, k, a, b, c);
}

// y = A x for an n x n matrix, one thread for each row: 2n^2 - n FLOP.
GPU_KERNEL matrix_vector(int n, gpu::ptr<const gpu::f32> a, gpu::ptr<const gpu::f32> x,
                         gpu::ptr<gpu::f32> y) {
  const int row =
      static_cast<int>(gpu::block_index().x * gpu::block_dim().x + gpu::thread_index().x);
  if (row >= n) return;
  gpu::f32 sum = gpu::f32(a[row * n]) * gpu::f32(x[0]);
  for (int i = 1; i < n; ++i) sum = sum + gpu::f32(a[row * n + i]) * gpu::f32(x[i]);
  y[row] = sum;
}

// A = x y^T, one thread for each row: n^2 FLOP.
GPU_KERNEL outer_product(int n, gpu::ptr<const gpu::f32> x, gpu::ptr<const gpu::f32> y,
                         gpu::ptr<gpu::f32> a) {
  const int row =
      static_cast<int>(gpu::block_index().x * gpu::block_dim().x + gpu::thread_index().x);
  if (row >= n) return;
  for (int i = 0; i < n; ++i) a[row * n + i] = gpu::f32(x[row]) * gpu::f32(y[i]);
}

// The sum of each row: n^2 - n FLOP.
GPU_KERNEL row_sum(int n, gpu::ptr<const gpu::f32> a, gpu::ptr<gpu::f32> y) {
  const int row =
      static_cast<int>(gpu::block_index().x * gpu::block_dim().x + gpu::thread_index().x);
  if (row >= n) return;
  gpu::f32 sum = a[row * n];
  for (int i = 1; i < n; ++i) sum = sum + gpu::f32(a[row * n + i]);
  y[row] = sum;
}

// Named as a collective is: it must never be measured.
GPU_KERNEL ncclDevKernel_AllReduce_Sum_f32_RING_LL(int n, gpu::ptr<gpu::f32> y) {
  const int i = static_cast<int>(gpu::block_index().x * gpu::block_dim().x + gpu::thread_index().x);
  if (i < n) y[i] = gpu::f32(y[i]) + gpu::f32(y[i]);
}

GPU_MODULE_BEGIN
GPU_EXPORT(axpy)
GPU_EXPORT(dot)
GPU_EXPORT(wait_for_flag)
GPU_EXPORT(spin)
GPU_EXPORT(data_dependent)
GPU_EXPORT(mixed_precision)
GPU_EXPORT_SYNC(product_fp16)
GPU_EXPORT_SYNC(product_bf16)
GPU_EXPORT_SYNC(product_tf32)
GPU_EXPORT(matrix_vector)
GPU_EXPORT(outer_product)
GPU_EXPORT(row_sum)
GPU_EXPORT(ncclDevKernel_AllReduce_Sum_f32_RING_LL)
GPU_MODULE_END
