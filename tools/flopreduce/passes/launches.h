// Every launch of all traces, one by one, for forms of output that show each of them: a pass of its
// own, made where such a form is asked for.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "passes/merged_classes.h"
#include "passes/rows/launch_consumer.h"
#include "phases/phases.h"
#include "report/roofs.h"
#include "report/work_table.h"
#include "tables/formulas.h"
#include "tables/totals.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

// A launch of which a trace says when it ran.
struct TimedLaunch {
  uint64_t start_ns = 0;  // on its trace's clock, below kLatestStart
  uint64_t duration_ns = 0;
  uint32_t trace = 0;      // TraceTables::traces
  uint32_t device = 0;     // TraceTables::devices
  uint32_t stream = 0;     // id in its trace; 0 where it is not known
  uint32_t signature = 0;  // TraceTables::signatures
  uint32_t path = 0;       // TraceTables::paths
  uint32_t rule = 0;       // PhaseRules::rules()
  uint32_t step = 0;       // number of the training step in its trace; 0: none
  bool windowed = false, graph = false;
};
inline constexpr uint64_t kLatestStart = uint64_t{1} << 62;  // 146 years; later ones are damaged

class Launches {
 public:
  // Shows all launches, in the order of the traces, to a consumer; rows are by RowsBy::kThread.
  using Read = std::function<void(std::unique_ptr<LaunchConsumer>)>;

  // All must outlive this. `totals` are those of the report.
  Launches(const TraceTables& tables, const Totals& totals, const PhaseRules& rules,
           Formulas& formulas, const std::vector<PeakOverride>& peaks, Read read);

  // Calls visit for each timed launch, in the order of the traces, until it returns false. Damage
  // was logged by the passes before.
  void for_each(const std::function<bool(const TimedLaunch&)>& visit);
  // For the launch at hand: its FLOP, or null where they are not known. Call once for each launch:
  // launches whose work is an estimate get shares that add up to those of the report.
  const Flop* next_flop(const TimedLaunch& launch);
  // True where what next_flop() says is an estimate, or a lower bound.
  bool estimated(const TimedLaunch& launch);
  bool at_least(const TimedLaunch& launch);

  // The least time that the device's peaks allow for FLOP of the launch; nothing where no peak of a
  // precision is known.
  std::optional<double> least_ns(const TimedLaunch& launch, const Flop& flop);

  const TraceTables& tables() const { return tables_; }
  const std::string& phase(const TimedLaunch& launch) const {
    return rules_.rules()[launch.rule].phase;
  }
  const Formulas& formulas() const { return formulas_; }

 private:
  // What launches of one signature on one kind of device do.
  struct Share {
    const SignatureResult* result = nullptr;
    uint64_t* from = nullptr;  // launches that had theirs, of the signature that they count with
  };
  Share& share(const TimedLaunch& launch);

  const TraceTables& tables_;
  const PhaseRules& rules_;
  const Formulas& formulas_;
  WorkTable work_;
  Roofs roofs_;
  MergedClasses classes_;
  Read read_;
  std::unordered_map<uint64_t, Share> shares_;         // by (signature, chip)
  std::unordered_map<uint64_t, uint64_t> handed_out_;  // likewise
  Flop flop_;                                          // what next_flop() said last
};

}  // namespace flopinj::reduce
