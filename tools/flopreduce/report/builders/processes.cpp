// The recorded processes: what became of their counters, which belong together, how they compare.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include "report/build_report.h"
#include "report/runs.h"

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
    found = {meaning, last_word(diagnostic)};
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

namespace {

RecordedProcess recording_of(const Report& report, size_t index) {
  const TraceReport& t = report.traces[index];
  RecordedProcess r(t.header);
  std::optional<uint64_t> length = t.recorded_ns();
  if (!length && t.header.clock_trace_ns() != 0)
    for (const TimeReport::Device& d : report.time.devices) {
      if (d.trace != index || !d.busy_ns || !d.idle_ns) continue;
      u128 end = *d.busy_ns + *d.idle_ns + d.begin_ns;
      if (end >= t.header.clock_trace_ns() && end <= UINT64_MAX)
        length =
            std::max(length.value_or(0), static_cast<uint64_t>(end) - t.header.clock_trace_ns());
    }
  if (length && *length <= UINT64_MAX - r.begin_ns) r.end_ns = r.begin_ns + *length;
  return r;
}

}  // namespace

void build_runs(Report& report) {
  std::vector<RecordedProcess> recordings;
  std::vector<size_t> traces;
  for (size_t i = 0; i < report.traces.size(); ++i) {
    const uint64_t begin = report.traces[i].header.clock_realtime_ns();
    if (!report.traces[i].has_header || begin == 0 || begin > INT64_MAX) continue;
    recordings.push_back(recording_of(report, i));
    traces.push_back(i);
  }
  const Runs found = runs_of(recordings);
  for (const Run& run : found.runs) {
    RunReport& made = report.runs.emplace_back();
    made.header = run.header();
    made.begin_ns = run.header().clock_realtime_ns();
    if (run.commands().size() > 1)
      made.programs.assign(run.commands().begin(), run.commands().end());
  }
  for (size_t i = 0; i < traces.size(); ++i) report.traces[traces[i]].run = found.of[i];
  if (report.runs.empty() && !report.traces.empty()) report.runs.emplace_back();
  for (size_t i = 0; i < report.traces.size(); ++i)
    report.runs[report.traces[i].run].traces.push_back(i);
}

namespace {

using PhaseTimes = std::map<std::string, TraceReport::Phase>;

// GPU time of each process by phase.
std::vector<PhaseTimes> times_of(const ReportSources& from, const WorkTable& work) {
  const TraceTables& tables = from.tables;
  std::vector<PhaseTimes> times(tables.traces.size());
  const auto phase_of = [&](uint32_t device, uint32_t rule) -> TraceReport::Phase& {
    return times[tables.devices[device].trace][from.rules.rules()[rule].phase];
  };
  // A rule's launches on a device may be in several range paths: without times by one mean.
  std::map<uint32_t, std::map<uint32_t, TimedRow>> of_signature;  // by rule, device
  const auto end_signature = [&](uint32_t signature) {
    for (const auto& [rule, devices] : of_signature)
      for (const auto& [device, row] : devices) {
        TraceReport::Phase& phase = phase_of(device, rule);
        add_saturating(phase.time.ns, row.ns);
        if (row.launches <= row.timed) continue;
        Counts untimed;
        untimed.launches = row.launches - row.timed;
        bool overflow = false;
        const Counts& all = work.result(signature, tables.devices[device].chip).counts;
        phase.time.add(time_of(untimed, all, overflow));
      }
    of_signature.clear();
  };
  uint32_t at_hand = SignatureTable::kUndefined;
  from.totals.timed_rows.for_each([&](const TimedPlace& place, const TimedRow& row) {
    if (place.signature != at_hand) end_signature(at_hand);
    at_hand = place.signature;
    of_signature[place.rule][row.device].add(row);
  });
  end_signature(at_hand);
  return times;
}

constexpr uint32_t kMostRanks = 1U << 20;  // a damaged header may claim any number

// Of traces of several jobs the largest.
std::optional<uint32_t> world_size_of(const Report& report) {
  uint32_t size = 0;
  for (const TraceReport& trace : report.traces)
    if (trace.has_header && trace.header.world_size() <= kMostRanks)
      size = std::max(size, trace.header.world_size());
  return size > 0 ? std::optional(size) : std::nullopt;
}

// Ranks of the job that no trace has: up to its size, or else to the highest rank seen. Several
// recordings of one rank are one rank.
std::vector<uint32_t> missing_of(const std::set<uint32_t>& seen,
                                 std::optional<uint32_t> world_size) {
  std::vector<uint32_t> missing;
  if (seen.empty() || *seen.rbegin() > kMostRanks) return missing;
  const uint32_t end = std::max(*seen.rbegin(), world_size.value_or(0));
  for (uint32_t rank = 0; rank < end; ++rank)
    if (!seen.contains(rank)) missing.push_back(rank);
  return missing;
}

}  // namespace

void build_ranks(const ReportSources& from, const WorkTable& work, Report& report) {
  RanksReport& out = report.ranks;
  std::vector<PhaseTimes> times = times_of(from, work);
  std::set<uint32_t> seen, twice;
  uint64_t first_start = UINT64_MAX;
  for (size_t i = 0; i < report.traces.size(); ++i) {
    TraceReport& trace = report.traces[i];
    if (trace.rank() && !seen.insert(*trace.rank()).second) twice.insert(*trace.rank());
    if (trace.start_ns()) first_start = std::min(first_start, *trace.start_ns());
    trace.work.time = {};
    for (const auto& phase : report.phases) {
      TraceReport::Phase& time = times[i][phase.name];
      time.name = phase.name;
      trace.work.time.add(time.time);
      trace.phases.push_back(std::move(time));
    }
  }
  for (const auto& device : from.tables.devices)
    report.traces[device.trace].clock_khz =
        std::max(report.traces[device.trace].clock_khz, device.facts.clock_khz());
  for (TraceReport& trace : report.traces)
    if (trace.start_ns()) trace.start_skew_ns = *trace.start_ns() - first_start;
  out.world_size = world_size_of(report);
  out.missing = missing_of(seen, out.world_size);
  out.repeated.assign(twice.begin(), twice.end());
}

}  // namespace flopinj::reduce
