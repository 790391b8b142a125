// Kernels as programs have them, for the interpreter of PTX: kernels.ptx is what nvcc makes of this
// (../committed_ptx_test.py has the command).
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cassert>
#include <cstdio>

#define KERNEL extern "C" __global__ void

KERNEL saxpy(int n, float a, const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

// c = a b, n x n, a multiple of the tile.
constexpr int kTile = 16;
KERNEL sgemm(int n, const float* a, const float* b, float* c) {
  __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; k += kTile) {
    tile_a[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
    tile_b[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kTile; ++j) sum = fmaf(tile_a[threadIdx.y][j], tile_b[j][threadIdx.x], sum);
    __syncthreads();
  }
  c[row * n + column] = sum;
}

__device__ float warp_sum(float v) {
  for (int d = 16; d != 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
  return v;
}
__device__ float warp_max(float v) {
  for (int d = 16; d != 0; d /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, d));
  return v;
}

// A warp a row.
KERNEL softmax(int n, const float* x, float* y) {
  const float* const row = x + static_cast<size_t>(blockIdx.x) * n;
  float* const out = y + static_cast<size_t>(blockIdx.x) * n;
  float most = -INFINITY, sum = 0;
  for (int i = threadIdx.x; i < n; i += 32) most = fmaxf(most, row[i]);
  most = warp_max(most);
  for (int i = threadIdx.x; i < n; i += 32) {
    const float e = __expf(row[i] - most);
    out[i] = e;
    sum += e;
  }
  sum = warp_sum(sum);
  for (int i = threadIdx.x; i < n; i += 32) out[i] = out[i] / sum;
}

// A block of 256 threads a row.
KERNEL layernorm(int n, float epsilon, const float* x, float* y) {
  const float* const row = x + static_cast<size_t>(blockIdx.x) * n;
  __shared__ float parts[2][8];
  float sum = 0, squares = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    sum += row[i];
    squares += row[i] * row[i];
  }
  sum = warp_sum(sum);
  squares = warp_sum(squares);
  if (threadIdx.x % 32 == 0) {
    parts[0][threadIdx.x / 32] = sum;
    parts[1][threadIdx.x / 32] = squares;
  }
  __syncthreads();
  sum = squares = 0;
  for (int i = 0; i < blockDim.x / 32; ++i) {
    sum += parts[0][i];
    squares += parts[1][i];
  }
  const float mean = sum / n, scale = rsqrtf(squares / n - mean * mean + epsilon);
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    y[static_cast<size_t>(blockIdx.x) * n + i] = (row[i] - mean) * scale;
}

// c = a b by tensor cores, a warp a tile of 16 x 16.
template <class T>
__device__ void product(int n, const T* a, const T* b, float* c) {
  namespace wmma = nvcuda::wmma;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.f);
  for (int k = 0; k < n; k += 16) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> right;
    wmma::load_matrix_sync(left, a + blockIdx.y * 16 * n + k, n);
    wmma::load_matrix_sync(right, b + k * n + blockIdx.x * 16, n);
    wmma::mma_sync(sum, left, right, sum);
  }
  wmma::store_matrix_sync(c + blockIdx.y * 16 * n + blockIdx.x * 16, sum, n, wmma::mem_row_major);
}
KERNEL product_f16(int n, const __half* a, const __half* b, float* c) { product(n, a, b, c); }
KERNEL product_bf16(int n, const __nv_bfloat16* a, const __nv_bfloat16* b, float* c) {
  product(n, a, b, c);
}

// One warp: c (16 x 8) = a (16 x 16, rows) b (16 x 8, columns), by mma.sync with ldmatrix.
KERNEL mma_16816(const __half* a, const __half* b, float* c) {
  __shared__ __align__(16) __half tile_a[16][16];
  __shared__ __align__(16) __half tile_b[8][16];
  const int lane = threadIdx.x;
  for (int i = lane; i < 256; i += 32) tile_a[i / 16][i % 16] = a[i];
  for (int i = lane; i < 128; i += 32) tile_b[i / 16][i % 16] = b[i];
  __syncwarp();
  unsigned ra[4], rb[2];
  float d[4];
  const auto at_a =
      static_cast<unsigned>(__cvta_generic_to_shared(&tile_a[lane % 16][lane / 16 * 8]));
  const auto at_b =
      static_cast<unsigned>(__cvta_generic_to_shared(&tile_b[lane % 8][lane / 8 % 2 * 8]));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3])
               : "r"(at_a));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
               : "=r"(rb[0]), "=r"(rb[1])
               : "r"(at_b));
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%10,%10,%10,%10};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]), "f"(0.f));
  for (int i = 0; i < 4; ++i) c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = d[i];
}

// --- calls, tables of functions, printf, assert

