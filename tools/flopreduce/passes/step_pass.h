// What the launches of each training step did: in a pass of its own, made where a trace has steps,
// since it needs what one launch of each signature is worth.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "passes/model_work.h"
#include "passes/rows/launch_consumer.h"
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
  // All must outlive this.
  StepPass(const TraceTables& tables, const StepLaunches& each, const ModelWork& model,
           bool single_steps);
  void launches(const RowTable& rows, const LaunchPiece& piece) override;
  void tally(const RowTable& rows, uint32_t row, const TallyRow& tally) override;
  void end(const RowTable& rows) override;
  void add(const StepPass& o);
  // With times where single steps are asked for. Ends the launches.
  StepsRead take();

 private:
  void end_single_steps();

  const TraceTables& tables_;
  const StepLaunches& each_;
  const ModelWork& model_;
  // What one launch of a row of the trace at hand is worth for MFU, in femtoseconds.
  struct OfRow {
    bool known = false;
    u128 model_fs = 0, model_most_fs = 0, saved_fs = 0;
    bool open = false;  // StepWork::model_open
  };
  // Launches of a row in the step at hand: what these are worth is added when another step comes.
  struct Counted {
    uint64_t launches = 0, untimed = 0;
    u128 ns = 0;  // of the timed ones
  };
  const OfRow& row_of(const RowTable& rows, uint32_t row, const StepLaunch& one);
  void add(StepWork& to, const RowTable& rows, uint32_t row, uint64_t launches);
  void add_counted(const RowTable& rows);
  std::vector<OfRow> rows_;
  std::vector<Counted> counted_;   // by row
  std::vector<uint32_t> touched_;  // rows of counted_ that have launches
  uint32_t step_ = 0;              // of these
  StepsRead read_;
  std::optional<SingleSteps> single_;  // of the trace at hand
  uint32_t trace_ = kNoIndex;
};

}  // namespace flopinj::reduce
