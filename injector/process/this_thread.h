// The calling thread as we know it: one thread-local record, reached without a call into the
// loader, and one key of the C library that hands everything back when the thread ends.
//
// Functions that work on a thread's state ask for a RecursionGuard, the proof that the caller is
// inside our own code: CUDA calls that we make (or that CUPTI makes for us) are then not taken for
// the program's.
//
// Where the program has taken all keys of the C library, threads that end keep their memory and
// their place in the collector's table. That is reported once (diagnostic process.thread_keys).
#pragma once
#include <collector/writer/thread_state.h>
#include <pthread.h>

#include <cstdint>

namespace flopinj {

struct Context;
struct Presence;
struct ThreadContext;

struct ThreadSlot {
  ThreadState* state;
  ThreadContext* context;
  Presence* presence;
  uint32_t epoch;  // of state and context; a recording begins a new one, and so does a forked child
  bool inside;     // our own code
};
// initial-exec: a plain %fs-relative access. The few bytes fit the reserve that glibc keeps for
// libraries loaded later.
extern constinit thread_local ThreadSlot this_thread_slot
    __attribute__((tls_model("initial-exec")));

class RecursionGuard {
 public:
  RecursionGuard() noexcept : outer_(this_thread_slot.inside) { this_thread_slot.inside = true; }
  ~RecursionGuard() { this_thread_slot.inside = outer_; }
  RecursionGuard(const RecursionGuard&) = delete;
  RecursionGuard& operator=(const RecursionGuard&) = delete;
  static bool inside() noexcept { return this_thread_slot.inside; }

 private:
  bool outer_;
};

// Within our own code: calls that are taken for the program's.
class ForTheProgram {
 public:
  ForTheProgram() noexcept : before_(this_thread_slot.inside) { this_thread_slot.inside = false; }
  ~ForTheProgram() { this_thread_slot.inside = before_; }
  ForTheProgram(const ForTheProgram&) = delete;
  ForTheProgram& operator=(const ForTheProgram&) = delete;

 private:
  bool before_;
};

// The thread is not cancelled while it lives. Our frames have an unwinder of their own, which the C
// library's forced unwinding of a cancelled thread cannot pass: around whatever may wait.
class NoCancellation {
 public:
  NoCancellation() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancellation() { pthread_setcancelstate(before_, nullptr); }
  NoCancellation(const NoCancellation&) = delete;
  NoCancellation& operator=(const NoCancellation&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

// The collector's part, made at the thread's first call and retired when it ends. Null when
// recording is off or the table of threads is full.
ThreadState* thread_state(const RecursionGuard&) noexcept;
// All of it, made at the thread's first callback of CUPTI and freed when it ends. Null without
// memory.
ThreadContext* thread_context(const RecursionGuard&) noexcept;

// True where the calling thread is between ENTER and EXIT of a launch that is recorded.
bool launching() noexcept;

// True while a thread other than `self` is launching on `context` outside of a window.
bool others_launching(const ThreadContext* self, const Context&) noexcept;

// Has what the calling thread keeps of ours handed back when it ends. False: the program has taken
// all keys.
bool hand_back_at_end_of_thread() noexcept;

// What threads have is of a recording that has ended. Followed by visits_ended(), and then by
// drop_contexts(), which frees what threads kept if no thread is inside, and else forgets it.
void end_epoch() noexcept;
void drop_contexts(bool nobody_inside) noexcept;
// In a forked child, whose only thread is the caller: what it had in the parent is not the child's.
// Async-signal-safe.
void forget_thread() noexcept;

}  // namespace flopinj
