// Threads of ours in the program's process. The program's signals are for the program's threads: a
// signal to the process that found ours first would run the program's handler there.
#pragma once
#include <pthread.h>

#include <csignal>
#include <memory>
#include <new>
#include <utility>

namespace flopinj {

// Runs `body()` on a new thread, which has every signal blocked from its first moment on. False
// where there is no memory or no thread. A bare pthread, to be joined or detached by the caller: a
// forked child can do neither, and std::thread insists on one of them.
template <class Body>
bool start_thread(pthread_t& thread, Body body) noexcept {
  const auto main = [](void* argument) -> void* {
    const std::unique_ptr<Body> held(static_cast<Body*>(argument));
    (*held)();
    return nullptr;
  };
  std::unique_ptr<Body> argument(new (std::nothrow) Body(std::move(body)));
  if (argument == nullptr) return false;
  sigset_t all;
  sigset_t previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);  // a new thread inherits it
  const bool started = pthread_create(&thread, nullptr, main, argument.get()) == 0;
  if (started) (void)argument.release();
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  return started;
}

}  // namespace flopinj
