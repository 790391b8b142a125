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

}  // namespace client
