// Products of a warp that GPUs since Ampere have: zeros by zeros, `steps` times.
#include <cstdint>

#define KERNEL extern "C" __global__ void
#define AT (blockIdx.x * blockDim.x + threadIdx.x)
#define MMA(kind, form, a, b)                                                          \
  asm volatile("mma.sync.aligned." form " {%0,%1,%2,%3}, " a ", " b ", {%0,%1,%2,%3};" \
               : "+" kind(d[0]), "+" kind(d[1]), "+" kind(d[2]), "+" kind(d[3])        \
               : "r"(zero))

KERNEL product_bf16(int steps, float* out) {
  float d[4] = {};
  const uint32_t zero = 0;
  for (int i = 0; i < steps; ++i)
    MMA("f", "m16n8k16.row.col.f32.bf16.bf16.f32", "{%4,%4,%4,%4}", "{%4,%4}");
  out[AT] = d[0];
}
KERNEL product_tf32(int steps, float* out) {
  float d[4] = {};
  const uint32_t zero = 0;
  for (int i = 0; i < steps; ++i)
    MMA("f", "m16n8k8.row.col.f32.tf32.tf32.f32", "{%4,%4,%4,%4}", "{%4,%4}");
  out[AT] = d[0];
}
KERNEL product_int8(int steps, int* out) {
  int d[4] = {};
  const uint32_t zero = 0;
  for (int i = 0; i < steps; ++i)
    MMA("r", "m16n8k32.row.col.s32.s8.s8.s32", "{%4,%4,%4,%4}", "{%4,%4}");
  out[AT] = d[0];
}
KERNEL product_fp64(int steps, double* out) {
  double d[2] = {};
  const double zero = 0;
  for (int i = 0; i < steps; ++i)
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%2}, {%0,%1};"
                 : "+d"(d[0]), "+d"(d[1])
                 : "d"(zero));
  out[AT] = d[0];
}
