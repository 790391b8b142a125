#include "report/json_report.h"

#include <array>
#include <nlohmann/json.hpp>

#include "support/text.h"

namespace flopinj::reduce {
namespace {

using Json = nlohmann::ordered_json;

// FLOP are decimal strings: they pass 2^53, where many JSON readers round.
std::string decimal(u128 value) { return to_decimal(value); }

Json time_value(u128 ns) { return ns > UINT64_MAX ? UINT64_MAX : static_cast<uint64_t>(ns); }

// "flop" is null while a launch is unmeasured; then "flop_partial" holds the sum of the others.
Json work_json(const Work& w) {
  Json j;
  j["launches"] = w.launches;
  j["flop"] = w.flop_complete() ? Json(decimal(w.flop)) : Json(nullptr);
  if (!w.flop_complete()) {
    j["flop_partial"] = w.flop_known() ? Json(decimal(w.flop)) : Json(nullptr);
    j["unmeasured_launches"] = w.unmeasured;
  }
  if (w.varying > 0) j["varying_launches"] = w.varying;
  if (w.unscreened > 0) j["unscreened_launches"] = w.unscreened;
  j["matrix_flop"] = w.flop_complete() ? Json(decimal(w.matrix_flop)) : Json(nullptr);
  j["gpu_time_ns"] = w.time_known() ? time_value(w.time.ns) : Json(nullptr);
  if (w.time.estimated > 0) j["gpu_time_estimated_launches"] = w.time.estimated;
  if (w.time.windowed > 0) j["gpu_time_windowed_launches"] = w.time.windowed;
  if (w.time.unknown > 0) j["gpu_time_unknown_launches"] = w.time.unknown;
  return j;
}

// Integer operations of the tensor cores by source, where there are any.
void add_integer_op(Json& j, const Flop& flop) {
  for (size_t i = 0; i < kIntegerFormats.size(); ++i)
    if (flop.integer[i] > 0)
      j["integer_op"][std::string(kIntegerFormats[i])] = decimal(flop.integer[i]);
}

Json precision_json(const Report& report, const Flop& flop) {
  Json j = Json::object();
  for (size_t i = 0; i < report.precisions.size(); ++i)
    if (flop.by_precision[i] > 0) j[report.precisions[i]] = decimal(flop.by_precision[i]);
  return j;
}

Json reasons_json(const std::vector<Reason>& reasons) {
  Json j = Json::array();
  for (const auto& r : reasons) j.push_back({{"reason", r.reason}, {"launches", r.launches}});
  return j;
}

Json line_json(const LedgerLine& l) {
  return {{"launches", l.launches},
          {"measured", l.measured},
          {"extrapolated", l.extrapolated},
          {"unmeasured", l.unmeasured},
          {"dropped", l.dropped}};
}

Json ledger_json(const LedgerReport& ledger) {
  Json j = line_json(ledger.total);
  j["duplicates_removed"] = ledger.duplicates_removed;
  j["balanced"] = ledger.disagreements.empty();
  j["disagreements"] = ledger.disagreements;
  j["reasons"] = {{"unmeasured", reasons_json(ledger.unmeasured)},
                  {"dropped", reasons_json(ledger.dropped)},
                  {"duplicates", reasons_json(ledger.duplicates)}};
  return j;
}

Json optional_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

void add_ratio(Json& j, const RatioReport& r) {
  j["backward_forward_ratio"] = optional_json(r.ratio);
  if (r.ratio_partial) j["backward_forward_ratio_partial"] = *r.ratio_partial;
  j["backward_forward_matrix_ratio"] = optional_json(r.matrix_ratio);
  j["backward_forward_expected"] = optional_json(r.expected);
  j["first_layer_share"] = optional_json(r.first_layer_share);
  Json layers = Json::array();
  for (const auto& l : r.layers)
    layers.push_back({{"path", l.path},
                      {"forward_matrix_flop", decimal(l.forward_matrix_flop)},
                      {"first", l.first}});
  j["layers"] = std::move(layers);
}

Json kernel_json(const Report& report, const KernelReport& k) {
  Json j;
  j["name"] = k.name;
  j["mangled"] = k.mangled;
  j["signatures"] = k.signatures;
  j.update(work_json(k.work));
  j["precision"] = precision_json(report, k.flop);
  add_integer_op(j, k.flop);
  if (k.merged_launches > 0) j["merged_parameter_launches"] = k.merged_launches;
  if (k.opaque_launches > 0) j["unknown_parameter_launches"] = k.opaque_launches;
  return j;
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
  Json metrics = Json::array();
  for (const auto& m : s.metrics)
    metrics.push_back({{"metric", m.metric},
                       {"samples", m.samples},
                       {"mean", m.mean},
                       {"standard_deviation", m.spread},
                       {"min", m.min},
                       {"max", m.max}});
  j["metrics"] = std::move(metrics);
  return j;
}

Json range_json(const RangeReport& r) {
  Json j;
  j["path"] = r.path;
  j["name"] = r.name;
  j["depth"] = r.depth;
  j.update(work_json(r.inclusive));               // with everything below it
  const Json exclusive = work_json(r.exclusive);  // of launches right in it
  for (const auto& [key, value] : exclusive.items()) j[key + "_exclusive"] = value;
  return j;
}

std::string hex(const std::string& bytes) {
  static constexpr const char* kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : bytes.substr(0, 16)) {
    out.push_back(kDigits[static_cast<uint8_t>(c) >> 4]);
    out.push_back(kDigits[static_cast<uint8_t>(c) & 15]);
  }
  return out;
}

Json device_json(const DeviceReport& d) {
  Json j;
  j["trace"] = d.trace;
  j["ordinal"] = d.facts.id() == 0 ? Json(nullptr) : Json(d.facts.id() - 1);
  j["name"] = d.facts.name();
  j["chip"] = d.facts.chip();
  j["compute_capability"] =
      std::to_string(d.facts.compute_major()) + "." + std::to_string(d.facts.compute_minor());
  j["multiprocessors"] = d.facts.multiprocessors();
  j["memory_bytes"] = d.facts.memory_bytes();
  j["clock_khz"] = d.facts.clock_khz();
  j["memory_clock_khz"] = d.facts.memory_clock_khz();
  j["memory_bus_bits"] = d.facts.memory_bus_bits();
  j["uuid"] = hex(d.facts.uuid());
  j["ledger"] = line_json(d.ledger);
  return j;
}

Json overhead_json(const trace::SelfOverhead& o) {
  return {{"launch_callbacks", o.launch_callbacks()},
          {"launch_callback_ns", o.launch_callback_ns()},
          {"window_ns", o.window_ns()},
          {"window_count", o.window_count()},
          {"startup_ns", o.startup_ns()},
          {"helper_cpu_ns", o.helper_cpu_ns()},
          {"bytes_written", o.bytes_written()},
          {"wall_ns", o.wall_ns()}};
}

Json diagnostics_json(const TraceReport& t) {
  static constexpr std::array<const char*, 3> kSeverity = {"info", "warning", "error"};
  Json list = Json::array();
  for (const auto& d : t.diagnostics) {
    const auto severity = static_cast<size_t>(d.severity());
    list.push_back({{"severity", severity < kSeverity.size() ? kSeverity[severity] : "unknown"},
                    {"code", d.code()},
                    {"message", d.message()},
                    {"time_ns", d.time_ns()}});
  }
  return list;
}

Json trace_json(const TraceReport& t) {
  static constexpr std::array<const char*, 3> kEnd = {"exit", "detach", "failure"};
  Json j;
  j["files"] = t.files;
  j["header"] = t.has_header;
  const auto& h = t.header;
  j["producer"] = h.producer();
  j["pid"] = h.pid();
  j["hostname"] = h.hostname();
  j["command_line"] = Json::array();
  for (const auto& word : h.command_line()) j["command_line"].push_back(word);
  j["rank"] = t.has_header && h.rank() >= 0 ? Json(h.rank()) : Json(nullptr);
  j["rank_source"] = h.rank_source();
  j["simulated"] = t.has_header ? Json(h.simulated()) : Json(nullptr);
  j["cupti_version"] = h.cupti_version();
  j["driver_version"] = h.driver_version();
  const auto reason = static_cast<size_t>(t.end.reason());
  j["end"] = t.has_end ? Json(reason < kEnd.size() ? kEnd[reason] : "unknown") : Json(nullptr);
  j["launches"] = t.launches;
  j["flop"] = t.unmeasured == 0 ? Json(decimal(t.flop)) : Json(nullptr);
  if (t.unmeasured > 0) {
    j["flop_partial"] = t.unmeasured < t.launches ? Json(decimal(t.flop)) : Json(nullptr);
    j["unmeasured_launches"] = t.unmeasured;
  }
  const auto& l = t.ledger;
  j["recorder"] = {
      {"windows_opened", l.windows_opened()},      {"windows_discarded", l.windows_discarded()},
      {"activity_records", l.activity_records()},  {"activity_unmatched", l.activity_unmatched()},
      {"activity_lost", l.activity_lost()},        {"names_generalised", l.names_generalised()},
      {"ranges_overflowed", l.ranges_overflowed()}};
  j["overhead"] = t.has_overhead ? overhead_json(t.overhead) : Json(nullptr);
  j["diagnostics"] = diagnostics_json(t);
  if (t.diagnostics_left_out > 0) j["diagnostics_left_out"] = t.diagnostics_left_out;
  return j;
}

}  // namespace

