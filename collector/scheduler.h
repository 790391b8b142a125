// Decides when counters are read. Pure logic: the edge asks at launches, opens and closes windows,
// and reports back.
//
// Every signature wants `samples_per_group` samples of every group of its device's plan; of a group
// with conditions (MetricGroupPlan::needed_if) only once a sample of it has shown one of them. A window for group g opens at the first launch that wants g, and covers what is launched
// next on that context until it is full, nobody in it wanted g for a while, or it has been open too
// long. A signature whose windows keep failing is given up; after a failure it is the last row of
// its next window, so that the others around it are not given up with it.
//
// The launch path reads Signature::wanted_groups alone; everything here is reached only when that
// is not zero. Threads: all functions may be called from any thread; they lock, except
// group_to_open where nothing is wanted on that device, and close_before. Nothing throws: without
// memory a signature is not measured any more.
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
  // Windows in a row that failed on a signature, then it is given up; and windows in a row that
  // failed without any row, then the group is given up on its device.
  uint32_t max_failures = 3;
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
  // all signatures known so far want those without conditions. Empty result: no bits left for all of them, the device
  // is not measured. A device that has a plan keeps it: the same ids are returned.
  std::vector<GroupId> add_plan(DeviceId, const std::vector<MetricGroupPlan>&);
  // Counters are unavailable on this device: nothing wants its groups any more.
  void disable(DeviceId) noexcept;
  void disable_all() noexcept;

  // What a new signature is to want.
  uint64_t initial_wanted() const noexcept;

  // At a launch on `device` with no window open on its context: the group to open a window for, if
  // any. Index into the plan given to add_plan. Never for functions marked never_measure.
  std::optional<uint32_t> group_to_open(DeviceId, const Signature&) const noexcept;

  // While a window is open: should it be closed before (`next` must not be measured, or is a graph
  // launch: null) or after the rows so far?
  bool close_before(const Signature* next) const noexcept;
  bool close_after(DeviceId, uint32_t group, std::span<const WindowRow> rows, uint64_t opened_ns,
                   uint64_t now_ns) const noexcept;

  // A window's outcome: the counters of all its rows were read, or of none. `values` is rows x
  // metrics of the group, row by row. A window that could not be opened has failed with no rows, or
  // with the one it was opened for.
  void window_succeeded(DeviceId, uint32_t group, std::span<const WindowRow> rows,
                        std::span<const double> values) noexcept;
  void window_failed(DeviceId, uint32_t group, std::span<const WindowRow> rows) noexcept;

  const SchedulerConfig& config() const;
  uint64_t windows_opened() const;  // whose outcome is known
  uint64_t windows_discarded() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace flopinj
