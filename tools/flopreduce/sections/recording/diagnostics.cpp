// What the recorders had to say. Programs find it with each process.
#include <algorithm>

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

}  // namespace

const Subject kDiagnostics = {diagnostics_section, nullptr};

}  // namespace flopinj::reduce
