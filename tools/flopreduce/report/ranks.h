// The processes of a job side by side: who is slow, who started late, who is missing.
#pragma once
#include "model/model.h"
#include "model/phases.h"
#include "model/totals.h"
#include "report/report.h"

namespace flopinj::reduce {

// Fills report.ranks. report.traces must be filled.
void build_ranks(const Model& model, const Totals& totals, const PhaseRules& rules, Report& report);

}  // namespace flopinj::reduce
