// Where each FLOP figure comes from. For programs; people ask about one kernel.
#include "sections/json_parts.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

Json metric_json(const MetricReport& m) {
  return {{"metric", m.metric}, {"samples", m.samples},
          {"mean", m.mean},     {"standard_deviation", m.spread},
          {"min", m.min},       {"max", m.max}};
}

Json signature_json(const SignatureReport& s) {
  Json j;
  j["kernel"] = s.kernel;
  j["chip"] = s.chip;
  j["grid"] = s.grid;
  j["block"] = s.block;
  j["cluster"] = s.cluster[0] != 0 ? Json(s.cluster) : Json(nullptr);
  j["dynamic_shared_bytes"] = s.dynamic_shared_bytes;
  j["stable_hash"] = decimal(s.stable_hash);
  j["parameters"] = s.parameters;
  j["samples"] = s.samples;
  j["varying"] = s.varying;
  j["flop_per_launch"] = s.flop_per_launch ? Json(decimal(*s.flop_per_launch)) : Json(nullptr);
  j.update(work_json(s.work));
  if (!s.unmeasured_reason.empty()) j["unmeasured_reason"] = s.unmeasured_reason;
  j["metrics"] = list_json(s.metrics, metric_json);
  return j;
}

void json(Json& j, const Report& report) {
  j["signatures"] = list_json(report.signatures, signature_json);
}

}  // namespace

const Subject kSignatures = {nullptr, json};

}  // namespace flopinj::reduce
