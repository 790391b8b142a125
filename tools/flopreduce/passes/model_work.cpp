#include "passes/model_work.h"

#include <algorithm>

#include "phases/phases.h"
#include "report/named_part.h"

namespace flopinj::reduce {
namespace {

ModelWork::Part part_of(const OperatorReport& place, const Report& report) {
  const Work& work = place.work;
  ModelWork::Part part{.share = 1, .each_fs = {}, .complete = work.flop_complete()};
  if (part.complete && work.flop > 0) {
    part.share = *place.model.flop().number() / static_cast<double>(work.flop);
    return part;
  }
  const double least_ns = model_least_ns(place, report).value_or(0);
  // The launches that are not measured may have been quick, and have executed most.
  if (work.roof.compute_ns > 0) part.share = std::min(1.0, least_ns / work.roof.compute_ns);
  part.each_fs = least_ns * 1e6 / static_cast<double>(std::max<uint64_t>(1, work.launches));
  return part;
}

}  // namespace

double work_done_once_ns(const Report& report) {
  double ns = 0;
  for (const PhaseReport& phase : report.phases)
    if (phase.name != "recompute") ns += phase.work.roof.compute_ns;
  return ns;
}

ModelWork::ModelWork(const ReportSources& from, const Report& report) : from_(from) {
  if (!report.utilization.model_known) return;
  if (const auto given = report.utilization.given_formula_ns) {
    const double work_ns = work_done_once_ns(report);
    all_ = {.share = work_ns > 0 ? *given / work_ns : 0,
            .each_fs = {},
            .complete = report.total.flop_complete()};
    return;
  }
  double model_ns = 0;
  for (const OperatorReport& place : report.operators.places) {
    if (!place.of_model) continue;
    operators_.insert_or_assign({place.path, place.phase}, part_of(place, report));
    model_ns += model_least_ns(place, report).value_or(0);
  }
  if (report.named.drawn)
    unnamed_ = {.share = model_ns / named_work(report).roof.compute_ns,
                .each_fs = {},
                .of_others = true,
                .complete = false};
}

std::optional<ModelWork::Part> ModelWork::at(uint32_t path, uint32_t rule) const {
  const std::string& phase = from_.rules.rules()[rule].phase;
  if (phase == "recompute") return std::nullopt;
  if (all_) return all_;
  if (phase == kUnnamedPhase) return unnamed_;
  const uint32_t its = from_.operators.operator_of(path);
  if (its == kNoIndex) return std::nullopt;
  const auto found = operators_.find({its, phase});
  return found == operators_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace flopinj::reduce
