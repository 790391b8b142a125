// The FLOPINJ_ environment variables, read once.
#pragma once
#include <collector/model.h>
#include <collector/rank_list.h>
#include <injector/log.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace flopinj {

inline constexpr uint32_t kMostPlanWaitMs = 60'000;

struct Settings {
  std::string output = "flop-%p.pb";  // FLOPINJ_OUTPUT: name or pattern, "-", "unix:PATH"
  Level level = Level::kLaunches;     // FLOPINJ_LEVEL: launches | tally
  Mode mode = Mode::kMultiplex;       // FLOPINJ_MODE: multiplex | full | timing | count | off
  bool force = false;                 // FLOPINJ_FORCE: 1 overwrites an existing trace
  log::Level log_level = log::Level::kWarn;  // FLOPINJ_LOG: off | error | warn | info | debug
  std::string cupti;        // FLOPINJ_CUPTI: library to load when none is in the process
  uint32_t flush_ms = 250;  // FLOPINJ_FLUSH_MS: 10 ... 1000
  // FLOPINJ_PLAN_WAIT_MS: how long a context's first launch waits for its plan, 0 ... kMostPlanWaitMs.
  // Not given: not at all; in mode full, which measures every launch, as long as may be.
  std::optional<uint32_t> given_plan_wait_ms = {};
  uint32_t plan_wait_ms() const {
    return given_plan_wait_ms.value_or(mode == Mode::kFull ? kMostPlanWaitMs : 0);
  }
  // FLOPINJ_BUDGET: most that reading counters may cost, per cent of wall time, or `none` (0)
  double budget_percent = 1;
  double until_covered_percent =
      0;  // FLOPINJ_UNTIL_COVERED: then nothing more is measured; 0: never
  RankList measure_ranks = RankList::only_rank_0();  // FLOPINJ_MEASURE_RANKS
  // FLOPINJ_NEVER_MEASURE: patterns of kernel names, beside the built-in ones
  std::vector<std::string> never_measure;
  bool measure_graphs = false;  // FLOPINJ_MEASURE_GRAPHS: 1 opens windows around graph launches
};

const char* name_of(Mode);  // as FLOPINJ_MODE takes it

// `problems` gets one line for every variable that is unknown (with the nearest known name) or has
// a value that is not understood; the default is used for it.
Settings read_settings(const char* const* environment, std::vector<std::string>& problems);

}  // namespace flopinj
