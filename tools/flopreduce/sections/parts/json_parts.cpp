#include "sections/parts/json_parts.h"

namespace flopinj::reduce {

Json work_json(const Work& w) {
  Json j;
  j["launches"] = w.launches;
  j["flop"] = w.flop_complete() ? Json(decimal(w.flop)) : Json(nullptr);
  if (!w.flop_complete()) {
    j["flop_partial"] = w.flop_known() ? Json(decimal(w.flop)) : Json(nullptr);
    j["unmeasured_launches"] = w.unmeasured;
  }
  if (w.varying > 0) {
    j["varying_launches"] = w.varying;
    const auto interval = w.interval();
    j["flop_interval_95"] =
        interval ? Json{{"low", decimal(interval->low)}, {"high", decimal(interval->high)}}
                 : Json(nullptr);
    if (const uint64_t unknown = w.uncertainty.unknown_launches(); unknown > 0)
      j["too_few_samples_launches"] = unknown;
    if (const uint64_t elsewhere = w.uncertainty.elsewhere_launches(); elsewhere > 0)
      j["not_sampled_everywhere_launches"] = elsewhere;
  }
  if (w.doubtful > 0) j["flop_doubtful"] = decimal(w.doubtful);
  if (w.left_out > 0) j["flop_left_out"] = decimal(w.left_out);
  if (w.agreeing > 0) {
    j["agreeing_launches"] = w.agreeing;
    j["fewest_windows"] = w.fewest_windows;
    j["unseen_share_95"] = unseen_share(w.fewest_windows);
  }
  if (w.unscreened > 0) j["unscreened_launches"] = w.unscreened;
  j["matrix_flop"] = w.flop_complete() ? Json(decimal(w.matrix_flop)) : Json(nullptr);
  j["gpu_time_ns"] = w.time_known() ? time_json(w.time.ns) : Json(nullptr);
  if (w.time.estimated > 0) j["gpu_time_estimated_launches"] = w.time.estimated;
  if (w.time.windowed > 0) j["gpu_time_windowed_launches"] = w.time.windowed;
  if (w.time.unknown > 0) j["gpu_time_unknown_launches"] = w.time.unknown;
  return j;
}

Json precision_json(const Report& report, const Flop& flop) {
  Json j = Json::object();
  for (size_t i = 0; i < report.precisions.size(); ++i)
    if (flop.by_precision[i] > 0) j[report.precisions[i]] = decimal(flop.by_precision[i]);
  return j;
}

void add_integer_op(Json& to, const Flop& flop) {
  for (size_t i = 0; i < kIntegerFormats.size(); ++i)
    if (flop.integer[i] > 0)
      to["integer_op"][std::string(kIntegerFormats[i])] = decimal(flop.integer[i]);
}

void add_expected(Json& to, const std::optional<ExpectedRatio>& expected) {
  to["backward_forward_expected"] = expected ? optional_json(expected->value()) : Json(nullptr);
  if (!expected) return;
  if (!expected->certain())
    to["backward_forward_expected_range"] = {expected->least, expected->most};
  if (expected->assumed) to["backward_forward_expected_assumed"] = true;
  if (!expected->basis.empty()) to["backward_forward_expected_basis"] = expected->basis;
}

Json verdict_json(RatioVerdict verdict) {
  switch (verdict) {
    case RatioVerdict::kInside:
      return "inside";
    case RatioVerdict::kOutside:
      return "outside";
    case RatioVerdict::kUndecided:
      return "undecided";
    case RatioVerdict::kNone:
      break;
  }
  return nullptr;
}

Json ledger_line_json(const LedgerLine& l) {
  return {{"launches", l.launches},
          {"measured", l.measured},
          {"extrapolated", l.extrapolated},
          {"unmeasured", l.unmeasured},
          {"dropped", l.dropped}};
}

}  // namespace flopinj::reduce
