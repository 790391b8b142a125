// The ledger of a report: where the time of its devices went.
#pragma once
#include <string>

#include "passes/lost_pass.h"
#include "report/build_report.h"

namespace flopinj::reduce {

// Why a report can have no ledger, before launches are looked at; empty where it can.
std::string no_ledger(const TraceTables& tables, const Totals& totals, uint64_t skip_steps,
                      const Report& report);
// Fills Report::lost and Report::communication from what a pass has seen.
void build_lost(const ReportSources& from, LostPass& pass, const LaunchWorths::Unknown& unknown,
                Report& report);

}  // namespace flopinj::reduce