struct Pair {
  float a;
  double b;
};
__device__ __noinline__ double nested(Pair p, int depth) {
  return depth == 0 ? p.a * p.b : nested(p, depth - 1) + 1.0;
}
struct Once {
  __device__ virtual float of(float x) { return x; }
};
struct Twice : Once {
  __device__ float of(float x) override { return 2 * x; }
};
KERNEL calls(Pair p, int depth, double* out, int which) {
  Once once;
  Twice twice;
  Once* const chosen = which != 0 ? &twice : &once;
  out[threadIdx.x] = nested(p, depth + threadIdx.x % 3) + chosen->of(threadIdx.x);
}
KERNEL says(int n) {
  printf("thread %d of %s: %.2f\n", threadIdx.x, "a block", 0.5 * n);
  assert(n > 0);
}
KERNEL reads(const int* from, int* to) { to[threadIdx.x] = from[threadIdx.x]; }

// --- lanes, atomics, memory

KERNEL atomics(int* i, float* f, unsigned long long* u, double* d) {
  atomicAdd(i, 1);
  atomicMax(i + 1, static_cast<int>(threadIdx.x));
  atomicOr(reinterpret_cast<unsigned*>(i) + 2, 1u << threadIdx.x % 32);
  atomicExch(i + 3, 5);
  atomicInc(reinterpret_cast<unsigned*>(i) + 4, 10u);
  atomicAdd(f, 1.f);
  atomicCAS(u, 0ull, 7ull);
  atomicAdd(d, 1.0);
}
KERNEL lanes(unsigned* out) {
  const unsigned lane = threadIdx.x;
  out[lane] = __ballot_sync(~0u, lane % 3 == 0);
  out[32 + lane] = __match_any_sync(~0u, lane % 4);
  out[64 + lane] = __reduce_add_sync(~0u, lane);
  out[96 + lane] = __shfl_up_sync(~0u, lane, 1);
  out[128 + lane] = __shfl_down_sync(~0u, lane, 2, 8);
  out[160 + lane] = __popc(__activemask());
  out[192 + lane] = __any_sync(~0u, lane == 3) + 2 * __all_sync(~0u, lane < 32);
}
KERNEL halves(const __half2* a, const __half2* b, __half2* c, const __nv_bfloat16* x,
              __nv_bfloat16* y) {
  const int i = threadIdx.x;
  c[i] = __hfma2(a[i], b[i], __hadd2(a[i], b[i]));
  y[i] = x[i] * x[i] + x[i];
}
KERNEL functions(const double* a, double* b, float* c, int* k) {
  const int i = threadIdx.x;
  b[i] = sqrt(a[i]) / (a[i] + 3) + sin(a[i]) + exp(a[i]) + pow(a[i], 1.5);
  const float x = c[i];
  c[i] = sinf(x) + expf(x) + logf(x) + tanhf(x) + powf(x, 1.3f) + erff(x) + x / 3.f + sqrtf(x);
  k[i] = k[i] / 7 + k[i] % 5 + static_cast<int>(x) + __float2int_rn(x) +
         static_cast<int>(llrint(a[i]));
}
__constant__ float table[32];
__device__ int counter = 5;
__device__ float few[4] = {1, 2, 3, 4};
KERNEL locals(int n, float* out) {
  float values[32];
  for (int i = 0; i < 32; ++i) values[i] = i * table[i];
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += values[i * 7 % 32];
  out[threadIdx.x] = sum + counter + few[n % 4];
}
KERNEL shared(float* out) {
  extern __shared__ float dynamic[];
  __shared__ float fixed[4];
  dynamic[threadIdx.x] = threadIdx.x;
  if (threadIdx.x < 4) fixed[threadIdx.x] = 2;
  __syncthreads();
  out[threadIdx.x] = dynamic[blockDim.x - 1 - threadIdx.x] + fixed[threadIdx.x % 4];
  out[blockDim.x + threadIdx.x] = __syncthreads_count(threadIdx.x % 3 == 0);
}
// Collatz' sequence: every lane leaves the loop at another time.
KERNEL diverges(const int* x, int* out) {
  int v = x[threadIdx.x], n = 0;
  while (v != 1 && n < 1000) {
    v = v % 2 != 0 ? 3 * v + 1 : v / 2;
    ++n;
  }
  switch (n % 4) {
    case 0:
      n += 10;
      break;
    case 1:
      n *= 3;
      break;
    case 2:
      n = -n;
      break;
    default:
      n ^= 5;
  }
  out[threadIdx.x] = n;
}
// A lock that lanes of one warp, and blocks, wait for.
__device__ int lock = 0;
KERNEL locked(int* sum) {
  for (bool done = false; !done;) {
    if (atomicCAS(&lock, 0, 1) == 0) {
      *static_cast<volatile int*>(sum) = *static_cast<volatile int*>(sum) + 1;
      __threadfence();
      atomicExch(&lock, 0);
      done = true;
    }
  }
}
// Block 0 waits for the last one.
__device__ volatile int arrived = 0;
KERNEL waits_for_another_block(int* out) {
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    while (arrived == 0) __nanosleep(100);
    *out = arrived;
  }
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) arrived = 42;
}
KERNEL waits_for_ever() {
  if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;");
}
