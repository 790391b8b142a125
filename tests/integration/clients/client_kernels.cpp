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

// Named as a collective is: it must never be measured.
GPU_KERNEL ncclDevKernel_AllReduce_Sum_f32_RING_LL(int n, gpu::ptr<gpu::f32> y) {
  const int i = static_cast<int>(gpu::block_index().x * gpu::block_dim().x + gpu::thread_index().x);
  if (i < n) y[i] = gpu::f32(y[i]) + gpu::f32(y[i]);
}

GPU_MODULE_BEGIN
GPU_EXPORT(axpy)
GPU_EXPORT(dot)
GPU_EXPORT(data_dependent)
GPU_EXPORT(mixed_precision)
GPU_EXPORT(ncclDevKernel_AllReduce_Sum_f32_RING_LL)
GPU_MODULE_END
