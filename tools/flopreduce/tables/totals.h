// What pass two adds up.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "reader/skipped_steps.h"
#include "support/members.h"
#include "support/packed_lists.h"
#include "support/packed_rows.h"
#include "support/wide.h"
#include "tables/busy_time.h"
#include "tables/flop_series.h"

namespace flopinj::reduce {

// Launches and their GPU time. Times of launches made while counters were read are kept apart:
// those launches ran one at a time, and slower where the kernel was instrumented.
struct Counts {
  uint64_t launches = 0;  // all of them
  uint64_t timed = 0;     // outside windows
  uint64_t time_ns = 0;
  uint64_t windowed = 0;  // of launches
  uint64_t windowed_timed = 0;
  uint64_t windowed_time_ns = 0;
  uint64_t graph = 0;  // of launches, from graph launches
  uint64_t green = 0;  // of launches, the others that were made on green contexts
  uint64_t calls = 0;  // of launches, those that were the first one of a call of an operator

  template <typename Self>
  static auto sums(Self& of) {
    auto& [launches, timed, time_ns, windowed, windowed_timed, windowed_time_ns, graph, green,
           calls] = of;
    return std::tie(launches, timed, time_ns, windowed, windowed_timed, windowed_time_ns, graph,
                    green, calls);
  }
  // False when a sum was held at its largest value.
  bool add(const Counts& o) { return add_each(sums(*this), sums(o)); }
};

// One line of the joined table.
struct Row {
  uint32_t signature = 0;
  uint32_t chip = 0;
  uint32_t path = 0;
  uint32_t rule = 0;  // PhaseRules::rules()
  Counts counts;
};

// Launches of one signature on one device of one process, for the ledger.
struct DeviceRow {
  uint32_t device = 0;  // TraceTables::devices
  uint64_t launches = 0;
  uint64_t graph = 0;  // of launches, from graph launches

  template <typename Self>
  static auto packed(Self& of) {
    return std::tie(of.device, of.launches, of.graph);
  }
  // False when a sum was held at its largest value.
  bool add(const DeviceRow& o) {
    const bool all = add_saturating(launches, o.launches);
    return add_saturating(graph, o.graph) && all;
  }
};
using DeviceRows = PackedLists<uint32_t, DeviceRow>;  // by signature

// Likewise, in one range path and by one phase rule: the times of launches outside of windows.
struct TimedPlace {
  uint32_t signature = 0;
  uint32_t path = 0;  // only where there are several devices, whose kernels are compared
  uint32_t rule = 0;  // PhaseRules::rules()
  auto operator<=>(const TimedPlace&) const = default;
};
struct TimedRow {
  uint32_t device = 0;                       // TraceTables::devices
  uint64_t launches = 0, timed = 0, ns = 0;  // all of them; with a time, and these times' sum

  template <typename Self>
  static auto packed(Self& of) {
    return std::tie(of.device, of.launches, of.timed, of.ns);
  }
  bool add(const TimedRow& o) {
    bool all = add_saturating(launches, o.launches);
    all = add_saturating(timed, o.timed) && all;
    return add_saturating(ns, o.ns) && all;
  }
};
using TimedRows = PackedLists<TimedPlace, TimedRow>;

// When launches of one device of one process ran.
struct DeviceTime {
  uint64_t placed = 0;          // launches whose start and end are known
  uint64_t unplaced = 0;        // launches without: counted by a tally, or never timed
  SkippedLaunches skipped;      // none of the others
  u128 kernel_ns = 0;           // sum of the durations of those placed
  uint64_t clock_error_ns = 0;  // how far the clock of calls may be off, at the most
  BusyTime busy;
  // By phase: Totals::phases; of launches that are placed and measured. Empty where none is placed.
  std::vector<FlopSeries> flop;
};

// Launches of one process that have all of these in common.
struct FactRow {
  uint32_t device = 0;              // TraceTables::devices
  uint32_t thread = 0, stream = 0;  // ids in the trace; 0 where they are not known
  uint32_t path = 0;                // TraceTables::paths
  uint32_t rule = 0;                // PhaseRules::rules()
  uint32_t signature = 0;           // TraceTables::signatures
  Counts counts;

  template <typename Self>
  static auto packed(Self& of) {
    return std::tuple_cat(std::tie(of.device, of.thread, of.stream, of.path, of.rule, of.signature),
                          Counts::sums(of.counts));
  }
};

// Of one training step: what its kernels took.
struct StepGpuTime {
  uint64_t gpu_ns = 0;   // sum of the kernels' times
  uint64_t untimed = 0;  // launches that are not in it: without a time, or while counters were read
  std::optional<uint64_t> busy_ns;  // union of all known times, added up over devices

  template <typename Self>
  static auto packed(Self& of) {
    return std::tie(of.gpu_ns, of.untimed, of.busy_ns);
  }
};

// Of a kernel's launches, what they took; as far as it is known.
struct LaunchTimes {
  std::optional<uint64_t> min_ns, max_ns;
  std::optional<double> median_ns;  // within 0.8 %
};

struct Totals {
  std::vector<Row> rows;
  DeviceRows device_rows;
  TimedRows timed_rows;
  std::vector<std::string> phases;  // every name in the rule table once, in its order
  std::vector<DeviceTime> devices;  // parallel to TraceTables::devices
  // Only where they were asked for (RowsBy::kThread).
  std::map<uint32_t, PackedRows<FactRow>> facts;  // by trace; some may be several rows
  uint64_t fact_launches_left_out = 0;
  // Likewise (passes/rows/kernel_durations.h), by the kernel's name in the NamePool.
  std::unordered_map<uint32_t, LaunchTimes> launch_times;
  bool medians_left_out = false;  // the kernels were too many
};

}  // namespace flopinj::reduce
