// Threads of one warp that end early or are at different places, and wait for each other all the
// same: warps.ptx is what nvcc makes of this (../committed_ptx_test.py has the command).
#define KERNEL extern "C" __global__ void

constexpr unsigned kAll = ~0u;

// --- threads that have ended

// Those from `from` up to, not with, `to` go on; the others end. Six results a thread.
KERNEL some_end(int from, int to, unsigned* out) {
  const int lane = threadIdx.x;
  if (lane < from || lane >= to) return;
  unsigned* const mine = out + 6 * lane;
  mine[0] = __shfl_xor_sync(kAll, 100 + lane, 1);
  mine[1] = __ballot_sync(kAll, lane % 3 != 0);
  mine[2] = __reduce_add_sync(kAll, lane);
  mine[3] = __match_any_sync(kAll, lane % 4);
  mine[4] = 2 * __all_sync(kAll, lane >= from) + __any_sync(kAll, lane == 31);
  __syncwarp();
  mine[5] = __popc(__activemask());
}

// The same, where those that end do so while the others wait already.
__device__ volatile int rounds[32];
KERNEL some_end_later(int ends, unsigned* out) {
  const int lane = threadIdx.x;
  if (lane < ends) {
    out[lane] = __reduce_max_sync(kAll, lane);
    return;
  }
  for (int i = 0; i < 100 * lane; ++i) rounds[lane] = i;
  asm volatile("exit;");
}

// A sum of 16 rows of 16 threads, two rows a warp: the last shuffles are by half of a warp.
KERNEL sum_of_tile(const float* x, float* sum) {
  __shared__ float row_sums[16];
  float v = x[threadIdx.y * 16 + threadIdx.x];
  for (int offset = 8; offset > 0; offset /= 2) v += __shfl_down_sync(kAll, v, offset);
  if (threadIdx.x == 0) row_sums[threadIdx.y] = v;
  __syncthreads();
  if (threadIdx.y != 0) return;
  v = row_sums[threadIdx.x];
  for (int offset = 8; offset > 0; offset /= 2) v += __shfl_down_sync(kAll, v, offset);
  if (threadIdx.x == 0) *sum = v;
}

// --- threads at different instructions

// Each pair of neighbours exchanges by two instructions, one a branch.
KERNEL both_branches(unsigned* out) {
  __shared__ unsigned values[32];
  const unsigned lane = threadIdx.x;
  unsigned* const mine = out + 7 * lane;
  if (lane % 2 == 0) {
    mine[0] = __shfl_xor_sync(kAll, 10 * lane, 1);
    mine[1] = __ballot_sync(kAll, lane % 8 == 0);
    mine[2] = __reduce_add_sync(kAll, 3 * lane);
    mine[3] = __match_any_sync(kAll, lane / 8);
    values[lane] = 7 * lane;
    __syncwarp();
    mine[4] = values[lane + 1];
    mine[5] = __all_sync(kAll, lane != 1);
    mine[6] = static_cast<unsigned>(__match_any_sync(kAll, 0x1'0000'0000ull * (lane / 4)));
  } else {
    mine[0] = __shfl_xor_sync(kAll, 1000 + lane, 1);
    mine[1] = __ballot_sync(kAll, lane % 8 == 1);
    mine[2] = __reduce_add_sync(kAll, lane * lane);
    mine[3] = __match_any_sync(kAll, (lane + 8) / 8);
    values[lane] = 9 * lane;
    __syncwarp();
    mine[4] = values[lane - 1];
    mine[5] = __all_sync(kAll, lane % 2);
    mine[6] = static_cast<unsigned>(__match_any_sync(kAll, 0x1'0000'0000ull * (lane % 4)));
  }
}

// Groups of neighbours with a mask each, at the same instruction.
KERNEL tiles(int size, unsigned* out) {
  const unsigned lane = threadIdx.x, mask = ((2ull << (size - 1)) - 1) << (lane / size * size);
  out[lane] = __reduce_add_sync(mask, lane * lane);
  out[32 + lane] = __shfl_sync(mask, lane, size - 1, size);
  out[64 + lane] = __ballot_sync(mask, lane % 3 == 0);
}

// Lower and upper half have masks of their own, each at two instructions.
KERNEL halves_in_branches(unsigned* out) {
  const unsigned lane = threadIdx.x, mask = lane < 16 ? 0xffffu : 0xffff0000u;
  if (lane % 4 == 3)
    out[lane] = __reduce_add_sync(mask, lane);
  else
    out[lane] = 1000 + __reduce_add_sync(mask, 2 * lane);
}

// --- in functions

