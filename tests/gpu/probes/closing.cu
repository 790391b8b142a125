// From where a window can be closed: another thread than the launching one, a handler of exit().
#include <cstdlib>
#include <thread>

#include "probe.h"

namespace probe {
namespace {

void say_closed(const char* what, RangeWindows& windows) {
  const size_t ranges = windows.close();
  say_count(std::string(what) + ": ranges of 4 launches", ranges);
  for (size_t i = 0; i < ranges; ++i)
    say_count(std::string(what) + ": steps in range " + std::to_string(i),
              static_cast<uint64_t>(steps_of(windows.values(i))));
}

RangeWindows* at_exit = nullptr;

}  // namespace

void stop_on_other_thread() {
  for (const bool with_context : {true, false}) {
    RangeWindows windows;
    if (!windows.enable() || !windows.plan(kInstructions) || !windows.open(16)) return;
    for (int i = 1; i <= 4; ++i) launch(10 * i);
    observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    CUcontext context = nullptr;
    cuCtxGetCurrent(&context);
    std::thread([&] {
      if (with_context) cuCtxSetCurrent(context);
      say_closed(with_context ? "closed on another thread with the context current"
                              : "closed on another thread without a current context",
                 windows);
    }).join();
    windows.disable();
  }
}

void stop_at_exit() {
  at_exit = new RangeWindows;  // lives until the process ends
  if (!at_exit->enable() || !at_exit->plan(kInstructions) || !at_exit->open(16)) return;
  std::atexit([] { say_closed("closed by a handler of exit()", *at_exit); });
  for (int i = 1; i <= 4; ++i) launch(10 * i);
}

}  // namespace probe
