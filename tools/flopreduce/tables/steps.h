// Training steps of one trace: each one, or where it has their sums only, those.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "flop_trace.pb.h"
#include "reader/damage.h"
#include "support/packed_rows.h"
#include "tables/totals.h"

namespace flopinj::reduce {

struct StepTimes {
  uint64_t start_ns = 0;  // on the trace's clock
  uint64_t duration_ns = 0;
  uint32_t path = 0;  // id in the trace

  template <typename Self>
  static auto packed(Self& of) {
    return std::tie(of.start_ns, of.duration_ns, of.path);
  }
};

// The format's StepSums.
struct StepSums {
  uint64_t steps = 0, total_ns = 0, min_ns = 0, max_ns = 0;
  uint64_t first_start_ns = 0, last_end_ns = 0;
  uint32_t path = 0;                     // likewise, of the last one
  std::map<uint32_t, uint64_t> buckets;  // common/step_buckets.h
  bool kernels_timed = false;            // not those of ranges: tables/step_times.h
  uint64_t window_ns = 0;                // of all of them: tables/step_times.h; 0: not known

  void add(const StepTimes&);
  // Of durations that are the middles of their buckets.
  double median_ns() const;
};

// A step as a summary has it (the format's SingleSteps).
struct SingleStep {
  uint32_t number = 0;
  StepTimes times;
  uint64_t launches = 0;
  StepGpuTime gpu;
  uint32_t kind = 0;  // SummarySteps::kinds, plus 1; 0: not known
  std::optional<uint64_t> millijoules;

  template <typename Self>
  static auto packed(Self& of) {
    auto& [number, times, launches, gpu, kind, millijoules] = of;
    return std::tie(number, times, launches, gpu, kind, millijoules);
  }
};
struct SummarySteps {
  struct Launches {
    uint32_t device = 0, signature = 0;  // ids in the trace
    uint64_t count = 0;
  };
  uint32_t every = 1;  // a power of two: each step is there, every second, every fourth, ...
  PackedRows<SingleStep> steps;
  std::vector<std::vector<Launches>> kinds;
};

class StepTable {
 public:
  static constexpr size_t kMost = 1U << 20;  // more are left out, and logged

  // Packets of a trace, in order. What cannot be is logged.
  void add(const trace::Steps&, DamageLog&);
  void add(const trace::StepSums&, DamageLog&);
  void add(const trace::SingleSteps&, DamageLog&);

  bool any() const { return !steps_.empty() || sums_.steps > 0; }
  // Steps one by one, by number; none where the trace has sums only.
  const std::map<uint32_t, StepTimes>& steps() const { return steps_; }
  // Of all of them, however they came.
  const StepSums& sums() const { return sums_; }
  // What a summary has of single steps, where it was asked for.
  const SummarySteps& in_summary() const { return in_summary_; }
  // These are all steps, with their launches, as a trace has them.
  bool all_in_summary() const { return all_in_summary_; }
  void take_all_in_summary();
  void forget_single() { in_summary_ = {}; }

 private:
  std::map<uint32_t, StepTimes> steps_;
  StepSums sums_;
  SummarySteps in_summary_;
  bool all_in_summary_ = false;
};

}  // namespace flopinj::reduce
