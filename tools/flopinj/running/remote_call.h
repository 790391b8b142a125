// Calling functions in another process, on one of its threads, as if a signal handler had called
// them. No other thread is stopped, and nothing of the process is written but free stack.
//
// 1. A thread is chosen that waits or sleeps in a system call of the C library: no thread does so
//    with a lock of the allocator or loader held, and none of its registers is in use but those
//    that a function keeps. It has to be on the stack that the C library made for it, with room,
//    and in no signal handler.
// 2. Below its stack pointer two frames are written such as the kernel writes for a signal. The
//    first begins the function with all signals blocked. The function's return address is that of a
//    signal handler, so that the kernel then takes the second: the registers, the stack, and the
//    blocked signals from before. The thread makes its system call again.
// 3. One request to the kernel sends the thread there. Before it nothing has changed; after it the
//    thread does all that is left on its own. So the end of this program at any moment, by SIGKILL
//    too, costs the process nothing, and signals come before or after the call, never inside.
//
// Only a wait without a limit, or one that has not begun yet, is left and made again: others would
// last longer. Where this program is still there at the end, it gives the kernel the state of the
// left system call back, so that a signal that came meanwhile ends it, as it would have.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace flopinj {

using Moment = std::chrono::steady_clock::time_point;

// What a thread may be asked to call: a function with at most two arguments, the first of which is
// a text where `text` is not empty.
struct RemoteCall {
  uint64_t function = 0;
  std::string text;
  uint64_t first = 0, second = 0;
};

enum class CallEnd {
  kDone,
  kNotNow,   // the thread was in no such place, or the kernel refuses it: nothing has happened
  kStopped,  // by SIGSTOP, before or within the calls: those that began go on when it is continued
  kEnded,    // the thread, within a call
  kLate      // a call waits, for a lock of another thread perhaps; it goes on
};

// Which threads of the process may be in a place to enter: those that wait in such a system call.
// `for_ever`: with no limit of time.
struct WaitingThread {
  pid_t tid = 0;
  bool for_ever = false;
};
std::vector<WaitingThread> waiting_threads(pid_t);

// Makes the calls in turn in this thread. `next` gives each once those before it are done, since a
// library is where the loader puts it; nothing from it ends them. The thread is watched until
// `entered_by` for a place to enter, and until `until` for the end of the calls.
CallEnd call_in_thread(pid_t, WaitingThread, Moment entered_by, Moment until,
                       const std::function<std::optional<RemoteCall>()>& next);

// Whether this program knows how, on this kind of CPU.
bool can_call_remotely();

}  // namespace flopinj
