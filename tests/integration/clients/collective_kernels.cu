// Stand-ins for NCCL's kernels: a ring of ranks, a kernel each, that wait for each other in memory
// as in NCCL's LL protocol. A word of data travels with a flag beside it, in one store of 8 bytes,
// and the receiver reads it until the flag is this call's. collective_kernels.ptx is what nvcc
// makes of this.
#include <cuda_bf16.h>

#define KERNEL extern "C" __global__ void

// What a kernel knows of its ring. A rank's slots are two sets of 2 (ranks - 1) chunks, for odd and
// for even calls: a rank that has ended a call knows that all others have begun it, so that they
// have read what the call before sent them.
struct Ring {
  unsigned rank, ranks, call;  // calls count from 1
  volatile unsigned long long *mine, *next;
};

// `words` of 4 bytes, a multiple of the ranks. Each thread sends, receives and adds its own words.
template <class Add>
__device__ void all_reduce(const Ring& ring, unsigned words, const unsigned* in, unsigned* out,
                           Add add) {
  const unsigned chunk = words / ring.ranks, steps = 2 * (ring.ranks - 1);
  const size_t set = static_cast<size_t>(ring.call % 2) * steps * chunk;
  const unsigned long long flag = static_cast<unsigned long long>(ring.call) << 32;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < chunk; i += gridDim.x * blockDim.x) {
    unsigned at = ring.rank, value = in[at * chunk + i];
    for (unsigned step = 0; step < steps; ++step) {
      const size_t slot = set + static_cast<size_t>(step) * chunk + i;
      ring.next[slot] = flag | value;
      unsigned long long got = 0;
      do {
        got = ring.mine[slot];
      } while (got >> 32 != ring.call);
      value = static_cast<unsigned>(got);
      at = (at + ring.ranks - 1) % ring.ranks;
      if (step < ring.ranks - 1) value = add(value, in[at * chunk + i]);
      if (step >= ring.ranks - 2) out[at * chunk + i] = value;
    }
  }
}

KERNEL ncclDevKernel_AllReduce_Sum_f32_RING_LL(Ring ring, unsigned words, const unsigned* in,
                                               unsigned* out) {
  all_reduce(ring, words, in, out, [](unsigned a, unsigned b) {
    return __float_as_uint(__uint_as_float(a) + __uint_as_float(b));
  });
}

KERNEL ncclDevKernel_AllReduce_Sum_bf16_RING_LL(Ring ring, unsigned words, const unsigned* in,
                                                unsigned* out) {
  all_reduce(ring, words, in, out, [](unsigned a, unsigned b) {
    const __nv_bfloat162 sum = __hadd2(*reinterpret_cast<const __nv_bfloat162*>(&a),
                                       *reinterpret_cast<const __nv_bfloat162*>(&b));
    return *reinterpret_cast<const unsigned*>(&sum);
  });
}

// What each rank has to add: rank x (i % 8) + 1 for element i. 2 FLOP an element.
KERNEL gradient_f32(unsigned words, float rank, float* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < words) out[i] = fmaf(rank, i % 8, 1.0f);
}

KERNEL gradient_bf16(unsigned words, float rank, __nv_bfloat162* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const __nv_bfloat162 x = __floats2bfloat162_rn(2 * i % 8, (2 * i + 1) % 8);
  if (i < words) out[i] = __hfma2(__float2bfloat162_rn(rank), x, __float2bfloat162_rn(1.0f));
}
