// What a launch in one place is worth for the ledger of time: its class, its work at peak and the
// least time that the roofs allow it. To be made when the report has its operators.
#pragma once
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

#include "passes/merged_classes.h"
#include "passes/model_work.h"
#include "passes/rows/device_split.h"
#include "report/build_report.h"
#include "report/roofs.h"
#include "report/work_table.h"

namespace flopinj::reduce {

// What of it can be said before there are totals.
class LaunchGuesses {
 public:
  // All must outlive this.
  LaunchGuesses(const TraceTables& tables, const PhaseRules& rules, const PhaseMap& phases);
  LaunchGuess of(const RowPlace& place) const;  // on any thread

 private:
  const TraceTables& tables_;
  const PhaseRules& rules_;
  const PhaseMap& phases_;
  MergedClasses classes_;
};

class LaunchWorths {
 public:
  // All must outlive this.
  // `of_time`: of no launch it is known what its work takes at peak.
  LaunchWorths(const ReportSources& from, const Report& report, bool of_time);

  LaunchWorth of(const RowPlace& place);  // on any thread

  // What the worths so far are short of.
  struct Unknown {
    bool matrix_bytes = false, other_bytes = false;  // of some launches
    bool uneven_blocks = false;                      // blocks are taken to be alike
    bool uncounted_communication = false;            // what its kernels compute
  };
  const Unknown& unknown() const { return unknown_; }

 private:
  // One launch, wherever it is.
  struct Each {
    bool counted = false, tensor = false, integer = false, multiplies = false, bytes = false;
    uint64_t work_fs = 0, fp32_fs = 0, memory_fs = 0;
  };
  const Each& each_of(uint32_t signature, uint32_t chip);
  void set_work_lines(const RowPlace& place, LaunchWorth& worth) const;
  void set_means(const RowPlace& place, uint32_t signature, uint32_t chip,
                 LaunchWorth& worth) const;
  const std::string& phase_of(const RowPlace& place) const {
    return from_.rules.rules()[place.rule].phase;
  }

  const ReportSources& from_;
  const WorkTable& work_;
  Roofs roofs_;
  LaunchGuesses guesses_;
  MergedClasses classes_;
  bool of_time_;
  std::unordered_map<uint64_t, Each> each_;  // by (signature, chip)
  ModelWork model_;
  Unknown unknown_;
  std::mutex lock_;
};

}  // namespace flopinj::reduce
