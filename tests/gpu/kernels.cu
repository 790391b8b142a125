// Kernels whose operations are known to the last one. Arithmetic is written as intrinsics or inline
// PTX, so that the compiler neither fuses nor splits it.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdint>
#include <type_traits>

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

// Chains of one operation; the number of steps is not known to the compiler.
__global__ void add_chain(int steps, float a, float* out) {
  float x = static_cast<float>(threadIdx.x);
  for (int i = 0; i < steps; ++i) x = __fadd_rn(x, a);
  out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
__global__ void multiply_chain(int steps, float a, float* out) {
  float x = static_cast<float>(threadIdx.x);
  for (int i = 0; i < steps; ++i) x = __fmul_rn(x, a);
  out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
__global__ void packed_half_chain(int steps, __half2 a, __half2 b, __half2* out) {
  __half2 x = out[threadIdx.x];
  for (int i = 0; i < steps; ++i) x = __hfma2(x, a, b);
  out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
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

// Every warp multiplies one tile with itself `steps` times.
template <class Operand, class Sum, int M, int N, int K>
__global__ void warp_product(int steps, Sum* out) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, M, N, K, Operand, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, M, N, K, Operand, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, M, N, K, Sum> sum;
  // Zero bits in every format: nothing is converted, so no arithmetic but the products is executed.
  for (auto& x : a.x) x = std::remove_reference_t<decltype(x)>{};
  for (auto& x : b.x) x = std::remove_reference_t<decltype(x)>{};
  for (auto& x : sum.x) x = std::remove_reference_t<decltype(x)>{};
  for (int i = 0; i < steps; ++i) wmma::mma_sync(sum, a, b, sum);
  const int warp = static_cast<int>((blockIdx.x * blockDim.x + threadIdx.x) / 32);
  wmma::store_matrix_sync(out + warp * M * N, sum, N, wmma::mem_row_major);
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

// mma.sync m16n8k32, fp8 (e4m3).
__global__ void fp8_product(int steps, float* out) {
#if __CUDA_ARCH__ >= 890
  float d[4] = {};
  const uint32_t zero = 0;
  for (int i = 0; i < steps; ++i)
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
        "{%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(zero));
  out[blockIdx.x * blockDim.x + threadIdx.x] = d[0];
#endif
}

// wgmma m64n16, both operands in shared memory, one warpgroup per block. A row of either operand is
// 32 bytes in every format.
enum class Wgmma { kFp16, kBf16, kTf32, kFp8, kInt8 };
constexpr int kWgmmaRowBytes = 32;

template <Wgmma kFormat, class Sum>
__device__ void warpgroup_step(Sum (&d)[8], uint64_t a, uint64_t b) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define FLOPINJ_WGMMA(FORMAT, TRANSPOSED, REGISTER)                                              \
  asm volatile("wgmma.mma_async.sync.aligned." FORMAT                                            \
               " {%0,%1,%2,%3,%4,%5,%6,%7}, %8, %9, 1" TRANSPOSED ";"                            \
               : "+" REGISTER(d[0]), "+" REGISTER(d[1]), "+" REGISTER(d[2]), "+" REGISTER(d[3]), \
                 "+" REGISTER(d[4]), "+" REGISTER(d[5]), "+" REGISTER(d[6]), "+" REGISTER(d[7])  \
               : "l"(a), "l"(b))
  if constexpr (kFormat == Wgmma::kFp16)
    FLOPINJ_WGMMA("m64n16k16.f32.f16.f16", ", 1, 1, 0, 0", "f");
  else if constexpr (kFormat == Wgmma::kBf16)
    FLOPINJ_WGMMA("m64n16k16.f32.bf16.bf16", ", 1, 1, 0, 0", "f");
  else if constexpr (kFormat == Wgmma::kTf32)
    FLOPINJ_WGMMA("m64n16k8.f32.tf32.tf32", ", 1, 1", "f");
  else if constexpr (kFormat == Wgmma::kFp8)
    FLOPINJ_WGMMA("m64n16k32.f32.e4m3.e4m3", ", 1, 1", "f");
  else
    FLOPINJ_WGMMA("m64n16k32.s32.s8.s8", "", "r");
#undef FLOPINJ_WGMMA
#endif
}

template <Wgmma kFormat, class Sum>
__global__ void warpgroup_product(int steps, Sum* out) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  __shared__ alignas(128) uint32_t tile[(64 + 16) * kWgmmaRowBytes / 4];
  for (int i = static_cast<int>(threadIdx.x); i < (64 + 16) * kWgmmaRowBytes / 4;
       i += static_cast<int>(blockDim.x))
    tile[i] = 0;
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  // A matrix descriptor without swizzle: address, leading and stride offsets in 16 bytes.
  const auto describe = [](const void* p) {
    const uint64_t address = __cvta_generic_to_shared(p);
    return ((address & 0x3ffff) >> 4) | (uint64_t{8} << 16) | (uint64_t{16} << 32);
  };
  const uint64_t a = describe(tile), b = describe(tile + 64 * kWgmmaRowBytes / 4);
  Sum d[8] = {};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  for (int i = 0; i < steps; ++i) warpgroup_step<kFormat>(d, a, b);
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
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

// `launch` makes kSteps products of `size` multiply-adds in each of `groups` warps or warpgroups.
template <class Launch>
void tiles(const char* name, const char* kind, long long size, long long groups, Launch launch) {
  run_case(name, kind,
           field("tile_operations", 2 * size) + ", " + field("tiles", groups * kSteps) + ", " +
               field("threads", kBlocks * kThreads),
           kRepeats, launch);
}

template <class Operand, class Sum, int M, int N, int K>
void warp_tiles(const char* name, const char* kind, void* out) {
  tiles(name, kind, M * N * K, kWarps, [&] {
    warp_product<Operand, Sum, M, N, K><<<kBlocks, kThreads>>>(kSteps, static_cast<Sum*>(out));
  });
}

template <Wgmma kFormat, class Sum>
void warpgroup_tiles(const char* name, const char* kind, int operand_bytes, void* out) {
  tiles(name, kind, 64 * 16 * (kWgmmaRowBytes / operand_bytes), kBlocks,
        [&] { warpgroup_product<kFormat><<<kBlocks, kThreads>>>(kSteps, static_cast<Sum*>(out)); });
}

}  // namespace

int main() {
  using namespace nvcuda;
  cudaDeviceProp gpu{};
  gputest::check(cudaGetDeviceProperties(&gpu, 0), "cudaGetDeviceProperties");
  auto* scratch = device_array<float>(1 << 22);

  const int n = (1 << 20) + 3;  // the last block is not full
  const auto* x = device_array<float>(n);
  auto* y = device_array<float>(n);
  run_case("axpy", "axpy", field("n", n) + ", " + field("threads", (n + 255) / 256 * 256LL),
           kRepeats, [&] { axpy<<<(n + 255) / 256, 256>>>(n, 2.0f, x, y); });
  chain("fadd", "add_chain", add_chain, 0.5f, scratch);
  chain("fmul", "multiply_chain", multiply_chain, 1.0001f, scratch);
  chain("packed_half", "packed_half_chain", packed_half_chain, __floats2half2_rn(0.5f, 0.5f),
        __floats2half2_rn(1.0f, 1.0f), reinterpret_cast<__half2*>(scratch));
  chain("scalar_half", "half_chain", half_chain, __float2half(0.5f), __float2half(1.0f),
        reinterpret_cast<__half*>(scratch));
  chain("special_function", "special_chain", special_chain, scratch);
  naive<float>("naive_sgemm", "product_fp32", 253, 189, 317);
  naive<double>("naive_dgemm", "product_fp64", 253, 189, 317);

  warp_tiles<__half, float, 16, 16, 16>("wmma_fp16", "tiles_fp16", scratch);
  if (gpu.major * 10 + gpu.minor >= 72)
    warp_tiles<signed char, int, 16, 16, 16>("wmma_int8", "tiles_int8", scratch);
#if OLDEST_ARCHITECTURE >= 80  // the formats are not declared for older GPUs
  if (gpu.major >= 8) {
    warp_tiles<__nv_bfloat16, float, 16, 16, 16>("wmma_bf16", "tiles_bf16", scratch);
    warp_tiles<wmma::precision::tf32, float, 16, 16, 8>("wmma_tf32", "tiles_tf32", scratch);
    warp_tiles<double, double, 8, 8, 4>("wmma_fp64", "tiles_fp64", scratch);
  }
#endif
  if (gpu.major >= 8)
    tiles("sparse_fp16", "sparse_fp16", 16 * 8 * 32, kWarps,
          [&] { sparse_product<<<kBlocks, kThreads>>>(kSteps, scratch); });
  // Hopper and the large Blackwells have fp8 in wgmma and tcgen05 alone: ptxas 13.0 makes two fp16
  // instructions of this one there, as cuobjdump shows.
  const bool by_fp16 = gpu.major == 9 || gpu.major == 10;
  if (gpu.major * 10 + gpu.minor >= 89)
    tiles("mma_fp8", by_fp16 ? "tiles_fp16" : "tiles_fp8", 16 * 8 * 32, kWarps,
          [&] { fp8_product<<<kBlocks, kThreads>>>(kSteps, scratch); });
  if (gpu.major == 9) {
    warpgroup_tiles<Wgmma::kFp16, float>("wgmma_fp16", "tiles_fp16", 2, scratch);
    warpgroup_tiles<Wgmma::kBf16, float>("wgmma_bf16", "tiles_bf16", 2, scratch);
    warpgroup_tiles<Wgmma::kTf32, float>("wgmma_tf32", "tiles_tf32", 4, scratch);
    warpgroup_tiles<Wgmma::kFp8, float>("wgmma_fp8", "tiles_fp8", 1, scratch);
    warpgroup_tiles<Wgmma::kInt8, int>("wgmma_int8", "tiles_int8", 1, scratch);
  }
  return 0;
}
