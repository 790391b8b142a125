// Each recorded process: where it ran, how its recording ended, and what the profiler cost it.
#include <array>

#include "sections/parts/cells.h"
#include "sections/parts/records.h"
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
  table.long_list = true;
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

void header_fields(Fields& f, const TraceReport& t) {
  const auto& h = t.header;
  f("files", t.files);
  f("header", t.has_header, "false: lost, and what follows of it is empty or null");
  f("producer", h.producer());
  f("pid", when(t.has_header, h.pid()));
  f("hostname", h.hostname());
  f("command_line", h.command_line());
  f("rank", rank_cell(t));
  f("rank_source", h.rank_source());
  f("job_id", text_or_null(h.job_id()),
    "of the job, as its scheduler or the user names it; null where nobody did");
  f("job_id_source", h.job_id_source());
  f("simulated", t.has_header ? std::optional(h.simulated()) : std::nullopt);
  f("cupti_version", when(t.has_header, h.cupti_version()));
  f("driver_version", when(t.has_header, h.driver_version()));
  f("choice", text_or_null(h.choice()),
    "the options that chose which launches are recorded; null where all are");
  f("passed_over", when(!h.choice().empty(), t.ledger.passed_over()),
    "launches made meanwhile that were not chosen; null where all are");
}

Cell process_flop_cell(const TraceReport& t) {
  if (t.unmeasured == t.launches && t.launches > 0) return Cell::none("not measured");
  return {t.flop, (t.unmeasured == 0 ? Mark::kNone : Mark::kAtLeast) |
                      (t.varying > 0 ? Mark::kEstimate : Mark::kNone)};
}

void recorder_fields(Fields& f, const trace::Ledger& l) {
  f("windows_opened", l.windows_opened());
  f("windows_discarded", l.windows_discarded());
  f("activity_records", l.activity_records());
  f("activity_unmatched", l.activity_unmatched());
  f("activity_lost", l.activity_lost());
  f("names_cut", l.names_cut());
  f("names_generalised", l.names_generalised());
  f("ranges_overflowed", l.ranges_overflowed());
}

void overhead_fields(Fields& f, const trace::SelfOverhead& o) {
  f("launch_callbacks", o.launch_callbacks());
  f("launch_callback_ns", o.launch_callback_ns());
  f("window_ns", o.window_ns());
  f("window_count", o.window_count());
  f("startup_ns", o.startup_ns());
  f("helper_cpu_ns", o.helper_cpu_ns());
  f("bytes_written", o.bytes_written());
  f("wall_ns", o.wall_ns());
}

void diagnostic_fields(Fields& f, const trace::Diagnostic& d) {
  f.word("severity", severity_word(d), {"info", "warning", "error", "unknown"});
  f("code", d.code());
  f("message", d.message());
  f("time_ns", d.time_ns());
}

void process_fields(Fields& f, const TraceReport& t) {
  header_fields(f, t);
  f.word("end", text_or_null(end_word(t)), {"exit", "detach", "failure", "unknown"},
         "null: killed, or still running");
  f("launches", t.launches);
  f("unmeasured_launches", t.unmeasured);
  f.sum("flop", process_flop_cell(t));
  f.object("recorder", "", [&](Fields& recorder) { recorder_fields(recorder, t.ledger); });
  f.object_if(t.has_overhead, "overhead", "what the profiler cost",
              [&](Fields& overhead) { overhead_fields(overhead, t.overhead); });
  f.list("diagnostics", t.diagnostics, "what the recorder had to say", diagnostic_fields);
  f("diagnostics_left_out", t.diagnostics_left_out);
}

void processes_fields(Fields& f, const Report& report) {
  f.list("traces", report.traces, "one per recorded process", process_fields);
}

std::string joined(const auto& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

Table process_table(const Report& report) {
  Table table{"processes",
              {{"process", "process", Kind::kCount},
               {"run", "run", Kind::kCount},
               {"session", "session"},
               {"files", "files"},
               {"producer", "producer"},
               {"simulated", "simulated", Kind::kCount},
               {"hostname", "host"},
               {"pid", "pid", Kind::kCount},
               {"rank", "rank", Kind::kCount},
               {"world_size", "ranks", Kind::kCount},
               {"job_id", "job"},
               {"command_line", "command line"},
               {"cupti_version", "CUPTI", Kind::kCount},
               {"driver_version", "driver", Kind::kCount},
               {"devices", "devices", Kind::kCount},
               {"begin_ns", "began", Kind::kCount},
               {"wall_ns", "wall", Kind::kNanoseconds},
               {"end", "end"},
               {"launches", "launches", Kind::kCount},
               {"unmeasured_launches", "unmeasured", Kind::kCount},
               {"coverage", "coverage", Kind::kShare},
               {"flop", "FLOP", Kind::kFlop},
               {"hfu", "HFU", Kind::kShare},
               {"damage", "damage"}}};
  for (size_t i = 0; i < report.traces.size(); ++i) {
    const TraceReport& t = report.traces[i];
    const auto& h = t.header;
    const auto from_header = [&](uint64_t value) {
      return t.has_header ? Cell(value) : Cell::none();
    };
    table.rows.push_back({uint64_t{i},
                          uint64_t{t.run + 1},
                          session_cell(t),
                          joined(t.files),
                          h.producer(),
                          from_header(h.simulated() ? 1 : 0),
                          h.hostname(),
                          from_header(h.pid()),
                          rank_cell(t),
                          h.world_size() != 0 ? Cell(uint64_t{h.world_size()}) : Cell::none(),
                          h.job_id(),
                          joined(h.command_line()),
                          from_header(h.cupti_version()),
                          from_header(h.driver_version()),
                          t.devices,
                          h.clock_realtime_ns() != 0 ? Cell(h.clock_realtime_ns()) : Cell::none(),
                          t.wall_ns ? Cell(*t.wall_ns) : Cell::none(),
                          end_word(t),
                          t.launches,
                          t.unmeasured,
                          share_cell(t.launches - t.unmeasured, t.launches),
                          process_flop_cell(t),
                          share_cell(t.hfu),
                          t.damage});
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

const Subject kProcesses = {processes_section, processes_fields, processes_tables};

}  // namespace flopinj::reduce
