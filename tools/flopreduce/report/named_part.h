// Which part of a recording has names. Where names were off in some steps, all that rests on names
// (phases, backward / forward, layers, operators, formulas) is of the other steps, and says so by
// names_text().
#pragma once
#include <string>

#include "phases/phases.h"

namespace flopinj::reduce {

struct Report;
struct Work;
class StepNames;
struct TraceTables;

// Of a pass without gradients in a step without names, which is no part of the training that steps
// with names stand for.
bool is_unnamed_evaluation(const PhaseRules::Rule& rule);
// When the report has its phases and rules.
void find_named_part(const TraceTables& tables, const PhaseRules& rules, const StepNames& steps,
                     Report& report);
// All launches but those without names.
Work named_work(const Report& report);
// "24 of 300 steps"; "launches with names, 20 % of FLOP" where steps are not known. Empty where a
// recording has names as a whole, or none.
std::string names_text(const Report& report);

}  // namespace flopinj::reduce
