// Streams of a context that carry work which waits: for the host (host functions), for another
// device or process (collectives), or for a value in memory. A window makes the next launch wait
// for all work in flight. Such work may wait for a later call of the program, so no window opens
// while it is unfinished.
//
//   ENTER of a call that puts such work into a stream    begin()
//   EXIT of the call                                     add() where it succeeded
//   ENTER of a call that destroys a stream               stream_destroying()
//   ENTER and EXIT of the program's own waits            added(), stream_ended() or all_ended()
//   a thread that may ask the driver (questions.h)       ask()
//
// Until its frame ends (call_frames.h) such a call counts as unfinished work: the gate of the
// context (windows.h) and this count are both sequentially consistent, so that one of two threads
// sees the other. Work has numbers, so that what is added while the driver is asked stays
// unfinished.
//
// The driver lets the work of a destroyed stream finish, and a thread's own stream can be named by
// that thread only. When such work ends nobody can ask, as when there are too many streams: it is
// lost until the program waits for all work of the context (cuCtxSynchronize).
//
// Threads: any. Without such work any() is two loads.
#pragma once
#include <collector/base/mutex.h>
#include <cuda.h>
#include <injector/counters/access/drains.h>
#include <injector/process/call_frames.h>
#include <injector/vendor/cuda_api.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace flopinj {

class WaitingStreams {
 public:
  void begin(CallFrame& frame) noexcept { frame.raise(calls_); }
  // `per_thread`: the null stream is the calling thread's own. False where there is no room.
  bool add(CUstream, bool per_thread) noexcept;
  // Perhaps unfinished, as far as is known.
  bool any() const noexcept {
    return calls_.load(std::memory_order_seq_cst) != 0 || any_.load(std::memory_order_seq_cst);
  }
  // A call of the program's has waited for such work: the program has it again and again.
  bool come_and_go() const noexcept { return come_and_go_.load(std::memory_order_relaxed); }

  // The number of the work that was added last.
  uint64_t added() const noexcept { return added_.load(std::memory_order_acquire); }
  // A call of the program's has waited so long, or found it so: work of the stream, or all work of
  // the context, up to that number is over.
  void stream_ended(CUstream, bool per_thread, uint64_t work, uint64_t call_ns);
  void all_ended(uint64_t work, uint64_t call_ns);
  // Asks the driver about the streams that were added; finished ones are forgotten. True: some work
  // is unfinished. The context is current, and no stream is destroyed or captured meanwhile.
  bool ask(const CudaApi&);
  bool holds(CUstream) const;
  void stream_destroying(CUstream);
  void clear();  // the context is gone

  // How long a launch may wait for what is unfinished (drains.h), and that one has.
  uint64_t may_wait_ns(uint64_t now_ns);
  void waited(uint64_t now_ns, uint64_t took_ns, bool in_vain);

  void wanted(uint64_t now_ns) { wanted_ns_.store(now_ns, std::memory_order_relaxed); }
  // A launch wanted a window since the last one was opened, and such work was in flight.
  bool turned_away() const { return turned_away_.load(std::memory_order_relaxed); }
  void turn_away() { turned_away_.store(true, std::memory_order_relaxed); }
  void opened() { turned_away_.store(false, std::memory_order_relaxed); }
  // Whether a launch may have the driver asked now, or (`call_ns` is not 0) a call that waited so
  // long: where a launch wanted a window lately, or counters are due to be given back.
  bool may_ask(uint64_t now_ns, uint64_t call_ns, bool due) const;
  // The call that has it asked now; 0: none does.
  void call_waited(uint64_t call_ns) { call_ns_.store(call_ns, std::memory_order_relaxed); }
  void was_asked(uint64_t now_ns, uint64_t took_ns, uint64_t call_ns, bool some);

 private:
  static constexpr size_t kMost = 256;  // with waiting work at once
  static constexpr uint64_t kAskEveryNs = 1'000'000, kMostUnaskedNs = 100'000'000;
  static constexpr uint64_t kTimesOfAsking = 1'000, kTimesInCall = 100;
  static constexpr uint64_t kWantedForNs = 10'000'000'000;

  struct Stream {
    CUstream handle = nullptr;
    uint64_t work = 0;  // the number of what was added last
  };
  std::span<Stream> streams() FLOPINJ_REQUIRES(mutex_) { return {streams_.data(), count_}; }
  std::span<const Stream> streams() const FLOPINJ_REQUIRES(mutex_) {
    return {streams_.data(), count_};
  }
  Stream* find(CUstream) noexcept FLOPINJ_REQUIRES(mutex_);
  template <class Matches>
  void forget(Matches) FLOPINJ_REQUIRES(mutex_);
  void look_at_end(uint64_t call_ns) FLOPINJ_REQUIRES(mutex_);

  std::atomic<uint32_t> calls_{0};
  std::atomic<bool> any_{false};  // there is one in streams_, or some is lost
  std::atomic<bool> come_and_go_{false}, turned_away_{false};
  std::atomic<uint64_t> added_{0}, call_ns_{0};
  std::atomic<uint64_t> ask_at_ns_[2]{};  // at a launch, and at the end of such a call: when next
  std::atomic<uint64_t> asking_ns_{0};    // took so long the last time
  std::atomic<uint64_t> wanted_ns_{0};    // a window, by a launch: the last time
  mutable Mutex mutex_;                   // not held while the driver is asked
  std::array<Stream, kMost> streams_ FLOPINJ_GUARDED_BY(mutex_){};
  size_t count_ FLOPINJ_GUARDED_BY(mutex_) = 0;   // so many of them
  uint64_t lost_ FLOPINJ_GUARDED_BY(mutex_) = 0;  // the last work that nobody can ask for; 0: none
  Drains drains_ FLOPINJ_GUARDED_BY(mutex_);
};

}  // namespace flopinj
