// Pass two: all segments, on several threads.
#pragma once
#include <vector>

#include "passes/packets/revisions.h"
#include "passes/packets/segments.h"
#include "passes/packets/trace_file.h"
#include "passes/rows/row_table.h"
#include "reader/damage.h"
#include "tables/totals.h"

namespace flopinj::reduce {

// The result is the same, to the byte of a report, whatever the number of threads: sums do not
// depend on their order, and the times of segments are joined in the files' order.
struct SecondPass {
  SharedTables& shared;
  const Segments& segments;
  const Revisions& revisions;
  std::vector<TraceFile>& files;
  unsigned jobs = 1;      // threads, at least 1
  bool progress = false;  // a bar, where standard error is a terminal
  // Of recordings in summaries, by trace; that of others is added to their files'.
  std::vector<DamageLog> damage_of_trace;

  Totals run();
};

}  // namespace flopinj::reduce
