// Kernels of instructions that every GPU since Volta has. All take a number of steps and memory,
// which is zero at first.
#include <cuda_fp16.h>
#include <mma.h>

#include <type_traits>

#define KERNEL extern "C" __global__ void
#define AT (blockIdx.x * blockDim.x + threadIdx.x)

// --- Chains of one operation, which the compiler can neither fuse nor split

KERNEL fadd_chain(int steps, float* out) {
  float x = out[AT];
  for (int i = 0; i < steps; ++i) x = __fadd_rn(x, 0.5f);
  out[AT] = x;
}
KERNEL fmul_chain(int steps, float* out) {
  float x = out[AT];
  for (int i = 0; i < steps; ++i) x = __fmul_rn(x, 0.5f);
  out[AT] = x;
}
KERNEL ffma_chain(int steps, float* out) {
  float x = out[AT];
  for (int i = 0; i < steps; ++i) x = __fmaf_rn(x, 0.5f, 0.5f);
  out[AT] = x;
}
KERNEL dfma_chain(int steps, double* out) {
  double x = out[AT];
  for (int i = 0; i < steps; ++i) x = __fma_rn(x, 0.5, 0.5);
  out[AT] = x;
}
KERNEL hfma2_chain(int steps, __half2* out) {
  __half2 x = out[AT];
  for (int i = 0; i < steps; ++i) x = __hfma2(x, x, x);
  out[AT] = x;
}

// --- Products of a warp: a tile with itself

KERNEL product_fp16(int steps, float* out) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, __half, row_major> a;
  fragment<matrix_b, 16, 16, 16, __half, col_major> b;
  fragment<accumulator, 16, 16, 16, float> sum;
  // Zero bits: nothing is converted.
  for (auto& x : a.x) x = std::remove_reference_t<decltype(x)>{};
  for (auto& x : b.x) x = std::remove_reference_t<decltype(x)>{};
  for (auto& x : sum.x) x = std::remove_reference_t<decltype(x)>{};
  for (int i = 0; i < steps; ++i) mma_sync(sum, a, b, sum);
  store_matrix_sync(out + AT / 32 * 256, sum, 16, mem_row_major);
}

// --- A block that takes all registers of a multiprocessor: 1,024 threads of 64

constexpr int kHeld = 48;
KERNEL __launch_bounds__(1024, 1) full_block(int steps, float* out) {
  float held[kHeld];
#pragma unroll
  for (int i = 0; i < kHeld; ++i) held[i] = __ldcv(&out[AT + i]);
  for (int step = 0; step < steps; ++step)
#pragma unroll
    for (int i = 0; i < kHeld; ++i) held[i] = __fmul_rn(held[i], held[(i + 1) % kHeld]);
#pragma unroll
  for (int i = 0; i < kHeld; ++i) __stcg(&out[AT + i], held[i]);
}

// --- Memory: a copy of 16 bytes by each thread and step

KERNEL copy(int steps, uint4* memory) {
  const unsigned threads = gridDim.x * blockDim.x;
  uint4* const to = memory + static_cast<size_t>(threads) * steps;
#pragma unroll 4
  for (int i = 0; i < steps; ++i) to[i * threads + AT] = memory[i * threads + AT];
}

// --- Runs until the host's flag is raised, and not much longer than so many microseconds

KERNEL wait_for_flag(int most, const volatile unsigned* flag) {
  for (int i = 0; i < most && *flag == 0; ++i) __nanosleep(1000);
}
