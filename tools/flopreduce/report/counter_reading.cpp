#include <array>
#include <string_view>

#include "report/build_report.h"

namespace flopinj::reduce {
namespace {

struct CodeMeaning {
  std::string_view code;  // of diagnostics: injector/cupti_check.cpp
  CounterReading reading;
};
constexpr std::array kMeanings{
    CodeMeaning{"counters.privileges", CounterReading::kRefused},
    CodeMeaning{"counters.vgpu", CounterReading::kRefused},
    CodeMeaning{"counters.busy", CounterReading::kBusy},
    CodeMeaning{"cupti.subscriber", CounterReading::kBusy},
};

CounterReading meaning_of(const trace::Diagnostic& diagnostic) {
  if (diagnostic.severity() == trace::Diagnostic::INFO) return CounterReading::kUnknown;
  for (const CodeMeaning& known : kMeanings)
    if (known.code == diagnostic.code()) return known.reading;
  const bool about_counters =
      diagnostic.code().starts_with("counters.") || diagnostic.code() == "cupti.no_range_profiler";
  return about_counters ? CounterReading::kFailed : CounterReading::kUnknown;
}

}  // namespace

CounterReport counter_reading(const Recorded& trace, bool samples) {
  if (samples) return {CounterReading::kRead, {}};
  CounterReport found;
  for (const auto& diagnostic : trace.diagnostics) {
    const CounterReading meaning = meaning_of(diagnostic);
    const bool known = meaning == CounterReading::kRefused || meaning == CounterReading::kBusy;
    const bool first = found.reading == CounterReading::kUnknown;
    if (meaning == CounterReading::kUnknown || (!first && !known)) continue;
    found = {meaning, diagnostic.message()};
    if (known) break;
  }
  if (found.reading == CounterReading::kRefused || found.reading == CounterReading::kBusy)
    return found;
  if (trace.header.mode().empty()) return found;
  if (!trace.header.counters()) return {CounterReading::kNotAsked, {}};
  if (!trace.header.measures()) return {CounterReading::kOtherRanks, {}};
  if (found.reading == CounterReading::kUnknown) found.reading = CounterReading::kNoneRead;
  return found;
}

}  // namespace flopinj::reduce
