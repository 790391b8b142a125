// The processes of a job side by side: who is slow, who started late, who is missing.
#pragma once
#include "phases/phases.h"
#include "report/report.h"
#include "report/work_table.h"
#include "tables/totals.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

// Fills report.ranks. report.traces must be filled. GPU time is as everywhere in the report:
// launches without a time outside of windows have the mean of their signature's other launches.
void build_ranks(const TraceTables& tables, const Totals& totals, const WorkTable& work,
                 const PhaseRules& rules, Report& report);

}  // namespace flopinj::reduce
