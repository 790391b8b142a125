// A tiled product, and one on tensor cores.
#include <cuda_fp16.h>
#include <mma.h>

#include <vector>

#include "check.h"

constexpr int kTile = 16;

__global__ void product(int n, const float* a, const float* b, float* c) {
  __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (int t = 0; t < n; t += kTile) {
    tile_a[threadIdx.y][threadIdx.x] = a[row * n + t + threadIdx.x];
    tile_b[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + column];
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum += tile_a[threadIdx.y][k] * tile_b[k][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

__global__ void halves(int n, const float* x, __half* y) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = __float2half(x[i]);
}

__global__ void tensor_product(int n, const __half* a, const __half* b, float* c) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, __half, row_major> left;
  fragment<matrix_b, 16, 16, 16, __half, row_major> right;
  fragment<accumulator, 16, 16, 16, float> sum;
  fill_fragment(sum, 0.0f);
  for (int k = 0; k < n; k += 16) {
    load_matrix_sync(left, a + blockIdx.y * 16 * n + k, n);
    load_matrix_sync(right, b + k * n + blockIdx.x * 16, n);
    mma_sync(sum, left, right, sum);
  }
  store_matrix_sync(c + blockIdx.y * 16 * n + blockIdx.x * 16, sum, n, mem_row_major);
}

int main() {
  constexpr int n = 64;
  std::vector<float> host(n * n), plain(n * n), tensor(n * n);
  for (int i = 0; i < n * n; ++i) host[i] = static_cast<float>(i % 7) - 3;
  float *a, *c;
  __half* h;
  CHECK(cudaMalloc(&a, n * n * sizeof(float)));
  CHECK(cudaMalloc(&c, n * n * sizeof(float)));
  CHECK(cudaMalloc(&h, n * n * sizeof(__half)));
  CHECK(cudaMemcpy(a, host.data(), n * n * sizeof(float), cudaMemcpyHostToDevice));
  product<<<dim3(n / kTile, n / kTile), dim3(kTile, kTile)>>>(n, a, a, c);
  CHECK(cudaMemcpy(plain.data(), c, n * n * sizeof(float), cudaMemcpyDeviceToHost));
  halves<<<1, 256>>>(n * n, a, h);
  tensor_product<<<dim3(n / 16, n / 16), 32>>>(n, h, h, c);
  CHECK(cudaMemcpy(tensor.data(), c, n * n * sizeof(float), cudaMemcpyDeviceToHost));
  for (int row = 0; row < n; ++row)
    for (int column = 0; column < n; ++column) {
      float sum = 0;
      for (int k = 0; k < n; ++k) sum += host[row * n + k] * host[k * n + column];
      EXPECT(plain[row * n + column] == sum && tensor[row * n + column] == sum);
    }
}
