// What the launches of each training step did: a pass of its own, made where a trace has steps,
// since it needs what one launch of each signature is worth.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "passes/packets/revisions.h"
#include "passes/packets/segments.h"
#include "passes/packets/trace_file.h"
#include "peaks/peaks.h"
#include "report/steps.h"
#include "tables/formulas.h"
#include "tables/totals.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

class LaunchBatchReader;
struct LaunchList;
class Roofs;
struct SignatureResult;
class TallyBatchReader;

class StepPass {
 public:
  // All must outlive this. `totals` are those of the report.
  StepPass(const TraceTables& tables, const Totals& totals, Formulas& formulas,
           const std::vector<PeakOverride>& peaks);

  // By trace; within one by step, 0 for steps that are only summed up. The same whatever the number
  // of threads: sums are of integers.
  using Result = std::vector<std::map<uint32_t, StepWork>>;
  Result run(const Segments& segments, const Revisions& revisions, std::vector<TraceFile>& files,
             unsigned jobs) const;

  // What a launch counts as, by the trace's ids.
  const StepLaunch& launch_of(uint32_t trace, uint32_t device, uint32_t signature) const;

 private:
  using Each = StepLaunch;
  void value(uint32_t signature, uint32_t chip, const SignatureResult& result, Roofs& roofs);
  // By the signature's id in the trace.
  const Each& each(uint32_t trace, uint32_t signature, uint32_t chip) const;
  uint32_t chip_of(uint32_t trace, uint32_t stream) const;
  void packet(uint32_t trace, const Packet& packet, LaunchList& list, Result& result) const;
  void batch(uint32_t trace, const LaunchBatchReader& batch, LaunchList& list,
             Result& result) const;
  void tally(uint32_t trace, TallyBatchReader& batch, Result& result) const;

  const TraceTables& tables_;
  size_t chips_;
  std::vector<Each> each_;  // by signature, then chip
};

}  // namespace flopinj::reduce
