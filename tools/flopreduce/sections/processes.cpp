// Each recorded process: where it ran, how its recording ended, and what the profiler cost it.
#include <array>

#include "sections/cells.h"
#include "sections/json_parts.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

Section section(const Report& report) {
  Table table{"overhead",
              {{"process", "process"},
               {"callbacks_ns", "callbacks", Kind::kNanoseconds},
               {"windows_ns", "windows", Kind::kNanoseconds},
               {"startup_ns", "start-up", Kind::kNanoseconds},
               {"helper_cpu_ns", "helper CPU", Kind::kNanoseconds},
               {"written_bytes", "written", Kind::kBytes},
               {"wall_share", "share of wall", Kind::kShare}}};
  table.when_empty = "not in these traces";
  for (const auto& t : report.traces) {
    if (!t.has_overhead) continue;
    const auto& o = t.overhead;
    u128 cost = o.launch_callback_ns();
    add_saturating(cost, o.window_ns());
    add_saturating(cost, o.startup_ns());
    table.rows.push_back({"pid " + std::to_string(t.header.pid()), o.launch_callback_ns(),
                          o.window_ns(), o.startup_ns(), o.helper_cpu_ns(), o.bytes_written(),
                          share_cell(cost, o.wall_ns())});
  }
  return {"The profiler's own cost", {}, std::move(table), {}};
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

Json diagnostic_json(const trace::Diagnostic& d) {
  static constexpr std::array<const char*, 3> kSeverity = {"info", "warning", "error"};
  const auto severity = static_cast<size_t>(d.severity());
  return {{"severity", severity < kSeverity.size() ? kSeverity[severity] : "unknown"},
          {"code", d.code()},
          {"message", d.message()},
          {"time_ns", d.time_ns()}};
}

void add_header(Json& j, const TraceReport& t) {
  const auto& h = t.header;
  j["files"] = t.files;
  j["header"] = t.has_header;
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
}

Json process_json(const TraceReport& t) {
  static constexpr std::array<const char*, 3> kEnd = {"exit", "detach", "failure"};
  Json j;
  add_header(j, t);
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
  j["diagnostics"] = list_json(t.diagnostics, diagnostic_json);
  if (t.diagnostics_left_out > 0) j["diagnostics_left_out"] = t.diagnostics_left_out;
  return j;
}

void json(Json& j, const Report& report) { j["traces"] = list_json(report.traces, process_json); }

}  // namespace

const Subject kProcesses = {section, json};

}  // namespace flopinj::reduce
