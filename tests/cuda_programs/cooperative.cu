// Blocks that wait for each other: each step reads what others have written in the one before.
#include <cooperative_groups.h>

#include "check.h"

namespace cg = cooperative_groups;

__global__ void relax(int n, int steps, float* from, float* to) {
  cg::grid_group grid = cg::this_grid();
  for (int step = 0; step < steps; ++step) {
    for (int i = static_cast<int>(grid.thread_rank()); i < n; i += static_cast<int>(grid.size()))
      to[i] = from[(i + n - 1) % n] + from[(i + 1) % n];
    grid.sync();
    float* const next = from;
    from = to;
    to = next;
  }
}

__global__ void warp_sum(int n, const float* x, float* sum) {
  if (static_cast<int>(threadIdx.x) >= n) return;  // the other lanes of the warp have ended
  cg::coalesced_group lanes = cg::coalesced_threads();
  float value = x[threadIdx.x];
  for (unsigned distance = 8; distance > 0; distance /= 2)
    value += lanes.shfl_down(value, distance);
  if (lanes.thread_rank() == 0) *sum = value;
}

int main() {
  int n = 1000, steps = 6;
  float *a, *b;
  CHECK(cudaMallocManaged(&a, n * sizeof(float)));
  CHECK(cudaMallocManaged(&b, n * sizeof(float)));
  for (int i = 0; i < n; ++i) a[i] = 1;
  void* arguments[] = {&n, &steps, &a, &b};
  CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(relax), dim3(5), dim3(64), arguments, 0,
                                    nullptr));
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < n; ++i) EXPECT(a[i] == 64);
  warp_sum<<<1, 32>>>(16, a, b);
  CHECK(cudaDeviceSynchronize());
  EXPECT(b[0] == 16 * 64);
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
}
