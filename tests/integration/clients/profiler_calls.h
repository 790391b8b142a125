// The profiler's calls of the C library, told apart from the program's: its allocations can be made
// to fail. Not under sanitizers, which have an allocator of their own.
#pragma once

namespace client {

// `caller`: the return address of a call.
bool is_profilers(const void* caller);

// While it lives, so many allocations of the profiler succeed, and the next one fails, or all
// behind them.
class ScarceMemory {
 public:
  enum class Fails { kOne, kAllFromThere };
  enum class Of { kThisThread, kAllThreads };
  ScarceMemory(long succeed, Fails, Of);
  ~ScarceMemory();
  ScarceMemory(const ScarceMemory&) = delete;
  ScarceMemory& operator=(const ScarceMemory&) = delete;
};

// From here on the program's malloc has one lock for all threads, as simple allocators have; and
// `signal` interrupts the calling thread in it, the lock held: in the next allocation, or in the
// first of the profiler.
void interrupt_next_allocation(int signal, bool of_profiler);

}  // namespace client
