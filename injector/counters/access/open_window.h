// A measurement window that is open on a context (windows.h), until its counters have been read.
#pragma once
#include <collector/schedule/scheduler.h>
#include <injector/counters/profiler/planner.h>

#include <cstdint>

namespace flopinj {

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
  const DevicePlan* plan = nullptr;
  const JointGroup* joint = nullptr;  // what is read; null: only the group of `measured`
  bool instrumented = false;
  MeasurementWindow measured;

  MetricGroup& reads() const { return joint ? *joint->group : *plan->groups[measured.group]; }
  GroupSet groups() const { return joint ? joint->parts : GroupSet(measured.group); }
};

}  // namespace flopinj
