// Our own threads in the program's process, which start_thread() starts: their names, and when they
// are the last ones.
//
// A program whose main() ends by pthread_exit() goes on until its last thread has ended, and then
// ends by itself with exit(0). Our threads must not keep it: once only they are left, they end too,
// and the C library calls exit(0) on the last of them as it would have on the program's.
#pragma once
#include <chrono>
#include <functional>

namespace flopinj {

// The calling thread is one of ours. Tools such as ps show its name.
void count_helper_thread(const char* name) noexcept;
void helper_thread_ended() noexcept;  // its last call

// The main thread has ended, and nobody but helpers is left. One or two looks at /proc.
bool only_helpers_left() noexcept;

// Runs `task` on a thread of its own and waits for it, at most so long. False: it still runs, and
// is left behind. Where no thread can be had it runs here.
bool run_aside(std::function<void()> task, std::chrono::milliseconds at_most);

// The caller was called by a signal handler, directly or not: what the signal interrupted may hold
// any lock.
bool below_signal_handler() noexcept;

}  // namespace flopinj