__device__ __noinline__ unsigned exchanged(unsigned value, int depth) {
  if (depth > 0) return exchanged(value + 1, depth - 1) + 1;
  return __shfl_xor_sync(kAll, value, 1);
}
__device__ __noinline__ unsigned exchanged_elsewhere(unsigned value) {
  return __shfl_xor_sync(kAll, 2 * value, 1) + 5;
}
// Neighbours are in functions at different depths, in another function, or in the kernel itself.
KERNEL in_functions(unsigned* out) {
  const unsigned lane = threadIdx.x;
  unsigned got;
  if (lane % 2 == 0)
    got = exchanged(lane, lane % 3);
  else if (lane % 4 == 1)
    got = exchanged_elsewhere(lane);
  else
    got = __shfl_xor_sync(kAll, 3 * lane, 1) + 7;
  out[lane] = got;
}

__device__ __noinline__ void meets_block(unsigned* counter, unsigned value) {
  atomicAdd(counter, value);
  asm volatile("barrier.sync 0;" ::: "memory");
}
// The block's barrier, from two calls of a function, one a branch.
KERNEL barrier_in_function(unsigned* out) {
  __shared__ unsigned counter;
  if (threadIdx.x == 0) counter = 0;
  __syncthreads();
  if (threadIdx.x % 2 == 0)
    meets_block(&counter, 1);
  else
    meets_block(&counter, 100);
  out[threadIdx.x] = counter;
}

// --- barriers of some warps

// Two warps of which some threads have ended; the second only arrives, in two branches.
KERNEL named_barrier(unsigned ends, unsigned* out) {
  __shared__ unsigned value;
  const unsigned lane = threadIdx.x % 32;
  if (threadIdx.x == 63) value = 0;
  __syncthreads();
  if (lane >= ends) return;
  if (threadIdx.x >= 32) {
    atomicAdd(&value, 1);
    if (lane % 2 == 0)
      asm volatile("barrier.arrive 3, 64;" ::: "memory");
    else
      asm volatile("barrier.arrive 3, 64;" ::: "memory");
    return;
  }
  asm volatile("barrier.sync 3, 64;" ::: "memory");
  out[lane] = value;
}

// --- each thread goes on

__device__ unsigned lock;
__device__ __noinline__ void acquire_in_function() {
  while (atomicCAS(&lock, 0, 1) != 0) {
  }
}
// A lock that all threads take, in a way that the compiler shall not change.
KERNEL takes_lock(int way, unsigned* sum) {
  volatile unsigned* const shared_sum = sum;
  if (way == 0) {  // sleeping in between, as CUDA's guide has it
    for (unsigned ns = 8; atomicCAS(&lock, 0, 1) != 0;) {
      __nanosleep(ns);
      if (ns < 256) ns *= 2;
    }
  } else if (way == 1) {  // with much to do in between
    float x = threadIdx.x;
    while (atomicCAS(&lock, 0, 1) != 0) {
#pragma unroll
      for (int i = 0; i < 64; ++i) x = x * 1.0001f + 1;
      if (x == 3) shared_sum[1] = 1;
    }
  } else if (way == 2) {  // with branches in between
    unsigned n = 0;
    while (atomicCAS(&lock, 0, 1) != 0) {
      ++n;
      if ((n + threadIdx.x) % 3 == 0)
        shared_sum[2 + threadIdx.x % 32] = n;
      else if ((n + threadIdx.x) % 3 == 1)
        shared_sum[2 + threadIdx.x % 32] = n / 2;
    }
  } else {
    acquire_in_function();
  }
  *shared_sum = *shared_sum + 1;
  __threadfence();
  atomicExch(&lock, 0);
}

// Each thread waits for its neighbour, the last one for none: upwards or downwards.
__device__ volatile unsigned flags[32];
KERNEL chain(int up, unsigned* out) {
  const unsigned lane = threadIdx.x, last = up != 0 ? 31 : 0;
  flags[lane] = 0;
  __syncwarp();
  if (lane != last) {
    const unsigned other = up != 0 ? lane + 1 : lane - 1;
    while (flags[other] == 0) {
    }
    flags[lane] = flags[other] + 1;
  } else {
    flags[lane] = 1;
  }
  out[lane] = flags[lane];
}

// --- what does wait for ever

KERNEL never_meet(unsigned* out) {
  if (threadIdx.x < 16)
    out[threadIdx.x] = __shfl_xor_sync(kAll, threadIdx.x, 1);
  else
    asm volatile("barrier.sync 0;" ::: "memory");
}
KERNEL not_in_its_mask(unsigned* out) {
  out[threadIdx.x] = __shfl_xor_sync(0xffff, threadIdx.x, 1);
}
