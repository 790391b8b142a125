// Streams under capture, of the whole process.
//
// Reading counters synchronises the context. CUDA forbids that while any of its streams is under
// capture, and in global mode anywhere in the process: the program's capture would become invalid.
// So no measurement window is open meanwhile (windows.h).
//
// A capture counts from the ENTER of the call that begins it until it has ended, or its stream or
// context is gone.
//
// A call under capture makes a node, which CUPTI reports inside of the call (graphs.h): so it is
// known at its EXIT. Were the report of work that waits missing, its stream would be asked about
// once no capture goes on any more (questions.h).
//
// Captures that began before the recording did are not known. So for a while after a late start
// any() is true, and each call that makes a node prolongs the while. A program that starts the
// recording itself knows what it captures: its first call that makes no node ends the while, and so
// that this call is measured, too, the planner's thread asks of its stream (questions.h).
//
// Threads: any. any() is one load; the rest locks.
#pragma once
#include <collector/base/mutex.h>
#include <cuda.h>
#include <injector/process/call_frames.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

namespace flopinj {

class Captures {
 public:
  // A capture seldom goes on so long without a launch, and never ends measuring for good.
  static constexpr uint64_t kUnknownForNs = 2'000'000'000, kUnknownAtMostNs = 60'000'000'000;

  explicit Captures(bool late = false, bool from_inside = false);
  bool any() const { return count_.load(std::memory_order_seq_cst) != 0; }
  bool known() const { return count_ > (unknown_until_ns_ != 0 ? 1U : 0U); }  // any, for certain
  // At EXIT of a call that put work into a stream, or made a node, while any(). Before it, where
  // the driver says of the stream that it is under no capture.
  void seen(bool made_node);
  // Whether the driver is to be asked of the stream of this launch. True once.
  bool asks_first() { return believes_.load() && believes_.exchange(false); }

  void beginning(CallFrame&);  // at ENTER of a call that begins one
  // At EXIT of one that did. False where there is no room: then it is taken to go on for good.
  bool begun(CallFrame&, CUcontext, CUstream);
  void ended(CUcontext, CUstream);  // the stream is under capture no more

  void stream_destroying(CUstream);
  void context_destroying(CUcontext);

 private:
  static constexpr size_t kMost = 256;  // at once
  // The legacy default stream cannot be captured. Threads' own default streams share one handle.
  struct Captured {
    CUcontext context = nullptr;
    CUstream stream = nullptr;
    std::thread::id thread;  // of a default stream only
  };
  template <class Matches>
  void drop(Matches);

  // Beginning, in `streams_`, without room there, and one while there may be unknown ones.
  std::atomic<uint32_t> count_{0};
  std::atomic<uint64_t> unknown_until_ns_{0};  // 0: there are none
  std::atomic<bool> believes_;                 // the driver's word of the first launch's stream
  const uint64_t unknown_at_most_until_ns_;
  Mutex mutex_;
  std::array<Captured, kMost> streams_ FLOPINJ_GUARDED_BY(mutex_);
  size_t captured_ FLOPINJ_GUARDED_BY(mutex_) = 0;  // so many of them
};

}  // namespace flopinj
