// A measurement window that is open on a context (windows.h), until its counters have been read.
#pragma once
#include <collector/schedule/scheduler.h>

#include <cstdint>

namespace flopinj {

struct DevicePlan;
struct ThreadContext;

// Rows of a window are pending in the scheduler until it is settled: by its samples, by the blame
// for its failure, or else by its end.
struct OpenWindow {
  explicit OpenWindow(MeasurementScheduler& s) : scheduler(s) {}
  ~OpenWindow() {
    if (!settled) scheduler.window_unread(measured);
  }
  OpenWindow(const OpenWindow&) = delete;
  OpenWindow& operator=(const OpenWindow&) = delete;

  MeasurementScheduler& scheduler;
  bool settled = false;
  DevicePlan* plan = nullptr;
  const ThreadContext* opener = nullptr;
  bool finished = false;  // to be closed at the next ENTER
  bool instrumented = false;
  uint32_t modules_at_open = 0;  // Context::modules_loaded
  MeasurementWindow measured;
};

}  // namespace flopinj
