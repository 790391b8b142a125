// Managed, pinned, pitched and three-dimensional memory.
#include "check.h"

__managed__ float total[2];

__global__ void squares(int n, const float* x, float* y) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i] * x[i];
}
__global__ void add_rows(const float* x, size_t pitch, int width, int height) {
  const int column = threadIdx.x;
  if (column >= width) return;
  float sum = 0;
  for (int row = 0; row < height; ++row)
    sum += reinterpret_cast<const float*>(reinterpret_cast<const char*>(x) + row * pitch)[column];
  atomicAdd(&total[column % 2], sum);
}

int main() {
  constexpr int n = 500;
  float *x, *y;
  CHECK(cudaMallocManaged(&x, n * sizeof(float)));
  CHECK(cudaMallocHost(&y, n * sizeof(float)));
  for (int i = 0; i < n; ++i) x[i] = static_cast<float>(i);
  squares<<<1, 64>>>(n, x, y);
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < n; ++i) EXPECT(y[i] == static_cast<float>(i * i));
  cudaPointerAttributes known;
  CHECK(cudaPointerGetAttributes(&known, x + 3));
  EXPECT(known.type == cudaMemoryTypeManaged && known.hostPointer == x + 3);

  constexpr int width = 30, height = 7;
  float host[height][width], back[height][width];
  for (int row = 0; row < height; ++row)
    for (int column = 0; column < width; ++column) host[row][column] = 1;
  float* wide;
  size_t pitch;
  CHECK(cudaMallocPitch(&wide, &pitch, width * sizeof(float), height));
  CHECK(cudaMemset2D(wide, pitch, 0, width * sizeof(float), height));
  CHECK(cudaMemcpy2D(wide, pitch, host, sizeof host[0], sizeof host[0], height,
                     cudaMemcpyHostToDevice));
  total[0] = 5;
  total[1] = 0;
  add_rows<<<1, 32>>>(wide, pitch, width, height);
  CHECK(cudaDeviceSynchronize());
  EXPECT(total[0] == 5 + 15 * height && total[1] == 15 * height);

  cudaPitchedPtr cube;
  const cudaExtent extent{width * sizeof(float), height, 3};
  CHECK(cudaMalloc3D(&cube, extent));
  CHECK(cudaMemset3D(cube, 0, extent));
  cudaMemcpy3DParms copy{};
  copy.srcPtr = make_cudaPitchedPtr(host, sizeof host[0], width, height);
  copy.dstPtr = cube;
  copy.dstPos = make_cudaPos(0, 0, 2);
  copy.extent = {width * sizeof(float), height, 1};
  copy.kind = cudaMemcpyHostToDevice;
  CHECK(cudaMemcpy3D(&copy));
  const char* const last = static_cast<char*>(cube.ptr) + 2 * cube.pitch * height;
  CHECK(cudaMemcpy2D(back, sizeof back[0], last, cube.pitch, sizeof back[0], height,
                     cudaMemcpyDeviceToHost));
  EXPECT(back[height - 1][width - 1] == 1);
  EXPECT(cudaMemcpy(nullptr, host, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaFree(x));
  CHECK(cudaFreeHost(y));
  CHECK(cudaFree(wide));
  CHECK(cudaFree(cube.ptr));
}
