// Instructions of compute capability 9.0, and those of matrices in every type. Registers of a lane
// lie in memory as register r of lane l at [32 * r + l].
#include <mma.h>

#include <cstdint>

#define LANE const unsigned lane = threadIdx.x % 32
#define AT(p, r) (p)[32 * (r) + lane]

// --- mma: d = a b

#define MMA_4_2_4(name, form)                                                                 \
  extern "C" __global__ void name(const uint32_t* a, const uint32_t* b, uint32_t* d) {        \
    LANE;                                                                                     \
    uint32_t d0, d1, d2, d3;                                                                  \
    asm volatile("mma.sync.aligned." form                                                     \
                 " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"                 \
                 : "=r"(d0), "=r"(d1), "=r"(d2), "=r"(d3)                                     \
                 : "r"(AT(a, 0)), "r"(AT(a, 1)), "r"(AT(a, 2)), "r"(AT(a, 3)), "r"(AT(b, 0)), \
                   "r"(AT(b, 1)), "r"(0));                                                    \
    AT(d, 0) = d0, AT(d, 1) = d1, AT(d, 2) = d2, AT(d, 3) = d3;                               \
  }
MMA_4_2_4(mma_bf16, "m16n8k16.row.col.f32.bf16.bf16.f32")
MMA_4_2_4(mma_f16, "m16n8k16.row.col.f32.f16.f16.f32")
MMA_4_2_4(mma_tf32, "m16n8k8.row.col.f32.tf32.tf32.f32")
MMA_4_2_4(mma_s8, "m16n8k32.row.col.satfinite.s32.s8.u8.s32")
MMA_4_2_4(mma_e4m3, "m16n8k32.row.col.f32.e4m3.e5m2.f32")

extern "C" __global__ void mma_f16_f16(const uint32_t* a, const uint32_t* b, uint32_t* d) {
  LANE;
  uint32_t d0, d1;
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 "
      "{%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%8,%8};"
      : "=r"(d0), "=r"(d1)
      : "r"(AT(a, 0)), "r"(AT(a, 1)), "r"(AT(a, 2)), "r"(AT(a, 3)), "r"(AT(b, 0)), "r"(AT(b, 1)),
        "r"(0));
  AT(d, 0) = d0, AT(d, 1) = d1;
}

extern "C" __global__ void mma_f64(const double* a, const double* b, double* d) {
  LANE;
  double d0, d1;
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%4,%4};"
               : "=d"(d0), "=d"(d1)
               : "d"(AT(a, 0)), "d"(AT(b, 0)), "d"(0.0));
  AT(d, 0) = d0, AT(d, 1) = d1;
}

extern "C" __global__ void wmma_f64(const double* a, const double* b, double* d) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 8, 8, 4, double, row_major> left;
  fragment<matrix_b, 8, 8, 4, double, row_major> right;
  fragment<accumulator, 8, 8, 4, double> sum;
  fill_fragment(sum, 0);
  load_matrix_sync(left, a, 4);
  load_matrix_sync(right, b, 8);
  mma_sync(sum, left, right, sum);
  store_matrix_sync(d, sum, 8, mem_row_major);
}

// --- mma.sp: half of a, and metadata e

#define SPARSE_2(name, form, selector)                                                     \
  extern "C" __global__ void name(const uint32_t* a, const uint32_t* b, const uint32_t* e, \
                                  uint32_t* d) {                                           \
    LANE;                                                                                  \
    uint32_t d0, d1, d2, d3;                                                               \
    asm volatile("mma.sp::ordered_metadata.sync.aligned." form                             \
                 " {%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%8,%8,%8,%8}, %9, " selector ";"      \
                 : "=r"(d0), "=r"(d1), "=r"(d2), "=r"(d3)                                  \
                 : "r"(AT(a, 0)), "r"(AT(a, 1)), "r"(AT(b, 0)), "r"(AT(b, 1)), "r"(0),     \
                   "r"(AT(e, 0)));                                                         \
    AT(d, 0) = d0, AT(d, 1) = d1, AT(d, 2) = d2, AT(d, 3) = d3;                            \
  }
#define SPARSE_4(name, form, selector)                                                          \
  extern "C" __global__ void name(const uint32_t* a, const uint32_t* b, const uint32_t* e,      \
                                  uint32_t* d) {                                                \
    LANE;                                                                                       \
    uint32_t d0, d1, d2, d3;                                                                    \
    asm volatile(                                                                               \
        "mma.sp::ordered_metadata.sync.aligned." form                                           \
        " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%12,%12,%12,%12}, %13, " selector ";" \
        : "=r"(d0), "=r"(d1), "=r"(d2), "=r"(d3)                                                \
        : "r"(AT(a, 0)), "r"(AT(a, 1)), "r"(AT(a, 2)), "r"(AT(a, 3)), "r"(AT(b, 0)),            \
          "r"(AT(b, 1)), "r"(AT(b, 2)), "r"(AT(b, 3)), "r"(0), "r"(AT(e, 0)));                  \
    AT(d, 0) = d0, AT(d, 1) = d1, AT(d, 2) = d2, AT(d, 3) = d3;                                 \
  }
