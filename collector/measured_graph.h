// An executable graph whose launches may be measured, as the launch path and the scheduler see it.
#pragma once
#include <collector/graph_window.h>
#include <collector/measuring_budget.h>

#include <atomic>
#include <cstdint>
#include <vector>

namespace flopinj {

struct MeasuredGraph {
  // As of GraphRanges; fixed.
  std::vector<GraphKernel> kernels;
  bool ordered = false;

  // A launch is to ask the scheduler. Read relaxed at every launch of the graph; the scheduler's to
  // write.
  std::atomic<bool> wants{true};

  // The scheduler's, under its lock. Groups by index in the plan.
  uint32_t failures = 0, rounds = 0;
  uint64_t read = 0;              // groups that windows of it have given
  uint64_t round = 0;             // groups that are to be read once more
  uint64_t next_at = 0;           // launches of its first kernel, then the next round is due
  std::vector<uint64_t> call_ns;  // by group: the last launch in a window of it
};

// A window that held one launch of the graph.
struct GraphWindow {
  DeviceId device;
  uint32_t group = 0;  // index into the plan
  MeasuredGraph* graph = nullptr;
  WindowCost cost;
};

}  // namespace flopinj
