// Another module with a kernel of the same name and parameters as one of client_kernels, that does
// other work; and one with parameters that never repeat.
#include <simgpu/kernel.h>

// k multiply-adds and k additions: 3k FLOP.
GPU_KERNEL dot(int k, gpu::ptr<const gpu::f32> x, gpu::ptr<gpu::f32> y) {
  gpu::f32 sum = 0.0f;
  for (int i = 0; i < k; ++i) sum = gpu::fma(gpu::f32(x[0]), gpu::f32(x[0]), sum) + gpu::f32(x[0]);
  y[0] = sum;
}

// n additions, whatever seed and step are.
GPU_KERNEL dropout(int n, unsigned long long seed, int step, gpu::ptr<gpu::f32> x) {
  const int i = static_cast<int>(gpu::block_index().x * gpu::block_dim().x + gpu::thread_index().x);
  if (i < n)
    x[i] = gpu::f32(x[i]) + gpu::f32((seed + static_cast<unsigned>(step)) % 2 == 0 ? 1.0f : 0.0f);
}
GPU_MODULE_BEGIN
GPU_EXPORT(dot)
GPU_EXPORT(dropout)
GPU_MODULE_END
