// Traces in, report out.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "passes/packets/revisions.h"
#include "passes/packets/segments.h"
#include "passes/router.h"
#include "passes/second_pass.h"
#include "phases/forward_numbers.h"
#include "phases/given_formulas.h"
#include "phases/given_names.h"
#include "phases/operator_calls.h"
#include "phases/operators.h"
#include "phases/phases.h"
#include "reader/damage.h"
#include "reader/input.h"
#include "report/report.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

class Launches;
class LostReading;
class StepLaunches;
class StepPass;
struct ReportSources;

struct ReduceOptions {
  int fma = 2;  // what one fused multiply-add counts, 1 or 2
  PhaseRules rules = {};
  GivenNames names = {};
  GivenFormulas formulas = {};
  std::string counters = {};  // a file of Nsight Compute, for recordings of other profilers
  UtilizationOptions utilization = {};
  // Called last, for forms of output that show every launch.
  std::function<void(Launches&)> launches = {};
  // Of several whole copies of a session the one that counts: passes/summary's most_complete().
  // Without it the first that is read.
  std::function<std::map<uint64_t, const Input*>(const std::vector<Input*>&)> choose_copies = {};
  bool facts = false;           // Report::facts, and single steps of summaries
  bool launch_times = false;    // KernelReport::times
  bool lost = false;            // Report::lost
  bool flop_over_time = false;  // TimeReport::Device::flop
  unsigned jobs = 0;            // threads that read; 0: as many as there are cores, up to kMostJobs
  bool progress = false;        // a progress bar, where standard error is a terminal
};
// More readers than this are asked for only by --jobs: each takes memory.
inline constexpr unsigned kMostJobs = 8;

class Reducer {
 public:
  explicit Reducer(ReduceOptions options);
  ~Reducer();

  // Opens a trace. One that cannot be used adds a line to errors() and is left out.
  void add(const std::string& path);
  void add(std::unique_ptr<Input> input);
  const std::vector<InputError>& errors() const { return errors_; }
  bool any_input() const { return !files_.empty(); }
  uint64_t skips() const { return options_.utilization.skip_steps; }

  // Reads every trace twice, and once more each where ranges name operators and where every launch
  // is asked for. Where there are training steps or the ledger is asked for, traces are read once
  // more that LostReading leaves, and all of them with single steps or where some are skipped. Call
  // once.
  Report run();

 private:
  bool one_kind(const std::string& name, bool simulated);
  void leave_out(const std::string& name, bool simulated);
  void sort_files();
  DamageLog& damage_of(TraceState& trace);
  unsigned jobs_wanted() const;
  void first_pass(TraceTables& tables);
  // Of whole copies of one session, in some inputs, the most complete counts, as in a merge.
  void choose_copies();
  std::set<uint32_t> revised() const;
  SecondPass pass_over(SharedTables& shared);
  Totals second_pass(TraceTables& tables, const PhaseMap& phases, SharedTables& shared);
  // Sequence numbers decide phases, so this comes first.
  std::pair<OperatorCalls, ForwardNumbers> sequence_pass(const TraceTables& tables,
                                                         PhaseMap& phases,
                                                         const OperatorMap& operators);
  // What the launches of training steps did, where there are steps, and where the time went, where
  // that can be known and is asked for: when it is known what a launch is worth.
  void worth_pass(SharedTables& shared, const ReportSources& sources, Totals& totals,
                  Report& report);
  void finish_steps(const ReportSources& sources, const StepLaunches& each, StepPass& steps,
                    Totals& totals, Report& report);
  void note_missing_ends(TraceTables& tables);
  std::string damage_line(const TraceState& trace) const;
  void name_sources(const TraceTables& tables, Report& report) const;

  ReduceOptions options_;
  std::vector<TraceFile> files_;
  std::vector<InputError> errors_;
  // The first trace with a header that counts, and whether it was simulated: all others have to be
  // the same.
  std::optional<std::pair<std::string, bool>> kind_;
  Revisions revisions_;
  Segments segments_;
  std::set<uint32_t> copies_;  // files_ that hold recordings which others hold as a whole
  ChosenCopies chosen_;
  // What was seen of launches with the totals; null: nothing.
  std::unique_ptr<LostReading> lost_;
  std::unique_ptr<StepPass> steps_;
  bool depends_on_threads_ = false;  // a table was too small for all rows
};

}  // namespace flopinj::reduce
