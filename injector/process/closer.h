// The thread that ends a recording where a signal handler calls exit().
//
// exit() in a signal handler is not allowed, and done all the same: by most programs that catch
// SIGTERM. The handler's thread may have been interrupted anywhere, in malloc too, with a lock held
// that no thread can give back before the handler returns, which it does not. So that thread takes
// no lock, no memory and starts no thread. It asks this one, which has been there since the
// recording began, and waits for it only so long. Where this one needs what the handler's thread
// holds, it waits too, and the trace lacks its end.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>

namespace flopinj {

// In the process's one object; a forked child has none.
struct CloserThread {
  enum State : uint32_t { kNone, kWaiting, kAsked, kDone, kDismissed };
  std::atomic<uint32_t> state{kNone};  // a futex
};

// Under SessionState::changing. `close` is called once, if it is asked for. False: no thread can be
// had.
bool start_closer(void (*close)() noexcept) noexcept;
// Likewise. The thread looks at nothing of the recording's any more then, unless it was asked
// before.
void dismiss_closer() noexcept;

// Async-signal-safe. True once it has closed the recording, or there was none any more; false after
// `at_most`: it still tries.
bool ask_closer(std::chrono::milliseconds at_most) noexcept;

}  // namespace flopinj
