// (context, CUstream) -> the trace's stream ids.
#pragma once
#include <collector/base/mutex.h>
#include <cuda.h>
#include <injector/counters/access/contexts.h>
#include <injector/process/edge.h>

#include <atomic>
#include <map>
#include <tuple>

namespace flopinj {

struct StreamSlot;

class Streams {
 public:
  explicit Streams(Edge& edge) : edge_(edge), may_be_green_(edge.late) {}

  // A null `stream` is the legacy default stream or, with `per_thread`, the calling thread's. None
  // when CUPTI does not know it. A hit takes no lock.
  StreamId find(ThreadContext&, const Context&, CUstream stream, bool per_thread);
  // Asks the driver where find() has not seen the stream yet, in a process that may have green
  // contexts: it was seen to make one, or the recording began late.
  bool on_green_context(ThreadContext&, const Context&, CUstream stream, bool per_thread) const;
  void green_context_made();
  void stream_destroying();  // its handle may come back as another stream

 private:
  static constexpr size_t kMost = 65'536;
  // Where the stream is remembered, whether it is that one or not.
  static StreamSlot& slot_of(ThreadContext&, CUstream);
  bool remembers(const StreamSlot&, const Context&, CUstream, bool per_thread) const;
  StreamId look_up(const Context&, CUstream stream, bool per_thread, bool green);

  Edge& edge_;
  std::atomic<bool> may_be_green_;
  std::atomic<uint32_t> epoch_{1};
  Mutex mutex_;
  // CUPTI's ids of (context, stream) are never reused, so these entries do not go stale.
  // Default streams of a green context may have those of another context.
  std::map<std::tuple<uint32_t, uint32_t, bool>, StreamId> ids_ FLOPINJ_GUARDED_BY(mutex_);
};

}  // namespace flopinj