void write_json(std::ostream& out, const Report& report) {
  Json j;
  j["schema_version"] = kSchemaVersion;
  j["simulated"] = report.simulated ? Json(*report.simulated) : Json(nullptr);
  j["partial"] = report.partial;
  j["fma"] = report.fma;
  j["total"] = work_json(report.total);
  j["ledger"] = ledger_json(report.ledger);
  j["phases"] = Json::object();
  for (const auto& p : report.phases) {
    j["phases"][p.name] = work_json(p.work);
    j["phases"][p.name]["precision"] = precision_json(report, p.flop);
  }
  j["precision"] = precision_json(report, report.flop);
  add_integer_op(j, report.flop);
  j["precision_partial"] = !report.total.flop_complete();
  add_ratio(j, report.ratio);
  const auto list = [&](const char* key, const auto& items, auto&& item_json) {
    j[key] = Json::array();
    for (const auto& item : items) j[key].push_back(item_json(item));
  };
  list("kernels", report.kernels, [&](const auto& k) { return kernel_json(report, k); });
  list("signatures", report.signatures, signature_json);
  list("ranges", report.ranges, range_json);
  j["outside_ranges"] = work_json(report.outside_ranges);
  list("rules", report.rules, [](const RuleReport& r) {
    Json rule{{"rule", r.rule}, {"phase", r.phase}};
    rule.update(work_json(r.work));
    return rule;
  });
  list("devices", report.devices, device_json);
  list("traces", report.traces, trace_json);
  list("damage", report.damage, [](const DamageReport& d) {
    const auto& text = damage_text(d.kind);
    return Json{
        {"file", d.file}, {"kind", text.code}, {"count", d.count}, {"meaning", text.meaning}};
  });
  j["errors"] = report.errors;
  // ASCII only: a name cannot move the cursor of a terminal that shows this. Bytes that are not
  // UTF-8 become U+FFFD.
  out << j.dump(2, ' ', true, Json::error_handler_t::replace) << '\n';
}

}  // namespace flopinj::reduce
