// Kernels whose counts can be worked out by hand.
#include <simgpu/kernel.h>

GPU_KERNEL axpy(int n, gpu::f32 a, gpu::ptr<const gpu::f32> x, gpu::ptr<gpu::f32> y) {
  const int i = gpu::block_index().x * gpu::block_dim().x + gpu::thread_index().x;
  if (i < n) y[i] = gpu::fma(a, x[i], y[i]);
}

// Separate multiply and add; double precision.
GPU_KERNEL daxpy_unfused(int n, gpu::f64 a, gpu::ptr<const gpu::f64> x, gpu::ptr<gpu::f64> y) {
  const int i = gpu::block_index().x * gpu::block_dim().x + gpu::thread_index().x;
  if (i < n) y[i] = a * x[i] + y[i];
}

GPU_KERNEL half2_axpy(int pairs, gpu::f16x2 a, gpu::ptr<const gpu::f16x2> x,
                      gpu::ptr<gpu::f16x2> y) {
  const int i = gpu::block_index().x * gpu::block_dim().x + gpu::thread_index().x;
  if (i < pairs) y[i] = gpu::fma(a, x[i], y[i]) + gpu::f16x2(x[i]) * a;
}

// C = A B, row-major, one thread per element.
GPU_KERNEL matmul(int m, int n, int k, gpu::ptr<const gpu::f32> a, gpu::ptr<const gpu::f32> b,
                  gpu::ptr<gpu::f32> c) {
  const int row = gpu::block_index().y * gpu::block_dim().y + gpu::thread_index().y;
  const int col = gpu::block_index().x * gpu::block_dim().x + gpu::thread_index().x;
  if (row >= m || col >= n) return;
  gpu::f32 sum = 0.0f;
  for (int i = 0; i < k; ++i) sum = gpu::fma(a[row * k + i], b[i * n + col], sum);
  c[row * n + col] = sum;
}

// Sum of each block's elements by a tree in shared memory, then one atomic add per block.
GPU_KERNEL reduce(gpu::ptr<const gpu::f32> x, gpu::ptr<gpu::f32> total) {
  gpu::f32* shared = gpu::shared<gpu::f32>();
  const unsigned t = gpu::thread_index().x;
  shared[t] = x[gpu::block_index().x * gpu::block_dim().x + t];
  gpu::sync();
  for (unsigned half = gpu::block_dim().x / 2; half > 0; half /= 2) {
    if (t < half) shared[t] += shared[t + half];
    gpu::sync();
  }
  if (t == 0) gpu::atomic_add(total, shared[0]);
}

// Threads leave at different barriers.
GPU_KERNEL staggered_exit(gpu::ptr<int> order) {
  const int t = static_cast<int>(gpu::thread_index().x);
  for (int i = 0; i < t; ++i) gpu::sync();
  order[t] = gpu::atomic_add(order + gpu::block_dim().x, 1);
}

// Declared as if it had no barrier.
GPU_KERNEL undeclared_sync(gpu::ptr<int> out) {
  gpu::sync();
  out[0] = 1;
}

struct Mixed {
  char tag;
  double value;
};
GPU_KERNEL mixed_params(char c, double d, short s, gpu::ptr<gpu::f64> out, Mixed m, gpu::f16 h,
                        int n) {
  out[0] = gpu::f64(static_cast<double>(c));
  out[1] = gpu::f64(d);
  out[2] = gpu::f64(static_cast<double>(s));
  out[3] = gpu::f64(static_cast<double>(m.tag));
  out[4] = gpu::f64(m.value);
  out[5] = gpu::f64(h);
  out[6] = gpu::f64(n);
}

GPU_KERNEL nothing() {}

// Every index of the launch, to see that each thread runs once and knows itself.
GPU_KERNEL indices(gpu::ptr<unsigned> out) {
  const auto t = gpu::thread_index(), b = gpu::block_index();
  const auto bd = gpu::block_dim(), gd = gpu::grid_dim();
  const unsigned block = (b.z * gd.y + b.y) * gd.x + b.x;
  const unsigned thread = (t.z * bd.y + t.y) * bd.x + t.x;
  out[block * bd.x * bd.y * bd.z + thread] += block * 1000 + thread;
}

GPU_KERNEL add_one(gpu::ptr<int> x) { x[0] += 1; }
GPU_KERNEL twice(gpu::ptr<int> x) { x[0] *= 2; }

GPU_MODULE_BEGIN
GPU_EXPORT(axpy)
GPU_EXPORT(daxpy_unfused)
GPU_EXPORT(half2_axpy)
GPU_EXPORT(matmul)
GPU_EXPORT_SYNC(reduce)
GPU_EXPORT_SYNC(staggered_exit)
GPU_EXPORT(undeclared_sync)
GPU_EXPORT(mixed_params)
GPU_EXPORT(nothing)
GPU_EXPORT(indices)
GPU_EXPORT(add_one)
GPU_EXPORT(twice)
GPU_MODULE_END
