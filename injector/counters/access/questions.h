// What launching threads want to know of the driver. Inside a callback of CUPTI NVIDIA's guide
// allows only the driver's functions that synchronise, so the planner's thread asks. Who wants the
// answer waits for it, for a bounded time.
//
//   has the work that waits ended?     from then on Context::waiting says so, until there is more
//   how much memory is free?           Asked::free_bytes
//   is the stream under capture?       of one launch (captures.h)
//   close another context's window     by Windows: a context is current on the thread of its launch
//
// An answer that comes late is no wrong one: the next launch has it. Work that is added meanwhile
// has a number of its own (waiting_streams.h).
//
// Only streams that are there may be asked about, and none under capture, which the question would
// end. So calls that destroy a stream or a context, or begin a capture, wait at their beginning
// until the driver has answered, kMostHeldUp at most: what destroys a context may hold locks of the
// driver. While any stream is under capture none is asked about; no window opens then either.
//
// Threads: functions say whose they are.
#pragma once
#include <injector/counters/access/captures.h>
#include <injector/counters/access/contexts.h>
#include <injector/counters/profiler/planner.h>
#include <injector/process/edge.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

namespace flopinj {

class Questions {
 public:
  Questions(Edge&, Planner&, Contexts&, const Captures&);

  // --- Inside callbacks; waited for so long at most -------------------------------------------
  // Whether work that waits is unfinished, as far as is known then.
  bool unfinished(Context&, std::chrono::nanoseconds most);
  // The same where it is asked seldom, so that it takes a thousandth of the time, or a hundredth of
  // a call that waited; in between what was unfinished is taken to be so still. `call_ns`: at the
  // end of a call of the program's that waited so long for the GPU; 0: at a launch. Adds to
  // `cost_ns` what it took.
  bool in_flight(Context&, uint64_t call_ns, uint64_t& cost_ns);
  // None: no answer came. 0 where the driver does not say.
  std::optional<size_t> free_memory(Context&, std::chrono::nanoseconds most);
  // Whether it is, or nobody knows. `per_thread`: the null stream is the calling thread's own, of
  // which nobody else can ask.
  bool capturing(Context&, CUstream, bool per_thread);
  // The window of a context that is not the calling thread's. False: it may be open still.
  bool close(Context&, std::chrono::nanoseconds most);

  // --- Inside callbacks, at ENTER ---------------------------------------------------------------
  void capture_beginning();  // Captures knows of it
  void stream_destroying(CUstream);
  void context_destroying(Context&);

  // --- On the planner's thread, and on one that ends the recording ------------------------------
  bool ask(Context&);  // whether work that waits is unfinished
  size_t ask_free_memory(Context&);

  // Called on the planner's thread: closes the window, or returns false where a launch is in it.
  void set_close(std::function<bool(Context&)> close) { close_ = std::move(close); }

 private:
  static constexpr auto kMostHeldUp = std::chrono::milliseconds(500);
  void answer() noexcept;
  void answer(Context&);
  bool ask_capturing(Context&);
  static void let_questions_end(Context&);

  Edge& edge_;
  Planner& planner_;
  Contexts& contexts_;
  const Captures& captures_;
  std::function<bool(Context&)> close_;
};

}  // namespace flopinj
