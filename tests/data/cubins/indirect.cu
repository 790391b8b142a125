// Calls by name and by address, of functions with sections of their own (-rdc=true).
#include <cuda_fp16.h>
typedef float (*Function)(float);
__device__ __noinline__ float half_product(float x) { return float(__half(x) * __half(x)); }
__device__ __noinline__ float sum(float x) { return x + 3.0f; }
__device__ Function table[2] = {half_product, sum};
extern "C" __global__ void by_table(float* f, int k) { f[threadIdx.x] = table[k](f[threadIdx.x]); }
extern "C" __global__ void by_argument(float* f, Function g) { f[threadIdx.x] = g(f[threadIdx.x]); }
extern "C" __global__ void by_name(float* f) { f[threadIdx.x] = half_product(f[threadIdx.x]); }