SPARSE_2(sparse_f16_k16, "m16n8k16.row.col.f32.f16.f16.f32", "0x3")
SPARSE_4(sparse_f16_k32, "m16n8k32.row.col.f32.f16.f16.f32", "0x0")
SPARSE_4(sparse_bf16_k32, "m16n8k32.row.col.f32.bf16.bf16.f32", "0x1")
SPARSE_2(sparse_tf32_k8, "m16n8k8.row.col.f32.tf32.tf32.f32", "0x2")
SPARSE_4(sparse_tf32_k16, "m16n8k16.row.col.f32.tf32.tf32.f32", "0x1")
SPARSE_2(sparse_s8_k32, "m16n8k32.row.col.s32.s8.s8.s32", "0x1")
SPARSE_4(sparse_s8_k64, "m16n8k64.row.col.s32.s8.u8.s32", "0x0")
SPARSE_4(sparse_e4m3_k64, "m16n8k64.row.col.f32.e4m3.e5m2.f32", "0x0")

// --- wgmma: d = a b + (add ? d : 0), of an image of shared memory. Descriptors count from its
// begin; d of thread t is at [count * t].

__device__ uint64_t in_shared(const uint4* image, unsigned units) {
  extern __shared__ __align__(1024) uint4 memory[];
  for (unsigned i = threadIdx.x; i < units; i += blockDim.x) memory[i] = image[i];
  asm volatile("fence.proxy.async.shared::cta;");
  __syncthreads();
  return static_cast<uint64_t>(__cvta_generic_to_shared(memory)) >> 4;
}

#define D4 "{%0,%1,%2,%3}"
#define D8 "{%0,%1,%2,%3,%4,%5,%6,%7}"
#define D32                                                                                     \
  "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24," \
  "%25,%26,%27,%28,%29,%30,%31}"
#define R1(i) "+r"(v[i])
#define R4(i) R1(i), R1(i + 1), R1(i + 2), R1(i + 3)
#define R8(i) R4(i), R4(i + 4)
#define R32(i) R8(i), R8(i + 8), R8(i + 16), R8(i + 24)
#define WGMMA(name, count, list, registers, form, a, b, p, tail)                         \
  extern "C" __global__ void name(const uint4* image, unsigned units, uint64_t at_a,     \
                                  uint64_t at_b, int add, uint32_t* d) {                 \
    const uint64_t begin = in_shared(image, units);                                      \
    uint32_t v[count];                                                                   \
    for (int i = 0; i < count; ++i) v[i] = d[count * threadIdx.x + i];                   \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " p                                   \
                 ", 0;\nwgmma.fence.sync.aligned;\n"                                     \
                 "wgmma.mma_async.sync.aligned." form " " list ", " a ", " b ", p" tail  \
                 ";\n"                                                                   \
                 "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n}" \
                 : registers                                                             \
                 : "l"(begin + at_a), "l"(begin + at_b), "r"(add)                        \
                 : "memory");                                                            \
    for (int i = 0; i < count; ++i) d[count * threadIdx.x + i] = v[i];                   \
  }
#define WGMMA_F16(name, tail) \
  WGMMA(name, 32, D32, R32(0), "m64n64k16.f32.f16.f16", "%32", "%33", "%34", tail)
WGMMA_F16(wgmma_f16, ", 1, 1, 0, 0")
WGMMA_F16(wgmma_f16_a, ", 1, 1, 1, 0")
WGMMA_F16(wgmma_f16_b, ", 1, -1, 0, 1")
WGMMA_F16(wgmma_f16_ab, ", -1, 1, 1, 1")
WGMMA(wgmma_bf16, 8, D8, R8(0), "m64n16k16.f32.bf16.bf16", "%8", "%9", "%10", ", 1, 1, 0, 0")
WGMMA(wgmma_f16_f16, 4, D4, R4(0), "m64n16k16.f16.f16.f16", "%4", "%5", "%6", ", 1, 1, 0, 0")
WGMMA(wgmma_tf32, 8, D8, R8(0), "m64n16k8.f32.tf32.tf32", "%8", "%9", "%10", ", 1, 1")
WGMMA(wgmma_e4m3, 8, D8, R8(0), "m64n16k32.f32.e4m3.e5m2", "%8", "%9", "%10", ", 1, 1")
WGMMA(wgmma_s8, 8, D8, R8(0), "m64n16k32.s32.s8.u8", "%8", "%9", "%10", "")

