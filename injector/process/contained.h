// How the program's calls of our own functions (of NVTX, and of operators) come in: nothing may
// escape into the program, and a recording that ends waits for them. A call in a signal handler
// that interrupted us on this thread is counted and does nothing, since we may hold a lock.
#pragma once
#include <injector/process/edge.h>
#include <injector/process/presence.h>
#include <injector/process/this_thread.h>

#include <type_traits>

namespace flopinj {

inline void count_interrupting_call() noexcept {
  if (Edge* const edge = recording_edge(); edge != nullptr)
    edge->collector->count_interrupting_range();
}

template <class Result, class Body>
Result contain(Result fallback, Body&& body) noexcept {
  try {
    if (RecursionGuard::inside()) {
      count_interrupting_call();
      return fallback;
    }
    const RecursionGuard guard;
    const Visit visit(guard);
    if (!visit.allowed()) return fallback;
    if constexpr (std::is_invocable_v<Body, const RecursionGuard&>)
      return body(guard);
    else
      return body();
  } catch (...) {
    return fallback;
  }
}

// The same for calls that are of no use while nothing is recorded: they then return at once, from
// anywhere, for what a few loads cost. `body` has what it needs by value, in registers; and what
// follows is a function of its own, so that these loads are all: nothing is saved for it before.
template <class Result, class Body>
[[gnu::noinline]] Result contain_recorded(Result fallback, Body body) noexcept {
  return contain(fallback, body);
}
template <class Result, class Body>
Result while_recorded(Result fallback, Body body) noexcept {
  return nothing_recorded() ? fallback : contain_recorded(fallback, body);
}

}  // namespace flopinj
