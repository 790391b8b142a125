// From the joined tables to a report.
#pragma once
#include "model/formulas.h"
#include "model/model.h"
#include "model/operator_calls.h"
#include "model/operators.h"
#include "model/phases.h"
#include "model/totals.h"
#include "report/report.h"

namespace flopinj::reduce {

// Fills everything but damage, errors and the traces' file names.
Report build_report(const Model& model, const Totals& totals, const PhaseRules& rules,
                    const PhaseMap& phases, const OperatorMap& operators,
                    const OperatorCalls& calls, Formulas& formulas,
                    const UtilizationOptions& utilization, bool keep_rows);

}  // namespace flopinj::reduce
