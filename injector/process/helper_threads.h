// Threads that are in the program's process because of us, and when they are the last ones: our
// own, which start_thread() starts, and those that CUPTI starts while we call it.
//
// A program whose main() ends by pthread_exit() goes on until its last thread has ended, and then
// ends by itself with exit(0). Helpers must not keep it: once only they are left, our threads end
// too, and the last of them calls exit(0), as the C library would have on the program's last. Those
// that only wait, or may be inside a library that does not answer, are not counted: they end with
// the process.
//
// A new thread has the name of the thread that started it. So a thread is a helper where it has one
// of our names: CUPTI's threads get it from ours, or from a thread of the program that was renamed
// while a recording began (CuptiThreadsAreHelpers). A thread that CUPTI starts in a later call on a
// thread of the program, or names itself, is taken for the program's: the process then goes on.
#pragma once
namespace flopinj {

// The calling thread is one of ours. Tools such as ps show its name.
void name_helper_thread(const char* name) noexcept;
// And the process does not end before it has ended.
void count_helper_thread(const char* name) noexcept;
void helper_thread_ended() noexcept;  // its last call

// The main thread has ended, and only helpers are left. While it has not, one look at /proc.
bool only_helpers_left() noexcept;

// Threads that are started by the calling thread while this lives are helpers.
class CuptiThreadsAreHelpers {
 public:
  CuptiThreadsAreHelpers() noexcept;
  ~CuptiThreadsAreHelpers();
  CuptiThreadsAreHelpers(const CuptiThreadsAreHelpers&) = delete;
  CuptiThreadsAreHelpers& operator=(const CuptiThreadsAreHelpers&) = delete;

 private:
  char before_[16] = {};
};

// The caller was called by a signal handler, directly or not: what the signal interrupted may hold
// any lock. Async-signal-safe from the second call of the process on, with glibc 2.35 or later.
bool below_signal_handler() noexcept;

}  // namespace flopinj
