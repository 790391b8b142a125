// What the recorders had to say.
#include <algorithm>
#include <array>
#include <optional>

#include "sections/parts/cells.h"
#include "sections/parts/said.h"
#include "sections/sections.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

std::string times_text(const trace::Diagnostic& d) {
  if (d.times() <= 1) return {};
  const std::string times = " (" + to_grouped(d.times()) + " times";
  return times + (d.last_message().empty() ? "" : "; at last: " + cut(d.last_message(), 1000)) +
         ")";
}

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
                            .then(" " + t.name + ": " + cut(d.message(), 1000) + times_text(d) +
                                  " [" + cut(d.code(), 100) + "]"));
    }
    if (t.diagnostics.size() > kMost)
      s.above.emplace_back("  and more of this process: --format json");
  }
  if (!s.above.empty()) s.title = "Diagnostics";
  return s;
}

using DiagnosticRow = Of<TraceReport, trace::Diagnostic>;

std::optional<uint64_t> last_time(const trace::Diagnostic& d) {
  return d.last_message().empty() ? std::nullopt : std::optional(d.last_time_ns());
}

const char* severity_word(const DiagnosticRow& row) {
  static constexpr std::array kSeverity = {"info", "warning", "error"};
  const auto severity = static_cast<size_t>(row.one.severity());
  return severity < kSeverity.size() ? kSeverity[severity] : "unknown";
}

Columns<DiagnosticRow> diagnostic_columns() {
  using trace::Diagnostic;
  Columns<DiagnosticRow> c;
  c.count(said::kNumberOf,
          [](const DiagnosticRow& row, const Report& report) { return number_of(row.of, report); });
  c.text("severity", "severity", severity_word);
  c.text("code", "code", of_one(&Diagnostic::code));
  c.text("message", "message", of_one(&Diagnostic::message));
  c.figure("time_ns", "time", Kind::kNanoseconds, exactly(of_one(&Diagnostic::time_ns)),
           "on the trace's clock");
  c.count("times", "times",
          [](const DiagnosticRow& row) { return std::max<uint64_t>(1, row.one.times()); });
  c.text("last_message", "last message", or_null(of_one(&Diagnostic::last_message)),
         "where it came more than once, with other words");
  c.figure("last_time_ns", "last time", Kind::kNanoseconds, exactly(of_one(last_time)),
           "of that message");
  return c;
}

const TableSource kDiagnosticTable("diagnostics", "messages of the recorders", diagnostic_columns,
                                   each_of(&Report::traces, &TraceReport::diagnostics));

}  // namespace

const Subject kDiagnostics = {{&kDiagnosticTable}, diagnostics_section};

}  // namespace flopinj::reduce
