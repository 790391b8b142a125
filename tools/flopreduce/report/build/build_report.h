// From the joined tables to a report.
#pragma once
#include "phases/operator_calls.h"
#include "phases/operators.h"
#include "phases/phases.h"
#include "report/report.h"
#include "tables/formulas.h"
#include "tables/totals.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

// Fills everything but damage, errors and the traces' file names.
Report build_report(const TraceTables& tables, const Totals& totals, const PhaseRules& rules,
                    const PhaseMap& phases, const OperatorMap& operators,
                    const OperatorCalls& calls, Formulas& formulas,
                    const UtilizationOptions& utilization, bool keep_rows);

}  // namespace flopinj::reduce
