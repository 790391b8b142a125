// Another module with a kernel of the same name and parameters as one of client_kernels, that does
// other work; and one with parameters that never repeat.
#include <simgpu/kernel.h>

// k multiply-adds and k additions: 3k FLOP.
GPU_KERNEL dot(int k, gpu::ptr<const gpu::f32> x, gpu::ptr<gpu::f32> y) {
  gpu::f32 sum = 0.0f;
  for (int i = 0; i < k; ++i) sum = gpu::fma(gpu::f32(x[0]), gpu::f32(x[0]), sum) + gpu::f32(x[0]);
  y[0] = sum;
}

// Ten multiply-adds and no parameters: 20 FLOP.
GPU_KERNEL ten() {
  gpu::f32 sum = 1.0f;
  for (int i = 0; i < 10; ++i) sum = gpu::fma(sum, sum, sum);
}

// n additions, whatever seed and step are.
GPU_KERNEL dropout(int n, unsigned long long seed, int step, gpu::ptr<gpu::f32> x) {
  const int i = static_cast<int>(gpu::block_index().x * gpu::block_dim().x + gpu::thread_index().x);
  if (i < n)
    x[i] = gpu::f32(x[i]) + gpu::f32((seed + static_cast<unsigned>(step)) % 2 == 0 ? 1.0f : 0.0f);
}
#if !defined(__CUDACC__) || defined(__CUDACC_RDC__)
// No FLOP: takes one off the counter, and conditional nodes go on until it is 0.
GPU_KERNEL count_down(unsigned long long condition, gpu::ptr<int> counter) {
  const int left = counter[0] - 1;
  counter[0] = left;
  gpu::set_condition(condition, left > 0 ? 1 : 0);
}
#endif

GPU_MODULE_BEGIN
GPU_EXPORT(dot)
GPU_EXPORT(ten)
#if !defined(__CUDACC__) || defined(__CUDACC_RDC__)
GPU_EXPORT(count_down)
#endif
GPU_EXPORT(dropout)
GPU_MODULE_END
