// Products of a warp in fp8, which GPUs since Ada have: zeros by zeros, `steps` times.
#include <cstdint>

extern "C" __global__ void product_fp8(int steps, float* out) {
  float d[4] = {};
  const uint32_t zero = 0;
  for (int i = 0; i < steps; ++i)
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
        "{%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(zero));
  out[blockIdx.x * blockDim.x + threadIdx.x] = d[0];
}
