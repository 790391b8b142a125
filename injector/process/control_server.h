// The thread that listens for requests (common/control_address.h), and that does what is due at a
// time. Once a second it looks whether the program's threads have ended.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace flopinj {

struct ControlServer;

struct ControlDuties {
  bool listens = true;
  std::string (*answer)(std::string_view request) = nullptr;  // may take seconds
  // When the next thing is due, on CLOCK_MONOTONIC (0: nothing is), and doing all that is.
  uint64_t (*next_due_ns)() noexcept = nullptr;
  void (*do_due)(uint64_t now_ns) = nullptr;
};

// Makes the thread; idempotent. Where the socket cannot be had, which is said at the level info,
// there are no requests, and times are kept all the same. False: no thread.
bool serve_control(const ControlDuties&) noexcept;
// In a forked child: what its parent's has open, if there is one. Async-signal-safe.
void close_inherited(ControlServer*) noexcept;

}  // namespace flopinj
