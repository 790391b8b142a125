// How long the launches of each kernel took: a pass of its own, made where a form of output shows
// it, since sums are all that most need.
#pragma once
#include <vector>

#include "passes/packets/revisions.h"
#include "passes/packets/segments.h"
#include "passes/packets/trace_file.h"
#include "tables/totals.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

// Fills Totals::launch_times. What was launched while counters were read is left out.
void duration_pass(const TraceTables& tables, const Segments& segments, const Revisions& revisions,
                   std::vector<TraceFile>& files, unsigned jobs, Totals& totals);

}  // namespace flopinj::reduce
