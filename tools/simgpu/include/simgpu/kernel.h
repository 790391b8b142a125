// One kernel source for a GPU (nvcc) and for simgpu (any C++20 compiler).
//
// Kernels are written with the types and functions of namespace gpu. For nvcc these are the plain
// CUDA ones; for simgpu they are scalars that count every add, multiply and fused multiply-add as
// it is executed. A source is compiled for a GPU with -fmad=false, so that a*b+c is two operations
// on both sides and gpu::fma is one.
//
//   #include <simgpu/kernel.h>
//   GPU_KERNEL axpy(int n, gpu::f32 a, gpu::ptr<const gpu::f32> x, gpu::ptr<gpu::f32> y) {
//     const int i = gpu::block_index().x * gpu::block_dim().x + gpu::thread_index().x;
//     if (i < n) y[i] = gpu::fma(a, gpu::f32(x[i]), gpu::f32(y[i]));
//   }
//   GPU_MODULE_BEGIN
//   GPU_EXPORT(axpy)
//   GPU_MODULE_END
//
// A kernel that calls gpu::sync() is exported with GPU_EXPORT_SYNC. Shared memory is dynamic only:
// gpu::shared<T>() is its base.
//
// gpu::set_condition(handle, value) is cudaGraphSetConditional, where nvcc compiles relocatable
// device code.
//
// gpu::wait_while(p, value) returns when another value is at `p`, which the host or another kernel
// writes.
//
// gpu::mma<T>(a, b, c) is c += a * b for 16 x 16 row-major tiles in shared memory, by a whole warp;
// T is gpu::f16, gpu::bf16 or gpu::tf32, c is gpu::f32. gpu::narrow<T>(x) makes its operands.
#pragma once

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#define GPU_KERNEL extern "C" __global__ void
#define GPU_DEVICE static __device__ __forceinline__
#define GPU_MODULE_BEGIN
#define GPU_MODULE_END
#define GPU_EXPORT(name)
#define GPU_EXPORT_SYNC(name)

namespace gpu {
using f32 = float;
using f64 = double;
using f16 = __half;
using f16x2 = __half2;
template <class T>
using ptr = T*;

GPU_DEVICE uint3 thread_index() { return threadIdx; }
GPU_DEVICE uint3 block_index() { return blockIdx; }
GPU_DEVICE dim3 block_dim() { return blockDim; }
GPU_DEVICE dim3 grid_dim() { return gridDim; }
GPU_DEVICE void sync() { __syncthreads(); }
GPU_DEVICE void wait_while(const unsigned* p, unsigned value) {
  while (*static_cast<const volatile unsigned*>(p) == value) __nanosleep(1000);
}
#ifdef __CUDACC_RDC__
GPU_DEVICE void set_condition(unsigned long long handle, unsigned int value) {
  cudaGraphSetConditional(handle, value);
}
#endif
template <class T>
GPU_DEVICE T* shared() {
  extern __shared__ __align__(32) unsigned char gpu_dynamic_shared[];
  return reinterpret_cast<T*>(gpu_dynamic_shared);
}
GPU_DEVICE f32 fma(f32 a, f32 b, f32 c) { return __fmaf_rn(a, b, c); }
GPU_DEVICE f64 fma(f64 a, f64 b, f64 c) { return __fma_rn(a, b, c); }
GPU_DEVICE f16 fma(f16 a, f16 b, f16 c) { return __hfma(a, b, c); }
GPU_DEVICE f16x2 fma(f16x2 a, f16x2 b, f16x2 c) { return __hfma2(a, b, c); }
GPU_DEVICE f32 exp(f32 a) {
  return __expf(a);
}  // special-function unit: not counted as a FLOP, but the
GPU_DEVICE f32 log(f32 a) { return __logf(a); }           // range scaling around it is, on hardware
GPU_DEVICE f32 max(f32 a, f32 b) { return fmaxf(a, b); }  // a comparison: not counted
GPU_DEVICE f32 atomic_add(f32* p, f32 v) { return atomicAdd(p, v); }
GPU_DEVICE int atomic_add(int* p, int v) { return atomicAdd(p, v); }

using bf16 = __nv_bfloat16;
struct tf32 {
  float value;
};
template <class T>
GPU_DEVICE T narrow(f32 v);
template <>
__device__ __forceinline__ f16 narrow<f16>(f32 v) {
  return __float2half(v);
}
template <>
__device__ __forceinline__ bf16 narrow<bf16>(f32 v) {
  return __float2bfloat16(v);
}
template <>
__device__ __forceinline__ tf32 narrow<tf32>(f32 v) {
  return {nvcuda::wmma::__float_to_tf32(v)};
}

// What wmma takes for a source: its name there, how it is stored, and its depth.
template <class T>
struct Matrix {
  using Source = T;
  using Stored = T;
  static constexpr int kDepth = 16;
};
template <>
struct Matrix<tf32> {
  using Source = nvcuda::wmma::precision::tf32;
  using Stored = float;
  static constexpr int kDepth = 8;
};
template <class T>
GPU_DEVICE void mma(const T* a, const T* b, f32* c) {
  namespace wmma = nvcuda::wmma;
  using M = Matrix<T>;
  wmma::fragment<wmma::accumulator, 16, 16, M::kDepth, float> sum;
  wmma::load_matrix_sync(sum, c, 16, wmma::mem_row_major);
  for (int k = 0; k < 16; k += M::kDepth) {
    wmma::fragment<wmma::matrix_a, 16, 16, M::kDepth, typename M::Source, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, M::kDepth, typename M::Source, wmma::row_major> right;
    wmma::load_matrix_sync(left, reinterpret_cast<const typename M::Stored*>(a) + k, 16);
    wmma::load_matrix_sync(right, reinterpret_cast<const typename M::Stored*>(b) + k * 16, 16);
    wmma::mma_sync(sum, left, right, sum);
  }
  wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}
}  // namespace gpu

#else  // simgpu
#include <simgpu/kernel_sim.h>
#endif
