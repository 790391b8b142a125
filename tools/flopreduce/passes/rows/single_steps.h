// Training steps of one recording one by one, in bounded memory: how long the GPU was busy in each,
// and which launches it made. For tables of steps, and for what a summary keeps of them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "flop_trace.pb.h"
#include "passes/rows/launch_consumer.h"
#include "tables/energy_readings.h"
#include "tables/step_times.h"
#include "tables/steps.h"
#include "tables/totals.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

// Steps come nearly one after another, but a thread's launches are written a batch at a time. So
// several steps are open, as many as have room; then the first of them is closed. A launch that
// comes later still is counted, and its step's busy time and kind are not known any more.
class SingleSteps {
 public:
  // Of the steps that have ended, at most `most`: each one, or every second, fourth, ...
  SingleSteps(const StepTable& table, size_t most);
  struct Launch {
    uint32_t device = 0, signature = 0;  // ids in the trace
    uint64_t start_ns = 0, duration_ns = 0;
    bool timed = false, windowed = false;
  };
  void launch(uint32_t step, const Launch& launch);
  // Those of a piece.
  void launches(const TraceTables& tables, const RowTable& rows, const LaunchPiece& piece);

  // Each ends the steps.
  std::map<uint32_t, StepGpuTime> take_times();
  // Nothing where there are no steps. `spans`: of all of them.
  std::optional<trace::SingleSteps> take_message(const StepSpans& spans,
                                                 const EnergyReadings& energy = {});

  // Launches of open steps.
  static constexpr size_t kMostOpen = 1U << 18;
  // Of different sets of launches in a step, as a summary has them.
  static constexpr size_t kMostKinds = 256;
  static constexpr size_t kMostKindRows = 1U << 14;

 private:
  struct OneLaunch {
    uint32_t device = 0, signature = 0;
    uint64_t begin = 0, end = 0;  // both 0 where it has no place in time
  };
  using Kind = std::vector<std::pair<uint64_t, uint64_t>>;  // (device, signature), launches
  struct Step {
    uint64_t launches = 0;
    StepGpuTime times;
    uint32_t kind = 0;  // index + 1 of kinds_; 0: not known
    bool closed = false;
  };
  bool is_kept(uint32_t number) const { return number != 0 && (number - 1) % every_ == 0; }
  void close(uint32_t number, std::vector<OneLaunch>& launches);
  void close_first();
  uint32_t kind_of(const std::vector<OneLaunch>& launches);

  const StepTable& table_;
  uint32_t every_ = 1;
  std::map<uint32_t, Step> steps_;  // with launches, by number
  std::map<uint32_t, std::vector<OneLaunch>> open_;
  size_t launches_open_ = 0, launches_of_last_ = 64;  // of the step closed last
  uint32_t current_number_ = 0;  // of the launch before; its step, null where that has not ended
  Step* current_ = nullptr;
  std::vector<OneLaunch>* current_launches_ = nullptr;  // null where it is closed
  std::map<Kind, uint32_t> kinds_;
  size_t kind_rows_ = 0;
  std::vector<uint64_t> keys_;  // of kind_of(), kept for their memory, as is
  Kind kind_;
};

}  // namespace flopinj::reduce
