// Streams of a context that carry work which waits: for the host (host functions), for another
// device or process (collectives), or for a value in memory. A window makes the next launch wait
// for all work in flight. Such work may wait for a later call of the program, so no window opens
// while it is unfinished.
//
//   ENTER of a call that puts such work into a stream    begin()
//   EXIT of the call                                     add() where it succeeded
//   ENTER of a call that destroys a stream               stream_destroying()
//
// Until its frame ends (call_frames.h) such a call counts as unfinished work: the gate of the
// context (windows.h) and this count are both sequentially consistent, so that one of two threads
// sees the other.
//
// The driver lets the work of a destroyed stream finish, and a thread's own stream can be named by
// that thread only. So both are followed by an event, which any thread can ask for: recorded as
// the stream goes, or behind the work. Other streams get no event, since they are the program's.
//
// Threads: any. Without such work any(), in_flight() and unfinished() are two loads.
#pragma once
#include <collector/identity/mutex.h>
#include <cuda.h>
#include <injector/counters/access/drains.h>
#include <injector/process/call_frames.h>
#include <injector/vendor/cuda_api.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace flopinj {

class WaitingStreams {
 public:
  void begin(CallFrame& frame) noexcept { frame.raise(calls_); }
  // `per_thread`: the null stream is the calling thread's own. The context is the stream's. False
  // when there is no room: then the work is taken to be unfinished for good.
  bool add(const CudaApi&, CUcontext, CUstream, bool per_thread);
  // Perhaps unfinished: without a question to the driver.
  bool any() const noexcept {
    return calls_.load(std::memory_order_seq_cst) != 0 || any_.load(std::memory_order_seq_cst);
  }
  // A call of the program's has waited for such work: the program has it again and again.
  bool come_and_go() const noexcept { return come_and_go_.load(std::memory_order_relaxed); }
  // Asks the driver about the streams that were added; finished ones are forgotten. `call_ns`: at
  // the end of a call of the program's that waited so long for the GPU.
  bool unfinished(const CudaApi&, uint64_t call_ns = 0);
  // The same for launching threads: they ask seldom, so that it takes a thousandth of their time,
  // or a hundredth of a call that waited; in between what was unfinished is taken to be so still.
  // Adds to `cost_ns` what it took.
  bool in_flight(const CudaApi&, uint64_t call_ns, uint64_t& cost_ns);
  // How long a launch may wait for what is unfinished (drains.h), and that one has.
  uint64_t may_wait_ns(uint64_t now_ns);
  void waited(uint64_t now_ns, uint64_t took_ns, bool in_vain);
  bool stream_destroying(const CudaApi&, CUcontext, CUstream);  // false as add()
  void clear();                                                 // the context is gone

 private:
  static constexpr size_t kMost = 256;  // with waiting work at once
  static constexpr uint64_t kAskEveryNs = 1'000'000, kMostUnaskedNs = 100'000'000;
  static constexpr uint64_t kTimesOfAsking = 1'000, kTimesInCall = 100;

  struct Stream {
    CUstream handle = nullptr;
    CUevent behind = nullptr;  // where it is not null it is asked for, and not the stream
  };
  Stream* find(CUstream) noexcept FLOPINJ_REQUIRES(mutex_);
  static CUevent event_behind(const CudaApi&, CUcontext, CUstream);
  void forget_finished(const CudaApi&) FLOPINJ_REQUIRES(mutex_);

  std::atomic<uint32_t> calls_{0};
  std::atomic<bool> any_{false};  // there is one in streams_, or one was lost
  std::atomic<bool> come_and_go_{false};
  std::atomic<uint64_t> ask_at_ns_[2]{};  // at a launch, and at the end of such a call: when next
  std::atomic<uint64_t> asking_ns_{0};    // took so long the last time
  Mutex mutex_;
  std::array<Stream, kMost> streams_ FLOPINJ_GUARDED_BY(mutex_){};
  size_t count_ FLOPINJ_GUARDED_BY(mutex_) = 0;  // so many of them
  bool lost_ FLOPINJ_GUARDED_BY(mutex_) = false;
  Drains drains_ FLOPINJ_GUARDED_BY(mutex_);
};

}  // namespace flopinj
