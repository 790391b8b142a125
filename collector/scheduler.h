// Decides when counters are read. Pure logic: the edge asks at launches, opens and closes windows,
// and reports back.
//
// First version: every signature wants `samples_per_group` samples of every group of its device's
// plan. A window for group g opens at the first launch that wants g, and covers what is launched
// next on that context until it is full, nobody in it wanted g for a while, or it has been open too
// long. A signature whose windows keep failing is given up.
//
// The launch path reads Signature::wanted_groups alone; everything here is reached only when that
// is not zero. Threads: all functions may be called from any thread; they lock.
#pragma once
#include <collector/ids.h>
#include <collector/metric_plan.h>
#include <collector/signature_table.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace flopinj {

struct SchedulerConfig {
  uint32_t samples_per_group = 3;
  uint32_t max_ranges = 512;    // launches in one window: CUPTI's maxRangesPerPass
  uint32_t idle_launches = 16;  // close after so many launches that did not want the group
  uint64_t max_open_ns = 200'000'000;
  uint32_t max_failures = 3;  // windows in a row that failed on a signature, then it is given up
};

// One launch inside a window, in execution order.
struct WindowRow {
  const Signature* signature = nullptr;
  PathId path;
};

class MeasurementScheduler {
 public:
  MeasurementScheduler(SchedulerConfig, SignatureTable&);
  ~MeasurementScheduler();

  // A device's plan is ready: its groups get ids (for the trace) and bits (for wanted_groups), and
  // all signatures known so far want them. Empty result: no bits left, the device is not measured.
  std::vector<GroupId> add_plan(DeviceId, const std::vector<MetricGroupPlan>&);
  // Counters are unavailable on this device: nothing wants its groups any more.
  void disable(DeviceId);
  void disable_all();

  // What a new signature is to want.
  uint32_t initial_wanted() const;

  // At a launch on `device` with no window open on its context: the group to open a window for, if
  // any. Index into the plan given to add_plan. Never for functions marked never_measure.
  std::optional<uint32_t> group_to_open(DeviceId, const Signature&);

  // While a window is open: should it be closed before (`next` must not be measured, or is a graph
  // launch: null) or after the rows so far?
  bool close_before(const Signature* next) const;
  bool close_after(DeviceId, uint32_t group, std::span<const WindowRow> rows, uint64_t opened_ns,
                   uint64_t now_ns) const;

  // A window's outcome. `sampled`: the rows whose counters were read, all or none.
  void window_succeeded(DeviceId, uint32_t group, std::span<const WindowRow> rows);
  void window_failed(DeviceId, uint32_t group, std::span<const WindowRow> rows);

  const SchedulerConfig& config() const;
  uint64_t windows_opened() const;
  uint64_t windows_discarded() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace flopinj
