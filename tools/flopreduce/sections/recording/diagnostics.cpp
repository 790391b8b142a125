// What the recorders had to say.
#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <span>

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

const char* severity_word(const trace::Diagnostic& one) {
  static constexpr std::array kSeverity = {"info", "warning", "error"};
  const auto severity = static_cast<size_t>(one.severity());
  return severity < kSeverity.size() ? kSeverity[severity] : "unknown";
}

Section diagnostics_section(const Report& report) {
  constexpr size_t kMost = 20;                                          // of a process
  constexpr std::array kTones = {Tone::kDim, Tone::kWarn, Tone::kBad};  // by severity
  Section s;
  for (const auto& t : report.traces) {
    std::vector<const trace::Diagnostic*> all;
    for (const auto& d : t.diagnostics) all.push_back(&d);
    std::ranges::stable_sort(all, std::greater<>(), &trace::Diagnostic::severity);
    for (const auto* d : std::span(all).first(std::min(all.size(), kMost))) {
      const auto severity = static_cast<size_t>(d->severity());
      const Tone tone = severity < kTones.size() ? kTones[severity] : Tone::kPlain;
      s.above.push_back(Line("  ")
                            .then(severity_word(*d), tone)
                            .then(" " + t.name + ": " + cut(d->message(), 1000) + times_text(*d) +
                                  " [" + cut(d->code(), 100) + "]"));
    }
    if (all.size() > kMost)
      s.above.emplace_back("  and " + to_grouped(all.size() - kMost) +
                           " more of this process: --format json");
  }
  if (!s.above.empty()) s.title = "Diagnostics";
  return s;
}

using DiagnosticRow = Of<TraceReport, trace::Diagnostic>;

std::optional<uint64_t> last_time(const trace::Diagnostic& d) {
  return d.last_message().empty() ? std::nullopt : std::optional(d.last_time_ns());
}

Columns<DiagnosticRow> diagnostic_columns() {
  using trace::Diagnostic;
  Columns<DiagnosticRow> c;
  c.count(said::kNumberOf,
          [](const DiagnosticRow& row, const Report& report) { return number_of(row.of, report); });
  c.text("severity", "severity", of_one(severity_word));
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
