// Streams of a context that carry work which waits: for the host (host functions), for another
// device or process (collectives), or for a value in memory. A window makes the next launch wait
// for all work in flight. Such work may wait for a later call of the program, so no window opens
// while it is unfinished.
//
//   ENTER of a call that puts such work into a stream    begin()
//   EXIT of the call                                     add() where it succeeded, then end()
//
// A thread between begin() and end() counts as unfinished work: the gate of the context (windows.h)
// and this count are both sequentially consistent, so that one of two threads sees the other.
//
// Threads: any. Without such work unfinished() is two loads.
#pragma once
#include <collector/identity/mutex.h>
#include <cuda.h>
#include <injector/vendor/cuda_api.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace flopinj {

class WaitingStreams {
 public:
  void begin() noexcept { calls_.fetch_add(1, std::memory_order_seq_cst); }
  void end() noexcept { calls_.fetch_sub(1, std::memory_order_seq_cst); }
  // `per_thread`: the null stream is the calling thread's own.
  void add(CUstream, bool per_thread);
  // Asks the driver about the streams that were added; finished ones are forgotten.
  bool unfinished(const CudaApi&);
  void stream_destroying(CUstream);
  void clear();  // the context is gone

 private:
  // More streams than that with waiting work at once: then nothing is measured any more.
  static constexpr size_t kMostStreams = 256;

  struct Stream {
    CUstream handle;
    std::thread::id owner;  // of a thread's own stream, which only that thread can name
  };

  std::atomic<uint32_t> calls_{0};
  std::atomic<bool> any_{false};  // streams_ is not empty
  Mutex mutex_;
  std::vector<Stream> streams_ FLOPINJ_GUARDED_BY(mutex_);
};

}  // namespace flopinj
