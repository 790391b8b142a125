// Each recorded process: where it ran, how its recording ended, and what the profiler cost it.
#include <array>

#include "sections/parts/cells.h"
#include "sections/parts/json_parts.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

Section processes_section(const Report& report) {
  Table table{"overhead",
              {{"process", "process"},
               {"callbacks_ns", "callbacks", Kind::kNanoseconds},
               {"windows_ns", "windows", Kind::kNanoseconds},
               {"startup_ns", "start-up", Kind::kNanoseconds},
               {"helper_cpu_ns", "helper CPU", Kind::kNanoseconds, Worth::kDetail},
               {"written_bytes", "written", Kind::kBytes, Worth::kDetail},
               {"wall_share", "share of wall", Kind::kShare, Worth::kMain}}};
  table.when_empty = "not in these traces";
  for (const auto& t : report.traces) {
    if (!t.has_overhead) continue;
    const auto& o = t.overhead;
    u128 cost = o.launch_callback_ns();
    add_saturating(cost, o.window_ns());
    add_saturating(cost, o.startup_ns());
    table.rows.push_back({t.name, o.launch_callback_ns(), o.window_ns(), o.startup_ns(),
                          o.helper_cpu_ns(), o.bytes_written(),
                          t.wall_ns ? share_cell(cost, *t.wall_ns) : Cell::none()});
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

const char* severity_word(const trace::Diagnostic& d) {
  static constexpr std::array<const char*, 3> kSeverity = {"info", "warning", "error"};
  const auto severity = static_cast<size_t>(d.severity());
  return severity < kSeverity.size() ? kSeverity[severity] : "unknown";
}

// How the recording ended; empty where nothing says.
const char* end_word(const TraceReport& t) {
  static constexpr std::array<const char*, 3> kEnd = {"exit", "detach", "failure"};
  const auto reason = static_cast<size_t>(t.end.reason());
  return !t.has_end ? "" : reason < kEnd.size() ? kEnd[reason] : "unknown";
}

Json diagnostic_json(const trace::Diagnostic& d) {
  return {{"severity", severity_word(d)},
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
  Json j;
  add_header(j, t);
  j["end"] = t.has_end ? Json(end_word(t)) : Json(nullptr);
  j["launches"] = t.launches;
  j["flop"] = t.unmeasured == 0 ? Json(decimal(t.flop)) : Json(nullptr);
  if (t.unmeasured > 0) {
    j["flop_partial"] = t.unmeasured < t.launches ? Json(decimal(t.flop)) : Json(nullptr);
    j["unmeasured_launches"] = t.unmeasured;
  }
  if (!t.header.choice().empty()) {
    j["choice"] = t.header.choice();
    j["passed_over"] = t.ledger.passed_over();
  }
  const auto& l = t.ledger;
  j["recorder"] = {
      {"windows_opened", l.windows_opened()},       {"windows_discarded", l.windows_discarded()},
      {"activity_records", l.activity_records()},   {"activity_unmatched", l.activity_unmatched()},
      {"activity_lost", l.activity_lost()},         {"names_cut", l.names_cut()},
      {"names_generalised", l.names_generalised()}, {"ranges_overflowed", l.ranges_overflowed()}};
  j["overhead"] = t.has_overhead ? overhead_json(t.overhead) : Json(nullptr);
  j["diagnostics"] = list_json(t.diagnostics, diagnostic_json);
  if (t.diagnostics_left_out > 0) j["diagnostics_left_out"] = t.diagnostics_left_out;
  return j;
}

void processes_json(Json& j, const Report& report) {
  j["traces"] = list_json(report.traces, process_json);
}

std::string joined(const auto& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

Table process_table(const Report& report) {
  Table table{"processes",
              {{"process", "process", Kind::kCount},
               {"files", "files"},
               {"producer", "producer"},
               {"simulated", "simulated", Kind::kCount},
               {"hostname", "host"},
               {"pid", "pid", Kind::kCount},
               {"rank", "rank", Kind::kCount},
               {"command_line", "command line"},
               {"cupti_version", "CUPTI", Kind::kCount},
               {"driver_version", "driver", Kind::kCount},
               {"end", "end"},
               {"launches", "launches", Kind::kCount},
               {"unmeasured_launches", "unmeasured", Kind::kCount},
               {"flop", "FLOP", Kind::kFlop}}};
  for (size_t i = 0; i < report.traces.size(); ++i) {
    const TraceReport& t = report.traces[i];
    const auto& h = t.header;
    const auto from_header = [&](uint64_t value) {
      return t.has_header ? Cell(value) : Cell::none();
    };
    table.rows.push_back(
        {uint64_t{i}, joined(t.files), h.producer(), from_header(h.simulated() ? 1 : 0),
         h.hostname(), from_header(h.pid()),
         t.has_header && h.rank() >= 0 ? Cell(static_cast<uint64_t>(h.rank())) : Cell::none(),
         joined(h.command_line()), from_header(h.cupti_version()), from_header(h.driver_version()),
         end_word(t), t.launches, t.unmeasured,
         t.unmeasured < t.launches || t.launches == 0
             ? Cell(t.flop, (t.unmeasured == 0 ? Mark::kNone : Mark::kAtLeast) |
                                (t.varying > 0 ? Mark::kEstimate : Mark::kNone))
             : Cell::none("not measured")});
  }
  return table;
}

Table diagnostic_table(const Report& report) {
  Table table{"diagnostics",
              {{"process", "process", Kind::kCount},
               {"severity", "severity"},
               {"code", "code"},
               {"message", "message"},
               {"time_ns", "time", Kind::kNanoseconds}}};
  for (size_t i = 0; i < report.traces.size(); ++i)
    for (const auto& d : report.traces[i].diagnostics)
      table.rows.push_back({uint64_t{i}, severity_word(d), d.code(), d.message(), d.time_ns()});
  return table;
}

std::vector<Table> processes_tables(const Report& report) {
  return {process_table(report), diagnostic_table(report)};
}

}  // namespace

const Subject kProcesses = {processes_section, processes_json, processes_tables};

}  // namespace flopinj::reduce