// Three groups of warps with 168 registers each, as the large products of Hopper have: no thread
// finds room for more. Besides its product each thread multiplies kHeld numbers.
constexpr int kHeld = 96;
extern "C" __global__ void __launch_bounds__(384, 1)
    wgmma_large(const uint4* image, unsigned units, uint64_t at_a, uint64_t at_b, int add,
                float* d) {
  const uint64_t begin = in_shared(image, units);
  float held[kHeld];
  uint32_t v[32] = {};
  for (int i = 0; i < kHeld; ++i) held[i] = __ldcv(&d[blockDim.x * i + threadIdx.x]);
  asm volatile(
      "wgmma.fence.sync.aligned;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " D32
      ", %32, %33, 0, 1, 1, 0, 0;\n"
      "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;"
      : R32(0)
      : "l"(begin + at_a), "l"(begin + at_b)
      : "memory");
  for (int i = 0; i < kHeld; ++i) d[blockDim.x * i + threadIdx.x] = held[i] * held[(i + 1) % kHeld];
  for (int i = 0; i < 32; ++i) d[blockDim.x * i + threadIdx.x] = __uint_as_float(v[i]);
}

// a in registers: those of thread t at [4 * t].
extern "C" __global__ void wgmma_registers(const uint4* image, unsigned units, const uint32_t* a,
                                           uint64_t at_b, int add, uint32_t* d) {
  const uint64_t begin = in_shared(image, units);
  uint32_t v[8];
  for (int i = 0; i < 8; ++i) v[i] = d[8 * threadIdx.x + i];
  a += 4 * threadIdx.x;
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %13, 0;\nwgmma.fence.sync.aligned;\n"
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 " D8
      ", {%8,%9,%10,%11}, %12, p, 1, 1, 1;\n"
      "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n}"
      : R8(0)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(begin + at_b), "r"(add)
      : "memory");
  for (int i = 0; i < 8; ++i) d[8 * threadIdx.x + i] = v[i];
}

// --- Bulk copies: y = 2 x of n floats by tiles of 256, which come by one stage of two each

__device__ bool has_flipped(unsigned barrier, unsigned parity) {
  unsigned flipped;
  asm volatile(
      "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(flipped)
      : "r"(barrier), "r"(parity)
      : "memory");
  return flipped != 0;
}

extern "C" __global__ void doubles(int tiles, const float* x, float* y) {
  constexpr unsigned kTile = 256, kBytes = 4 * kTile, kStages = 2;
  __shared__ __align__(128) float from[kStages][kTile], to[kTile];
  __shared__ uint64_t full[kStages];
  const auto address = [](const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
  };
  const auto ask = [&](int tile) {
    const unsigned stage = tile % kStages;
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(&full[stage])),
        "r"(kBytes)
        : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(address(from[stage])),
        "l"(x + tile * kTile), "r"(kBytes), "r"(address(&full[stage]))
        : "memory");
  };
  if (threadIdx.x == 0) {
    for (unsigned stage = 0; stage < kStages; ++stage)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(&full[stage]))
                   : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    for (int tile = 0; tile < kStages && tile < tiles; ++tile) ask(tile);
  }
  __syncthreads();
  for (int tile = 0; tile < tiles; ++tile) {
    const unsigned stage = tile % kStages;
    while (!has_flipped(address(&full[stage]), tile / kStages % 2)) {
    }
    to[threadIdx.x] = 2 * from[stage][threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
      asm volatile(
          "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(y + tile * kTile),
          "r"(address(to)), "r"(kBytes)
          : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
      if (tile + kStages < tiles) ask(tile + kStages);
    }
    __syncthreads();
  }
}

// What a barrier of two arrivals says of its phases: out[i] after step i.
extern "C" __global__ void transactions(unsigned* out) {
  __shared__ uint64_t barrier;
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
  uint64_t state;
  unsigned left;
  const auto flipped = [&](unsigned parity) {
    unsigned is;
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}"
        : "=r"(is)
        : "r"(at), "r"(parity)
        : "memory");
    return is;
  };
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" ::"r"(at) : "memory");
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 48;" ::"r"(at) : "memory");
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(at) : "memory");
  asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(left) : "l"(state));
  out[0] = left;
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(at) : "memory");
  out[1] = flipped(0);
  asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 16;" ::"r"(at) : "memory");
  out[2] = flipped(0);
  asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 32;" ::"r"(at) : "memory");
  out[3] = flipped(0);
  out[4] = flipped(1);
  // The second phase has one arrival left after one is dropped.
  asm volatile("mbarrier.arrive_drop.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(at) : "memory");
  out[5] = flipped(1);
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(at) : "memory");
  out[6] = flipped(1);
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(at) : "memory");
  out[7] = flipped(0);
}

