// Training steps: how long each took, what its launches did, and how near to peak they came once
// the first ones are over.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/utilization.h"
#include "support/packed_rows.h"
#include "support/wide.h"
#include "tables/step_times.h"
#include "tables/totals.h"

namespace flopinj::reduce {

struct TraceTables;
struct Report;

// What one launch of a kernel counts as.
struct StepLaunch {
  bool known = false, flop_known = false, unscreened = false, estimated = false;
  bool time_known = false, peak_known = true;
  u128 flop = 0;      // the mean, where launches differ
  u128 least_fs = 0;  // at peak
  u128 mean_ns = 0;   // of those that were timed outside of windows
};

// The launches of one step, or of several.
struct StepWork {
  uint64_t launches = 0, unmeasured = 0;   // the latter: of them
  uint64_t unscreened = 0, estimated = 0;  // of the measured ones, as in Work
  uint64_t no_peak = 0;     // of the measured ones: of a precision without a known peak
  uint64_t untimed = 0;     // not in gpu_ns
  uint64_t by_mean = 0;     // in gpu_ns with the mean of their kernel's other launches
  u128 flop = 0;            // of the measured ones; means of their kernels where they are estimates
  u128 least_fs = 0;        // that the peaks allow for it
  u128 gpu_ns = 0;          // sum of the kernels' times
  u128 model_fs = 0;        // that the peaks allow for the model's FLOP, by operators' formulas
  u128 model_most_fs = 0;   // upper bound of model_fs, without the launches of model_open
  uint64_t model_open = 0;  // launches whose time at peak has no upper bound
  u128 saved_fs = 0;        // of it, beyond least_fs: what operators did without

  template <typename Self>
  static auto packed(Self& of) {
    return std::tie(of.launches, of.unmeasured, of.unscreened, of.estimated, of.no_peak, of.untimed,
                    of.by_mean, of.flop, of.least_fs, of.gpu_ns, of.model_fs, of.model_most_fs,
                    of.model_open, of.saved_fs);
  }
  bool flop_complete() const { return unmeasured + unscreened == 0; }
  void add_launches(uint64_t count, const StepLaunch& each);
  void add_untimed(uint64_t count, const StepLaunch& each);  // of those, without their time
  void add(const StepWork& o);
};

// Of the figures of single steps.
struct Spread {
  double min = 0, median = 0, mean = 0, max = 0;
  bool median_approximate = false;  // of sums: to within 1 %
  bool about = false;               // each of the four

  Figure of(double Spread::*end) const {
    const bool approximate = about || (end == &Spread::median && median_approximate);
    return {this->*end, mark_if(approximate, Mark::kEstimate)};
  }
};

struct StepsReport {
  struct Step {
    size_t trace = 0;  // Report::traces
    uint32_t number = 0;
    uint64_t start_ns = 0, wall_ns = 0;  // tables/step_times.h
    bool about = false;                  // wall_ns: not all kernels have times
    bool skipped = false;
    StepWork work;
    bool work_known = true;            // which launches it made, and it is not skipped
    std::optional<uint64_t> begin_ns;  // CLOCK_REALTIME
    uint32_t every = 1;                // so many steps this one was kept of
    // Only where each step is asked for.
    StepGpuTime gpu;
    std::optional<uint64_t> millijoules;

    Figure wall() const { return {u128{wall_ns}, mark_if(about, Mark::kEstimate)}; }
    template <typename Self>
    static auto packed(Self& of) {
      return std::tie(of.trace, of.number, of.start_ns, of.wall_ns, of.about, of.skipped, of.work,
                      of.work_known, of.begin_ns, of.every, of.gpu, of.millijoules);
    }
  };
  std::string range;         // its name: "step"
  uint64_t count = 0;        // steps that ended, of all processes, without those that are skipped
  uint64_t skipped = 0;      // likewise
  bool marked = false;       // some range has a step's name
  size_t processes = 0;      // that have steps
  uint64_t per_process = 0;  // of the process that has most
  bool single = false;       // each step is known by itself; else sums only
  // In the order of processes and steps: `single`, all of them; else those that are known by
  // themselves, where they were asked for.
  PackedRows<Step> steps;
  // Where some are skipped: when those are that count, by trace.
  struct Window {
    uint64_t from_ns = 0, to_ns = 0;  // by the trace's clock
    uint32_t first = 0, last = 0;
    std::map<uint32_t, uint64_t> skipped_until_ns = {};  // by device: kernels of skipped steps ran
    uint64_t from_of(uint32_t device) const {
      const auto found = skipped_until_ns.find(device);
      return found == skipped_until_ns.end() ? from_ns : std::clamp(found->second, from_ns, to_ns);
    }
  };
  std::map<size_t, Window> windows;
  // The names of their ranges, by trace; only where each step is asked for.
  std::vector<std::string> ranges;
  // Of those that are not skipped. Absent where nothing says it.
  std::optional<Spread> wall_ns;
  std::optional<Spread> gpu_ns, flop, launches;  // `single` only
  std::optional<double> mean_flop;               // of a step
  Figure mean_gpu_ns;                            // likewise
  // Of one step of each process together.
  std::optional<double> job_flop;
  std::optional<u128> exact_flop;  // of each step, where all of them have the same
  bool flop_estimated = false;
  std::vector<Step> outliers;  // slower than kOutlier medians: at most 1,000, the slowest first
  // From the start of the first to the end of the last step that is not skipped, of all processes.
  double window_ns = 0;         // the longest
  double device_window_ns = 0;  // times the process's devices, summed
  bool window_about = false;    // both: not all kernels have times
  Figure hfu, mfu;              // over that time x peak
  double saved_ns = 0;          // of the FLOP of `mfu`, at peak: what operators did without
  // Launches of these steps that are missing from the FLOP of `hfu`, and those that a part of their
  // work may be missing of.
  uint64_t unmeasured = 0, unscreened = 0;
  Figure tokens_per_s;
  std::optional<double> tokens;  // of a step of all processes, as given
  // Where there are no such figures: why, and what to do.
  std::string missing;

  Figure flop_per_token() const {
    if (!job_flop || !tokens) return {};
    return {*job_flop / *tokens, mark_if(flop_estimated, Mark::kEstimate)};
  }
};
inline constexpr double kOutlier = 1.5;

// Says of each process that its first steps, so many, are skipped. Nothing where one has only sums
// of its steps.
void skip_steps(uint64_t count, TraceTables& tables);
// How many that are.
uint64_t skipped_steps(const TraceTables& tables, uint64_t wanted);
// What is known of steps without their launches. Where utilization by 6ND is asked for, it needs
// their number.
void count_steps(const TraceTables& tables, const UtilizationOptions& options, Report& report);
// What a reading of all launches says of steps, by trace.
struct StepsRead {
  // By the step's number; under 0 steps that are only summed up, as in a summary, whose steps say
  // themselves which launches they made.
  std::vector<std::map<uint32_t, StepWork>> work;
  std::vector<StepKernels> kernels;
  std::vector<std::map<uint32_t, StepGpuTime>> times;  // likewise; only where they are asked for
};
// `each`: of a launch, by trace and the trace's ids. `list_all`: each step that is known by itself.
using StepLaunchOf =
    std::function<const StepLaunch&(size_t trace, uint32_t device, uint32_t signature)>;
void add_step_work(const TraceTables& tables, const UtilizationOptions& options, StepsRead read,
                   const StepLaunchOf& each, bool list_all, Report& report);

}  // namespace flopinj::reduce
