// What the recorders had to say.
#include <algorithm>
#include <array>

#include "sections/parts/cells.h"
#include "sections/sections.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

Section diagnostics_section(const Report& report) {
  constexpr size_t kMost = 20;  // of a process
  Section s;
  for (const auto& t : report.traces) {
    for (size_t i = 0; i < std::min(t.diagnostics.size(), kMost); ++i) {
      const auto& d = t.diagnostics[i];
      if (d.severity() == trace::Diagnostic::INFO) continue;
      const bool error = d.severity() == trace::Diagnostic::ERROR;
      s.above.push_back(Line("  ")
                            .then(error ? "error" : "warning", error ? Tone::kBad : Tone::kWarn)
                            .then(" " + t.name + ": " + cut(d.message(), 1000) + " [" +
                                  cut(d.code(), 100) + "]"));
    }
    if (t.diagnostics.size() > kMost)
      s.above.emplace_back("  and more of this process: --format json");
  }
  if (!s.above.empty()) s.title = "Diagnostics";
  return s;
}

struct DiagnosticRow {
  uint64_t process;
  const trace::Diagnostic* said;
};

std::vector<DiagnosticRow> diagnostic_rows(const Report& report) {
  std::vector<DiagnosticRow> rows;
  for (const TraceReport& t : report.traces)
    for (const auto& d : t.diagnostics) rows.push_back({number_of(t, report), &d});
  return rows;
}

const char* severity_word(const DiagnosticRow& row) {
  static constexpr std::array kSeverity = {"info", "warning", "error"};
  const auto severity = static_cast<size_t>(row.said->severity());
  return severity < kSeverity.size() ? kSeverity[severity] : "unknown";
}

Columns<DiagnosticRow> diagnostic_columns() {
  using trace::Diagnostic;
  const auto said = &DiagnosticRow::said;
  Columns<DiagnosticRow> c;
  c.count("process", "process", &DiagnosticRow::process, "number of the process, from 0");
  c.text("severity", "severity", severity_word);
  c.text("code", "code", through(said, &Diagnostic::code));
  c.text("message", "message", through(said, &Diagnostic::message));
  c.figure("time_ns", "time", Kind::kNanoseconds, exactly(through(said, &Diagnostic::time_ns)),
           "on the trace's clock");
  return c;
}

const TableSource kDiagnosticTable("diagnostics", "messages of the recorders", diagnostic_columns,
                                   diagnostic_rows);

}  // namespace

const Subject kDiagnostics = {diagnostics_section, {&kDiagnosticTable}};

}  // namespace flopinj::reduce