// cp.async of a thread's own value, then the arrival that the copy makes.
extern "C" __global__ void arrives_by_copy(const uint4* x, uint4* y) {
  __shared__ uint4 memory[64];
  __shared__ uint64_t barrier;
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
  if (threadIdx.x == 0)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(blockDim.x) : "memory");
  __syncthreads();
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(memory + threadIdx.x))),
               "l"(x + threadIdx.x)
               : "memory");
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(at) : "memory");
  while (!has_flipped(at, 0)) {
  }
  y[threadIdx.x] = memory[blockDim.x - 1 - threadIdx.x];
}

// --- Registers, leaders, memory

extern "C" __global__ void elects(unsigned* leaders) {
  unsigned leader, is;
  asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
  asm volatile("{\n.reg .pred p;\nelect.sync %0|p, 0xffffffff;\nselp.u32 %1, 1, 0, p;\n}"
               : "=r"(leader), "=r"(is));
  asm volatile("setmaxnreg.inc.sync.aligned.u32 80;");
  leaders[threadIdx.x] = 2 * leader + is;
}

// A list that each thread makes and frees; 0 where there is no memory.
extern "C" __global__ void allocates(unsigned count, unsigned* sums) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  auto* const list = static_cast<unsigned*>(malloc(count * sizeof(unsigned)));
  unsigned sum = 0;
  if (list != nullptr) {
    for (unsigned i = 0; i < count; ++i) list[i] = i * thread;
    for (unsigned i = 0; i < count; ++i) sum += list[i];
    free(list);
  }
  sums[thread] = sum;
}

// --- Clusters of 2 x 2 blocks

// y of each block: the sum of x of its cluster's blocks, by generic and by shared addresses.
extern "C" __global__ void __cluster_dims__(2, 2, 1) cluster_sums(const int* x, int* y) {
  __shared__ int own;
  const unsigned block = blockIdx.x + gridDim.x * blockIdx.y;
  if (threadIdx.x == 0) own = x[block];
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
  int sum = 0;
  for (unsigned rank = 0; rank < 4; ++rank) {
    unsigned there, of;
    int value;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(there)
                 : "r"(static_cast<unsigned>(__cvta_generic_to_shared(&own))), "r"(rank));
    asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(of) : "r"(there));
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(there) : "memory");
    const int* generic;
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(generic) : "l"(&own), "r"(rank));
    sum += of == rank && *generic == value ? value : 1 << 20;
  }
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  y[block] = sum;
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// The first block of each cluster gives its x, 16 bytes, to all four; each adds its rank.
extern "C" __global__ void __cluster_dims__(2, 2, 1) cluster_gift(const int4* x, int4* y) {
  __shared__ __align__(16) int4 own;
  __shared__ uint64_t barrier;
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  const auto address = [](const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
  };
  const unsigned block = blockIdx.x + gridDim.x * blockIdx.y;
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(&barrier)) : "memory");
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 16;" ::"r"(address(&barrier))
               : "memory");
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
  if (rank == 0)
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1], 16, [%2], %3;" ::"r"(address(&own)),
        "l"(x + block), "r"(address(&barrier)), "h"(static_cast<uint16_t>(15))
        : "memory");
  while (!has_flipped(address(&barrier), 0)) {
  }
  y[block] = {own.x + static_cast<int>(rank), own.y, own.z, own.w};
}

// --- Packed numbers: each function's result of u[i] and u[i + 1] at [n * function + i]

extern "C" __global__ void packed(unsigned n, const unsigned* u, unsigned* out) {
  const unsigned i = threadIdx.x;
  const unsigned a = u[i], b = u[(i + 1) % n], c = u[(i + 2) % n];
  unsigned at = i;
  const auto put = [&](unsigned value) {
    out[at] = value;
    at += n;
  };
  unsigned d, low, high;
  asm("dp2a.lo.s32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  put(d);
  asm("dp2a.hi.u32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  put(d);
  asm("max.s16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  put(d);
  asm("min.u16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  put(d);
  asm("add.u16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  put(d);
  asm("vabsdiff4.u32.u32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(0));
  put(d);
  asm("set.gt.u32.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  put(d);
  asm("set.le.f16x2.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  put(d);
  asm("{\n.reg .pred p, q;\nsetp.neu.bf16x2 p|q, %2, %3;\nselp.u32 %0, 1, 0, p;\n"
      "selp.u32 %1, 1, 0, q;\n}"
      : "=r"(low), "=r"(high)
      : "r"(a), "r"(b));
  put(low);
  put(high);
  asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  put(d);
  asm("vabsdiff4.s32.s32.s32.add %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  put(d);
}
