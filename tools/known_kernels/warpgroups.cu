// Products of Hopper's groups of warps: zeros in shared memory, `steps` times.
#include <cstdint>

#define KERNEL extern "C" __global__ void
#define AT (blockIdx.x * blockDim.x + threadIdx.x)

// A row of either operand is 32 bytes in every format.
constexpr int kRowBytes = 32;

struct Operands {
  uint64_t a, b;  // descriptors
};

// Tiles of 64 and of at most 64 rows. A descriptor without swizzle: address, leading and stride
// offsets, in units of 16 bytes. Not static: the name of its memory would depend on the folder.
inline __device__ Operands zeros() {
  __shared__ alignas(128) uint32_t tiles[2 * 64 * kRowBytes / 4];
  for (unsigned i = threadIdx.x; i < sizeof(tiles) / 4; i += blockDim.x) tiles[i] = 0;
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  const uint64_t address = __cvta_generic_to_shared(tiles);
  const uint64_t a = ((address & 0x3ffff) >> 4) | (uint64_t{8} << 16) | (uint64_t{16} << 32);
  return {a, a + 64 * kRowBytes / 16};
}
static __device__ void begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
static __device__ void end() {
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
}

#define WGMMA_16(name, type, kind, form, tail)                                                  \
  KERNEL name(int steps, type* out) {                                                           \
    const Operands of = zeros();                                                                \
    type d[8] = {};                                                                             \
    begin();                                                                                    \
    _Pragma("unroll 1") for (int i = 0; i < steps; ++i) asm volatile(                           \
        "wgmma.mma_async.sync.aligned." form " {%0,%1,%2,%3,%4,%5,%6,%7}, %8, %9, 1" tail ";" : \
        "+" kind(d[0]), "+" kind(d[1]), "+" kind(d[2]), "+" kind(d[3]), "+" kind(d[4]),         \
        "+" kind(d[5]), "+" kind(d[6]), "+" kind(d[7]) : "l"(of.a), "l"(of.b));                 \
    end();                                                                                      \
    out[AT] = d[0];                                                                             \
  }
WGMMA_16(group_fp16, float, "f", "m64n16k16.f32.f16.f16", ", 1, 1, 0, 0")
WGMMA_16(group_bf16, float, "f", "m64n16k16.f32.bf16.bf16", ", 1, 1, 0, 0")
WGMMA_16(group_tf32, float, "f", "m64n16k8.f32.tf32.tf32", ", 1, 1")
WGMMA_16(group_fp8, float, "f", "m64n16k32.f32.e4m3.e4m3", ", 1, 1")
WGMMA_16(group_int8, int, "r", "m64n16k32.s32.s8.s8", "")

// --- Three groups of warps with 168 registers each, as the large products of Hopper have. Besides
// its products each thread multiplies kHeld numbers.

constexpr int kHeld = 80;
#define D32                                                                                     \
  "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24," \
  "%25,%26,%27,%28,%29,%30,%31}"
#define V1(i) "+f"(d[i])
#define V4(i) V1(i), V1(i + 1), V1(i + 2), V1(i + 3)
#define V16(i) V4(i), V4(i + 4), V4(i + 8), V4(i + 12)

static __device__ void large_product(const Operands& of, int steps, float* out) {
  float held[kHeld], d[32] = {};
#pragma unroll
  for (int i = 0; i < kHeld; ++i) held[i] = __ldcv(&out[AT + i]);
  begin();
#pragma unroll 1
  for (int i = 0; i < steps; ++i)
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " D32
                 ", %32, %33, 1, 1, 1, 0, 0;"
                 : V16(0), V16(16)
                 : "l"(of.a), "l"(of.b)
                 : "memory");
  end();
#pragma unroll
  for (int i = 0; i < kHeld; ++i) __stcg(&out[AT + i], __fmul_rn(held[i], held[(i + 1) % kHeld]));
#pragma unroll
  for (int i = 0; i < 32; ++i) __stcg(&out[AT + i], d[i]);
}
KERNEL __launch_bounds__(384, 1) large(int steps, float* out) {
  large_product(zeros(), steps, out);
}

// The first group hands its registers to the other two, which multiply.
KERNEL __launch_bounds__(384, 1) large_handing_on(int steps, float* out) {
  const Operands of = zeros();
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    large_product(of, steps, out);
  }
}
