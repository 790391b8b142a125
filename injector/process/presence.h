// Which of the program's threads are inside us, so that what a recording used can be freed when it
// has ended and the program goes on.
//
// Every way in (a callback of CUPTI, a call of NVTX, the end of a thread) makes a Visit before it
// looks for a recording. A thread that ends one hides it first, so that later visits do not find
// it, and then waits for the earlier ones. A visit is a store to memory of the thread's own: the
// kernel orders it for the thread that waits (membarrier); only where it cannot, a fence does.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>

namespace flopinj {

class RecursionGuard;

// One thread's, on a cache line of its own; this_thread.h finds the caller's.
struct alignas(64) Presence {
  std::atomic<uint32_t> visits{0};  // inside one another; written by its thread
};

class Visit {
 public:
  // The guard keeps signal handlers of this thread out, which would find the list of threads
  // locked.
  explicit Visit(const RecursionGuard&) noexcept;
  ~Visit() {
    if (presence_ == nullptr) return;
    presence_->visits.store(presence_->visits.load(std::memory_order_relaxed) - 1,
                            std::memory_order_release);
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  // False: there is no memory for the thread's presence, and nothing of a recording may be used.
  bool allowed() const { return presence_ != nullptr; }

 private:
  Presence* presence_;
};

// True once every visit that began before the call has ended; false after `at_most`, or where that
// cannot be known. The caller's own thread is not waited for.
bool visits_ended(std::chrono::milliseconds at_most) noexcept;

// The thread ends: it has no presence from now on.
void forget_presence() noexcept;
}  // namespace flopinj
