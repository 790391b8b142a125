// What the launches of each training step did, where a trace has steps. What one of them is worth
// is known after the totals: so steps are kept as which rows they launched how often, which most
// steps have in common.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "passes/model_work.h"
#include "passes/rows/device_split.h"
#include "passes/rows/launch_consumer.h"
#include "passes/rows/row_log.h"
#include "passes/rows/single_steps.h"
#include "peaks/peaks.h"
#include "report/steps.h"
#include "tables/formulas.h"
#include "tables/step_times.h"
#include "tables/totals.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

class Roofs;
class WorkTable;
struct SignatureResult;

// What one launch counts as.
class StepLaunches {
 public:
  // `tables` must outlive this. `totals` are those of the report.
  StepLaunches(const TraceTables& tables, const Totals& totals, const WorkTable& work,
               Formulas& formulas, const std::vector<PeakOverride>& peaks);
  // By indices of the tables.
  const StepLaunch& of(uint32_t signature, uint32_t device) const {
    const std::vector<StepLaunch>& of_chip = each_[tables_.devices[device].chip];
    return of_chip.empty() ? kNothing : of_chip[signature];
  }
  // By ids of a trace.
  const StepLaunch& of(size_t trace, uint32_t device, uint32_t signature) const;

 private:
  void value(uint32_t signature, uint32_t chip, const SignatureResult& result, Roofs& roofs);

  static constexpr StepLaunch kNothing{};
  const TraceTables& tables_;
  // By chip, then signature. Empty for those that nothing was launched on: each process has one.
  std::vector<std::vector<StepLaunch>> each_;
};

// Sums of integers: the same whatever the number of threads. With single steps, on one thread only.
class StepPass final : public LaunchConsumer {
 public:
  // Both must outlive this. `room`: for steps whose launches' worth is not known yet; null: use()
  // comes before the launches.
  StepPass(const TraceTables& tables, bool single_steps, LogRoom* room);
  ~StepPass() override;
  // What launches are worth, where that is known before they are read.
  void use(const StepLaunches& each, const ModelWork& model);
  void launches(const RowTable& rows, const LaunchPiece& piece) override;
  void tally(const RowTable& rows, uint32_t row, const TallyRow& tally) override;
  void end(const RowTable& rows) override;
  void add(StepPass& o);
  // There was no room: the launches have to be read again, with their worth.
  bool given_up() const { return given_up_; }
  // After use(). With times where single steps are asked for. Ends the launches.
  StepsRead take();

 private:
  // Launches of a row in a step.
  struct InRow {
    uint32_t row = 0;
    uint64_t launches = 0, untimed = 0;
    bool operator==(const InRow&) const = default;
  };
  using Kind = std::vector<InRow>;
  struct KindHash {
    size_t operator()(const Kind& kind) const;
  };
  struct Step {
    uint32_t number = 0, kind = 0;
    uint64_t timed_ns = 0;
  };
  // Of one trace, or of what a thread has of it.
  struct Log {
    uint32_t trace = 0;
    std::vector<RowPlace> rows;
    std::vector<Kind> kinds;
    std::vector<Step> steps;
    size_t bytes = 0;
  };
  // Of a row in the step at hand.
  struct Counted {
    uint64_t launches = 0, untimed = 0;
  };
  // What one launch of a row is worth for MFU, in femtoseconds.
  struct ForModel {
    u128 fs = 0, most_fs = 0, saved_fs = 0;
    bool open = false;  // StepWork::model_open
  };
  ForModel for_model(const RowPlace& place, const StepLaunch& one) const;
  void add_counted();
  void add_step(uint32_t number, uint64_t timed_ns);
  void take_room(size_t bytes);
  void end_log(const RowTable& rows);
  void value(const Log& log);
  void end_single_steps();

  const TraceTables& tables_;
  LogRoom* const room_;
  const StepLaunches* each_ = nullptr;
  const ModelWork* model_ = nullptr;
  // Of the trace at hand.
  std::vector<Counted> counted_;   // by row
  std::vector<uint32_t> touched_;  // rows of counted_ that have launches
  uint32_t step_ = 0;              // of these
  uint64_t timed_ns_ = 0;
  Kind kind_;  // kept for its memory
  std::unordered_map<Kind, uint32_t, KindHash> kind_of_;
  Log log_;
  std::vector<Log> logs_;
  bool given_up_ = false;
  StepsRead read_;
  std::optional<SingleSteps> single_;  // of the trace at hand
  uint32_t trace_ = kNoIndex;
};

}  // namespace flopinj::reduce
