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
// Threads: any. Without such work unfinished() is two loads.
#pragma once
#include <collector/identity/mutex.h>
#include <cuda.h>
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
  // Asks the driver about the streams that were added; finished ones are forgotten.
  bool unfinished(const CudaApi&);
  bool stream_destroying(const CudaApi&, CUcontext, CUstream);  // false as add()
  void clear();                                                 // the context is gone

 private:
  static constexpr size_t kMost = 256;  // with waiting work at once

  struct Stream {
    CUstream handle = nullptr;
    CUevent behind = nullptr;  // where it is not null it is asked for, and not the stream
  };
  Stream* find(CUstream) noexcept FLOPINJ_REQUIRES(mutex_);
  static CUevent event_behind(const CudaApi&, CUcontext, CUstream);
  void forget_finished(const CudaApi&) FLOPINJ_REQUIRES(mutex_);

  std::atomic<uint32_t> calls_{0};
  std::atomic<bool> any_{false};  // there is one in streams_, or one was lost
  Mutex mutex_;
  std::array<Stream, kMost> streams_ FLOPINJ_GUARDED_BY(mutex_){};
  size_t count_ FLOPINJ_GUARDED_BY(mutex_) = 0;  // so many of them
  bool lost_ FLOPINJ_GUARDED_BY(mutex_) = false;
};

}  // namespace flopinj
