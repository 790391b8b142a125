#include "report/named_part.h"

#include <own_steps.h>

#include <algorithm>

#include "phases/operator_calls.h"
#include "report/report.h"
#include "support/wide.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {
namespace {

// Of flopinj.torch's: how many a trace has one by one, and how many of them have names.
void count_steps_with_names(const TraceTables& tables, NamedPart& part) {
  for (const TraceState& trace : tables.traces)
    for (const auto& [number, step] : trace.steps.steps()) {
      const uint32_t path = step.path == 0 ? kNoIndex : trace.paths.get(step.path);
      if (path == kNoIndex) continue;
      const std::string& name = tables.names[tables.paths[path].name];
      part.steps_with += name == kOwnStep ? 1 : 0;
      part.steps += name == kOwnStep || name == kOwnStepWithoutNames ? 1 : 0;
    }
}

// At peak, of passes without gradients in flopinj.torch's steps.
struct EvaluationWork {
  double with_names_ns = 0, without_ns = 0;
};
EvaluationWork evaluation_work(const PhaseRules& rules, const Report& report) {
  using Subject = PhaseRules::Subject;
  const uint32_t its = rules.match(Subject::kRange, kOwnEvaluation);
  if (its == kNoIndex) return {};
  EvaluationWork work;
  for (uint32_t i = 0; i < report.rules.size(); ++i) {
    const PhaseRules::Rule& rule = rules.rules()[i];
    if (rule.phase == kUnnamedPhase)
      work.without_ns += is_unnamed_evaluation(rule) ? report.rules[i].work.roof.compute_ns : 0;
    else if (i == its ||
             (rule.subject == Subject::kRange && rule.within == rules.rules()[its].phase))
      work.with_names_ns += report.rules[i].work.roof.compute_ns;
  }
  return work;
}

}  // namespace

bool is_unnamed_evaluation(const PhaseRules::Rule& rule) {
  return rule.phase == kUnnamedPhase && rule.subject == PhaseRules::Subject::kRange &&
         rule.within == kUnnamedPhase;
}

void find_named_part(const TraceTables& tables, const PhaseRules& rules, const StepNames& steps,
                     Report& report) {
  NamedPart& part = report.named;
  const Work& without = phase_work(report, kUnnamedPhase);
  part.launches_without = without.launches;
  part.much_nameless = static_cast<double>(part.nameless.matrix_flop) >
                       kRatioTolerance * static_cast<double>(report.total.matrix_flop);
  if (part.launches_without == 0) return;
  if (steps.any()) {
    part.steps = steps.all();
    part.steps_with = steps.with();
  } else {
    count_steps_with_names(tables, part);
  }
  uint64_t in_own_steps = 0, in_steps = 0;
  for (size_t i = 0; i < report.rules.size(); ++i) {
    const PhaseRules::Rule& rule = rules.rules()[i];
    if (rule.phase != kUnnamedPhase) continue;
    const bool of_range = rule.subject == PhaseRules::Subject::kRange;
    in_own_steps += of_range ? report.rules[i].work.launches : 0;
    if (of_range || rule.subject == PhaseRules::Subject::kNumber)
      in_steps += report.rules[i].work.launches;
  }
  // In a program's own steps nothing says which passes have no gradients.
  const EvaluationWork evaluation =
      in_own_steps == without.launches ? evaluation_work(rules, report) : EvaluationWork{};
  part.training_ns = named_work(report).roof.compute_ns - evaluation.with_names_ns;
  part.drawn = in_steps == without.launches && part.training_ns > 0;
  if (part.drawn)
    part.scale = 1 + (without.roof.compute_ns - evaluation.without_ns) / part.training_ns;
}

Work named_work(const Report& report) {
  Work work;
  for (const PhaseReport& phase : report.phases)
    if (phase.name != kUnnamedPhase) work.add(phase.work);
  return work;
}

std::string names_text(const Report& report) {
  const NamedPart& part = report.named;
  if (part.whole()) return {};
  if (part.drawn && part.steps > 0)
    return to_grouped(part.steps_with) + " of " + to_grouped(part.steps) + " steps";
  const u128 all = named_work(report).flop, without = part.nameless.flop;
  const u128 with = all > without ? all - without : 0;
  const double share = report.total.flop == 0 ? 0 : quotient(with, report.total.flop);
  // Never 100 of what is not all.
  return "launches with names, " + std::to_string(std::min(static_cast<int>(share * 100), 99)) +
         " % of FLOP";
}

}  // namespace flopinj::reduce
