// What a user may ask of a recording.
#pragma once
#include <collector/identity/recording.h>
#include <collector/options/kernel_names.h>
#include <collector/options/rank_list.h>
#include <collector/options/run_token.h>
#include <collector/ranges/range_filter.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace flopinj {

inline constexpr uint32_t kMostPlanWaitMs = 60'000;

enum class LogLevel : uint8_t { kOff, kError, kWarn, kInfo, kDebug };

// Each is an entry of recording_options() (options.h), which says what it takes.
struct Settings {
  std::string output = "flop-%p.pb";
  Level level = Level::kLaunches;
  Mode mode = Mode::kMultiplex;
  bool force = false;
  bool no_command_line = false;  // the trace does not hold it
  std::string job;               // the job's name; empty: as its scheduler says
  // Given by name beside the labels that the environment has, and in their place.
  std::vector<std::pair<std::string, std::string>> labels;
  bool quiet = true;         // no line on stderr when a recording has ended
  bool dormant = false;      // nothing is recorded until it is asked for
  std::string metrics_file;  // for a node exporter; empty: none
  bool host_times = false;   // launches have the time of their call
  bool no_copies = false;    // copies and fills of memory are not recorded
  bool no_energy = false;    // NVML is not asked for the devices' energy
  bool no_control = false;   // no requests are taken
  double start_after_s = 0;  // seconds after the program starts CUDA; 0: at once
  double duration_s = 0;     // seconds; 0: to the end
  // Which launches are recorded: those of kernels of this name (empty: of all) in these ranges
  // (empty: in all), and of these so many (0: all) after the first so many.
  std::string kernel_name;
  KernelNameBase kernel_name_base = KernelNameBase::kFunction;
  std::string nvtx_include;
  std::string step_range;  // names of ranges that are training steps; empty: the usual ones
  uint32_t launch_skip = 0, launch_count = 0;
  bool capture_range = false;  // from the program's cuProfilerStart to its cuProfilerStop
  LogLevel log_level = LogLevel::kWarn;
  std::string cupti;     // library to load when none is in the process; empty: found
  std::string findings;  // folder with what `flopinj doctor --count` has found; empty: none
  uint32_t flush_ms = 250;
  // How long a context's first launch waits for its plan. Not given: not at all; in mode full,
  // which measures every launch, as long as may be.
  std::optional<uint32_t> given_plan_wait_ms = {};
  uint32_t plan_wait_ms() const {
    return given_plan_wait_ms.value_or(mode == Mode::kFull ? kMostPlanWaitMs : 0);
  }
  double budget_percent = 1;  // of wall time; 0: without limit
  // A count that lacks is worse than a launch that waits.
  bool at_any_cost() const { return mode == Mode::kFull || budget_percent == 0; }
  double until_covered_percent = 0;  // of GPU time; 0: never
  RankList measure_ranks = RankList::only_rank_0();
  std::vector<std::string> never_measure;  // beside the built-in patterns
  std::optional<RunToken> run = {};        // not given: not started by flopinj run
};

const char* name_of(Mode);  // as the user names it
// The options that choose which launches are recorded; empty: none is given.
std::string choice_of(const Settings&);

}  // namespace flopinj
