// The subscriber: receives CUPTI's callbacks and hands each to the class that knows what to do.
//
//   launches   driver-API launch functions: ENTER and EXIT (launches.h)
//   graphs     driver-API graph functions, and what CUPTI reports of nodes (graphs.h)
//   resources  contexts, streams and modules coming and going
//
// Only the driver domain is asked for, so a launch made through the CUDA runtime is seen once.
#pragma once
#include <injector/process/edge.h>

#include <memory>
#include <string>

namespace flopinj {

class Tracer {
 public:
  explicit Tracer(Edge&);
  ~Tracer();

  // False, with one line in `error` that says what to do, when CUPTI refuses.
  bool subscribe(std::string& error);
  // Goes on with a subscription whose callback is ours. Until enable() has succeeded, end() keeps
  // it.
  void adopt(CUpti_SubscriberHandle);
  static CUpti_CallbackFunc callback();
  bool enable(std::string& error);
  // Closes the open windows and ends the callbacks. Other threads may be inside callbacks: what
  // those use stays alive. Takes a few seconds at the very most. Idempotent.
  void disable() noexcept;
  // The same, and the subscription ends. Records that are a subscriber's own end with it: the last
  // have to be there before.
  void end() noexcept;
  // end() while the program goes on: CUPTI itself is let go of, where no other client is known to
  // use it. A launch would pay for it else. CUPTI's guide ("Dynamic attach and detach") has this
  // done at the EXIT of a call of the program's, as PyTorch's profiler does: where no call comes
  // for a second, the subscription ends and CUPTI stays. On a thread of the program's it makes such
  // a call itself. True: CUPTI has ended, or our own part of it.
  bool end_and_finalize(bool programs_thread) noexcept;
  void end_measuring() noexcept;  // no window opens any more; launches are recorded still
  bool capturing() const;         // a stream is under capture
  // disable() would spoil something of the program's, or leave the counters as they are.
  bool is_disturbed();
  // After disable(): false where the planner's thread is still at work.
  bool planner_ended() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace flopinj
