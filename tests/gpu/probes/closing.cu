// Whether a window can be closed in a handler of exit().
#include <cstdlib>

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

void stop_at_exit() {
  at_exit = new RangeWindows;  // lives until the process ends
  if (!at_exit->enable() || !at_exit->plan(kInstructions) || !at_exit->open(16)) return;
  std::atexit([] { say_closed("closed by a handler of exit()", *at_exit); });
  for (int i = 1; i <= 4; ++i) launch(10 * i);
}

}  // namespace probe
