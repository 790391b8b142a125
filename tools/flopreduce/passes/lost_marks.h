// How the ledger's lines are to be read, where evidence is missing.
#pragma once
#include "passes/launch_worths.h"
#include "passes/lost_pass.h"
#include "report/report.h"

namespace flopinj::reduce {

// Of a summary that does not say what ran at once, as older ones do not.
bool only_times(const Device& device);

struct LostEvidence {
  const TraceTables& tables;
  const LaunchWorths::Unknown& unknown;
  const LostPass::Uneven& uneven;
  bool unplaced = false;  // launches without a start count with a mean time
  bool lost_copies = false;
};
// Fills the marks of Report::lost, when the report has all else.
void mark_lines(const LostEvidence& evidence, Report& report);

}  // namespace flopinj::reduce
