// Kernels whose counts can be worked out by hand.
#include <cuda_fp16.h>

#define KERNEL extern "C" __global__ void

KERNEL axpy(int n, float a, const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = fmaf(a, x[i], y[i]);
}

// Separate multiply and add; double precision.
KERNEL daxpy_unfused(int n, double a, const double* x, double* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

KERNEL half2_axpy(int pairs, __half2 a, const __half2* x, __half2* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < pairs) y[i] = __hadd2_rn(__hfma2(a, x[i], y[i]), __hmul2_rn(x[i], a));
}

// C = A B, row-major, one thread per element.
KERNEL matmul(int m, int n, int k, const float* a, const float* b, float* c) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m || col >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) sum = fmaf(a[row * k + i], b[i * n + col], sum);
  c[row * n + col] = sum;
}

// Sum of each block's elements by a tree in shared memory, then one atomic add per block.
KERNEL reduce(const float* x, float* total) {
  extern __shared__ float shared[];
  const unsigned t = threadIdx.x;
  shared[t] = x[blockIdx.x * blockDim.x + t];
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (t < half) shared[t] += shared[t + half];
    __syncthreads();
  }
  if (t == 0) atomicAdd(total, shared[0]);
}

// Threads leave at different barriers.
KERNEL staggered_exit(int* order) {
  const int t = static_cast<int>(threadIdx.x);
  for (int i = 0; i < t; ++i) __syncthreads();
  order[t] = atomicAdd(order + blockDim.x, 1);
}

KERNEL traps() { __trap(); }

// What a block finds in shared memory.
KERNEL finds_shared(unsigned* out) {
  extern __shared__ float shared[];
  const auto* const words = reinterpret_cast<volatile unsigned*>(shared);
  out[blockIdx.x * blockDim.x + threadIdx.x] = words[threadIdx.x];
  shared[threadIdx.x] = 1.0f;
}

struct Mixed {
  char tag;
  double value;
};
KERNEL mixed_params(char c, double d, short s, double* out, Mixed m, __half h, int n) {
  out[0] = static_cast<double>(c);
  out[1] = d;
  out[2] = static_cast<double>(s);
  out[3] = static_cast<double>(m.tag);
  out[4] = m.value;
  out[5] = __half2float(h);
  out[6] = n;
}

KERNEL nothing() {}

// Every index of the launch, to see that each thread runs once and knows itself.
KERNEL indices(unsigned* out) {
  const auto t = threadIdx, b = blockIdx;
  const auto bd = blockDim, gd = gridDim;
  const unsigned block = (b.z * gd.y + b.y) * gd.x + b.x;
  const unsigned thread = (t.z * bd.y + t.y) * bd.x + t.x;
  out[block * bd.x * bd.y * bd.z + thread] += block * 1000 + thread;
}

KERNEL add_one(int* x) { x[0] += 1; }
KERNEL twice(int* x) { x[0] *= 2; }
