// One kernel source for a GPU (nvcc) and for simgpu (any C++20 compiler).
//
// Kernels are written with the types and functions of namespace gpu. For nvcc these are the plain CUDA ones; for
// simgpu they are scalars that count every add, multiply and fused multiply-add as it is executed. A source is
// compiled for a GPU with -fmad=false, so that a*b+c is two operations on both sides and gpu::fma is one.
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
#pragma once

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>

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
template <class T> using ptr = T*;

GPU_DEVICE uint3 thread_index() { return threadIdx; }
GPU_DEVICE uint3 block_index() { return blockIdx; }
GPU_DEVICE dim3 block_dim() { return blockDim; }
GPU_DEVICE dim3 grid_dim() { return gridDim; }
GPU_DEVICE void sync() { __syncthreads(); }
template <class T> GPU_DEVICE T* shared() {
  extern __shared__ __align__(16) unsigned char gpu_dynamic_shared[];
  return reinterpret_cast<T*>(gpu_dynamic_shared);
}
GPU_DEVICE f32 fma(f32 a, f32 b, f32 c) { return __fmaf_rn(a, b, c); }
GPU_DEVICE f64 fma(f64 a, f64 b, f64 c) { return __fma_rn(a, b, c); }
GPU_DEVICE f16 fma(f16 a, f16 b, f16 c) { return __hfma(a, b, c); }
GPU_DEVICE f16x2 fma(f16x2 a, f16x2 b, f16x2 c) { return __hfma2(a, b, c); }
GPU_DEVICE f32 exp(f32 a) { return __expf(a); }     // special-function unit: not counted as a FLOP, but the
GPU_DEVICE f32 log(f32 a) { return __logf(a); }     // range scaling around it is, on hardware
GPU_DEVICE f32 max(f32 a, f32 b) { return fmaxf(a, b); }  // a comparison: not counted
GPU_DEVICE f32 atomic_add(f32* p, f32 v) { return atomicAdd(p, v); }
GPU_DEVICE int atomic_add(int* p, int v) { return atomicAdd(p, v); }
}  // namespace gpu

#else  // simgpu
#include <simgpu/kernel_sim.h>
#endif
