// Kernels whose operations are known, compiled for this GPU alone. Arithmetic is written as
// intrinsics or inline PTX, so that the compiler neither fuses nor splits it.
#include <cuda_fp16.h>

#include <cstdint>

#include "cases.h"

using gputest::device_array;
using gputest::field;
using gputest::run_case;

namespace {

constexpr int kRepeats = 48;  // enough for every counter group to be sampled a few times

__global__ void axpy(int n, float a, const float* x, float* y) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = __fmaf_rn(a, x[i], y[i]);
}

// Chains of one operation; the number of steps is not known to the compiler. Others, and products,
// are in tools/known_kernels.
__global__ void half_chain(int steps, __half a, __half b, __half* out) {
  __half x = out[threadIdx.x];
  for (int i = 0; i < steps; ++i) x = __hfma(x, a, b);
  out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
// exp2 on the special-function unit, nothing else: it counts no FLOP.
__global__ void special_chain(int steps, float* out) {
  float x = out[threadIdx.x];
  for (int i = 0; i < steps; ++i) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
  out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

template <class T>
__device__ T multiply_add(T a, T b, T c);
template <>
__device__ float multiply_add(float a, float b, float c) {
  return __fmaf_rn(a, b, c);
}
template <>
__device__ double multiply_add(double a, double b, double c) {
  return __fma_rn(a, b, c);
}
// One thread per element of the m x n result.
template <class T>
__global__ void naive_product(int m, int n, int k, const T* a, const T* b, T* c) {
  const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int row = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  if (row >= m || column >= n) return;
  T sum = 0;
  for (int i = 0; i < k; ++i) sum = multiply_add(a[row * k + i], b[i * n + column], sum);
  c[row * n + column] = sum;
}

// mma.sp: fp16, 16x8x32 of which half of a's elements are stored.
__global__ void sparse_product(int steps, float* out) {
#if __CUDA_ARCH__ >= 800
  float d[4] = {};
  const uint32_t zero = 0, pattern = 0x44444444;  // elements 0 and 1 of every four
  for (int i = 0; i < steps; ++i)
    asm volatile(
#if __CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 5)
        "mma.sp::ordered_metadata"
#else
        "mma.sp"
#endif
        ".sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4,%4,%4}, {%0,%1,%2,%3}, %5, 0x0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(zero), "r"(pattern));
  out[blockIdx.x * blockDim.x + threadIdx.x] = d[0];
#endif
}

constexpr int kBlocks = 132, kThreads = 128, kSteps = 500;
constexpr int kWarps = kBlocks * kThreads / 32;

template <class Kernel, class... Arguments>
void chain(const char* name, const char* kind, Kernel kernel, Arguments... arguments) {
  run_case(name, kind, field("threads", kBlocks * kThreads) + ", " + field("steps", kSteps),
           kRepeats, [&] { kernel<<<kBlocks, kThreads>>>(kSteps, arguments...); });
}

template <class T>
void naive(const char* name, const char* kind, int m, int n, int k) {
  T *a = device_array<T>(static_cast<size_t>(m) * k),
    *b = device_array<T>(static_cast<size_t>(k) * n),
    *c = device_array<T>(static_cast<size_t>(m) * n);
  const dim3 block(32, 8), grid((n + 31) / 32, (m + 7) / 8);
  run_case(name, kind,
           field("m", m) + ", " + field("n", n) + ", " + field("k", k) + ", " +
               field("threads", static_cast<long long>(grid.x) * grid.y * 256),
           kRepeats, [&] { naive_product<T><<<grid, block>>>(m, n, k, a, b, c); });
}

}  // namespace

int main() {
  cudaDeviceProp gpu{};
  gputest::check(cudaGetDeviceProperties(&gpu, 0), "cudaGetDeviceProperties");
  auto* scratch = device_array<float>(1 << 22);

  // ncu reads the first ones (ncu.py).
  if (gpu.major >= 8)
    run_case("sparse_fp16", "sparse_fp16",
             field("tile_operations", 2 * 16 * 8 * 32) + ", " + field("tiles", kWarps * kSteps) +
                 ", " + field("threads", kBlocks * kThreads),
             kRepeats, [&] { sparse_product<<<kBlocks, kThreads>>>(kSteps, scratch); });
  chain("scalar_half", "half_chain", half_chain, __float2half(0.5f), __float2half(1.0f),
        reinterpret_cast<__half*>(scratch));
  const int n = (1 << 20) + 3;  // the last block is not full
  const auto* x = device_array<float>(n);
  auto* y = device_array<float>(n);
  run_case("axpy", "axpy", field("n", n) + ", " + field("threads", (n + 255) / 256 * 256LL),
           kRepeats, [&] { axpy<<<(n + 255) / 256, 256>>>(n, 2.0f, x, y); });
  chain("special_function", "special_chain", special_chain, scratch);
  naive<float>("naive_sgemm", "product_fp32", 253, 189, 317);
  naive<double>("naive_dgemm", "product_fp64", 253, 189, 317);
  return 0;
}
