#include "passes/model_work.h"

#include <algorithm>

#include "analytic/attention_kernels.h"
#include "report/named_part.h"

namespace flopinj::reduce {
namespace {

ModelWork::Part part_of(const OperatorReport& place, const Report& report) {
  const Work& work = place.work;
  ModelWork::Part part{.share = 1, .complete = work.flop_complete()};
  if (part.complete && work.flop > 0) {
    part.share = *place.model.flop().number() / static_cast<double>(work.flop);
    return part;
  }
  const AtPeak at_peak = model_at_peak(place, report).value_or(AtPeak{});
  const double least_ns = at_peak.least_ns;
  // The launches that are not measured may have been quick, and have executed most.
  if (work.roof.compute_ns > 0) part.share = std::min(1.0, least_ns / work.roof.compute_ns);
  const auto launches = static_cast<double>(std::max<uint64_t>(1, work.launches));
  part.each_fs = least_ns * 1e6 / launches;
  if (at_peak.most_ns) part.each_most_fs = *at_peak.most_ns * 1e6 / launches;
  return part;
}

bool may_be_of_model(const std::string& phase, const Report& report) {
  return phase == kUnnamedPhase || report.operators.counts_for_model(phase);
}

}  // namespace

double work_of_model_ns(const ReportSources& from, const Report& report) {
  double ns = 0;
  for (size_t i = 0; i < report.rules.size(); ++i)
    if (may_be_of_model(report.rules[i].phase, report) &&
        !is_unnamed_evaluation(from.rules.rules()[i]))
      ns += report.rules[i].work.roof.compute_ns;
  return ns;
}

ModelWork::ModelWork(const ReportSources& from, const Report& report)
    : from_(from), report_(report) {
  if (!report.utilization.model_known) return;
  if (const auto given = report.utilization.given_formula_ns) {
    const double work_ns = work_of_model_ns(from, report);
    given_ = {.share = work_ns > 0 ? *given / work_ns : 0,
              .complete = report.total.flop_complete()};
    return;
  }
  double model_ns = 0;
  for (const OperatorReport& place : report.operators.places) {
    if (!place.of_model) continue;
    operators_.insert_or_assign({place.path, place.phase}, part_of(place, report));
    model_ns += model_at_peak(place, report).value_or(AtPeak{}).least_ns;
  }
  if (report.named.drawn)
    unnamed_ = {.share = model_ns / report.named.training_ns, .of_others = true, .complete = false};
}

std::optional<ModelWork::Part> ModelWork::at(uint32_t path, uint32_t rule,
                                             uint32_t signature) const {
  const PhaseRules::Rule& its_rule = from_.rules.rules()[rule];
  const std::string& phase = its_rule.phase;
  // A pass without gradients has none of it.
  if (is_unnamed_evaluation(its_rule)) return std::nullopt;
  if (given_) return may_be_of_model(phase, report_) ? given_ : std::nullopt;
  if (phase == kUnnamedPhase) return unnamed_;
  const uint32_t its = from_.operators.operator_of(path);
  const auto found = operators_.find({its == kNoIndex ? path : its, phase});
  if (found == operators_.end()) return std::nullopt;
  const TraceTables& tables = from_.tables;
  if (its == kNoIndex && !attention_kernel(tables.names[tables.signatures[signature].name]))
    return std::nullopt;
  return found->second;
}

}  // namespace flopinj::reduce
