#include <algorithm>
#include <map>

#include "report/build_report.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

using ReasonCounts = std::map<std::string, uint64_t>;

struct Measured {
  uint64_t launches = 0;
  uint64_t in_graphs = 0;  // of them
};

// Launches whose counters were read on this very device: every group that is required for all
// kernels has that many samples.
Measured measured_on(const TraceTables& tables, const DeviceRow& row,
                     std::vector<GroupSamples> groups) {
  const auto& required = tables.required[tables.devices[row.device].chip].always;
  if (required.empty()) return {};
  SampleSet samples;
  samples.groups = std::move(groups);
  Measured least{row.launches, std::min(row.graph, row.launches)};
  for (const uint32_t group : required) {
    least.launches = std::min(least.launches, samples.group_samples(group));
    least.in_graphs = std::min(least.in_graphs, samples.graph_samples(group));
  }
  least.in_graphs = std::min(least.in_graphs, least.launches);
  return least;
}

// The signature's counts come only from graph launches, whichever device and process made them.
bool counted_by_graphs(const TraceTables& tables, uint32_t signature, uint32_t chip) {
  const SampleSet* samples = tables.samples_by_chip.find(signature, chip);
  const auto& required = tables.required[chip].always;
  return samples != nullptr && std::any_of(required.begin(), required.end(), [&](uint32_t group) {
           const uint64_t of_graphs = samples->graph_samples(group);
           return of_graphs > 0 && of_graphs == samples->group_samples(group);
         });
}

std::string device_label(const Report& report, const Device& device) {
  return report.traces[device.trace].name + " device " +
         (device.id == 0 ? "?" : std::to_string(device.id - 1));
}

// Says where a trace's own ledger disagrees with itself or with the rows. `unreadable`: recorded
// launches that no row holds.
void check_against_trace(const TraceTables& tables, const Device& device, uint64_t rows,
                         uint64_t unreadable, Report& report) {
  const auto& trace = tables.traces[device.trace];
  LedgerReport& ledger = report.ledger;
  if (!trace.has_ledger) return;
  const std::string label = device_label(report, device);
  u128 accounted = device.ledger_recorded;
  add_saturating(accounted, device.ledger_dropped);
  // Before the end of a recording the last ones made are on their way.
  const bool on_their_way = !trace.complete() && accounted < device.ledger_launches;
  if (accounted != device.ledger_launches && !on_their_way)
    ledger.disagreements.push_back(label + ": the trace's ledger has " +
                                   to_grouped(device.ledger_launches) + " launches made, but " +
                                   to_grouped(accounted) + " recorded or dropped");
  if (unreadable > 0)
    ledger.disagreements.push_back(label + ": the trace recorded " +
                                   to_grouped(device.ledger_recorded) + " launches, but only " +
                                   to_grouped(device.ledger_recorded - unreadable) +
                                   " of them are readable (see Damage)");
  // Before the end of a recording the ledger may be older than the last rows.
  if (trace.complete() && device.id != 0 && rows > device.ledger_recorded)
    ledger.disagreements.push_back(label + ": the trace holds " + to_grouped(rows) +
                                   " launches, but its ledger has " +
                                   to_grouped(device.ledger_recorded) + " recorded");
}

// The reason of a signature that was launched in no place where counters are read.
const char* only_where_nothing_is_read(const Counts& counts) {
  if (counts.launches == 0) return nullptr;
  if (counts.graph >= counts.launches) return kGraphOnly;
  return counts.green >= counts.launches - counts.graph ? kGreenContext : nullptr;
}

void append(std::vector<Reason>& to, const ReasonCounts& from) {
  for (const auto& [reason, launches] : from)
    if (launches > 0) to.push_back({reason, launches});
  std::ranges::stable_sort(to, std::greater<>(), &Reason::launches);
}

}  // namespace

std::string reason_of(const TraceTables& tables, const WorkTable& work, uint32_t signature,
                      uint32_t chip) {
  const SignatureResult& result = work.result(signature, chip);
  const SignatureFlop& flop = result.flop;
  switch (flop.status) {
    case FlopStatus::kMeasured:
      return {};
    case FlopStatus::kNoCounters:
      if (tables.no_device[chip]) return "device_unknown";
      return "no_counters";
    case FlopStatus::kGroupNotSampled:
      if (tables.never_measured.contains(tables.signatures[signature].name)) return kNeverMeasured;
      if (const char* nowhere = only_where_nothing_is_read(result.counts)) return nowhere;
      return "not_sampled:" + printable(tables.names[flop.missing_group]);
    case FlopStatus::kGroupUnavailable:
      return "unavailable:" + printable(tables.names[flop.missing_group]);
    case FlopStatus::kTensorNotSampled:
      if (const char* nowhere = only_where_nothing_is_read(result.counts)) return nowhere;
      return "tensor_not_sampled";
    case FlopStatus::kTensorNotCovered:
      return "tensor_not_covered";
    case FlopStatus::kUndefined:
      return "definition_lost";
  }
  return {};
}

std::string reason_words(const std::string& reason) {
  static const std::map<std::string, const char*> kWords = {
      {kNeverMeasured, "kernels that wait for others are never measured"},
      {kGraphOnly,
       "the kernels ran only in CUDA graphs, which are in no window; a few eager steps before the "
       "capture measure them"},
      {kGreenContext,
       "the kernels ran only on green contexts, which have a part of the GPU, and counters are not "
       "read there; a few launches outside of them, while the program warms up, measure them"},
      {"no_counters", "no counters of their device were read"},
      {"device_unknown", "their device is not known"},
      {"tensor_not_sampled", "their tensor work was not sampled"},
      {"tensor_not_covered", "no metric counts their tensor instructions"},
      {"definition_lost", "their definitions are in a lost part of the trace"},
  };
  const auto found = kWords.find(reason);
  if (found != kWords.end()) return found->second;
  if (const std::string group = "not_sampled:"; reason.starts_with(group))
    return "their kernels have no sample of the counters '" + reason.substr(group.size()) + "'";
  if (const std::string group = "unavailable:"; reason.starts_with(group))
    return "the program's CUPTI cannot read the counters '" + reason.substr(group.size()) + "'";
  return reason;
}

namespace {

// Measured, extrapolated and unmeasured launches of each device, from the rows.
std::vector<LedgerLine> lines_of_rows(const TraceTables& tables, const Totals& totals,
                                      const WorkTable& work, ReasonCounts& unmeasured,
                                      LedgerReport& ledger) {
  std::vector<LedgerLine> lines(tables.devices.size());
  DeviceSamples::Reader samples(tables.samples_by_device);
  totals.device_rows.for_each([&](uint32_t signature, const DeviceRow& row) {
    const Device& device = tables.devices[row.device];
    const SignatureFlop& flop = work.result(signature, device.chip).flop;
    LedgerLine add;
    add.launches = row.launches;
    if (flop.status == FlopStatus::kMeasured) {
      const Measured measured = measured_on(tables, row, samples.groups(signature, row.device));
      add.measured = measured.launches;
      add.extrapolated = row.launches - add.measured;
      add_saturating(ledger.measured_in_graphs, measured.in_graphs);
      add_saturating(
          ledger.extrapolated_in_graphs,
          std::min(row.graph - std::min(row.graph, measured.in_graphs), add.extrapolated));
      if (counted_by_graphs(tables, signature, device.chip))
        add_saturating(ledger.counted_by_graphs, row.launches);
    } else {
      add.unmeasured = row.launches;
      add_saturating(unmeasured[reason_of(tables, work, signature, device.chip)], row.launches);
    }
    lines[row.device].add(add);
  });
  return lines;
}

// Launches of one device that its trace's ledger counts and no row holds.
struct MissingLaunches {
  uint64_t unreadable = 0;   // recorded, in a part of the trace that cannot be read
  uint64_t not_written = 0;  // made, but not yet recorded when the trace broke off; while the
                             // program runs they are on their way, and none is lost
};

// Rows whose device is lost are some of them, whichever device they were on.
std::vector<MissingLaunches> missing_launches(const TraceTables& tables,
                                              const std::vector<LedgerLine>& rows) {
  std::vector<uint64_t> homeless(tables.traces.size(), 0);
  for (uint32_t d = 0; d < tables.devices.size(); ++d) {
    const Device& device = tables.devices[d];
    if (device.id == 0 && rows[d].launches > device.ledger_recorded)
      homeless[device.trace] = rows[d].launches - device.ledger_recorded;
  }
  std::vector<MissingLaunches> missing(tables.devices.size());
  for (uint32_t d = 0; d < tables.devices.size(); ++d) {
    const Device& device = tables.devices[d];
    const uint64_t recorded = device.ledger_recorded;
    uint64_t made = recorded;
    const TraceState& trace = tables.traces[device.trace];
    if (!trace.complete() && !trace.goes_on && device.ledger_launches > device.ledger_dropped)
      made = std::max(made, device.ledger_launches - device.ledger_dropped);
    const uint64_t not_there = made > rows[d].launches ? made - rows[d].launches : 0;
    const uint64_t found = std::min(not_there, homeless[device.trace]);
    homeless[device.trace] -= found;
    missing[d].not_written = std::min(not_there - found, made - recorded);
    missing[d].unreadable = not_there - found - missing[d].not_written;
  }
  return missing;
}

// Joules from the recorder's first reading to its last one. Less of the recording than kWhole is a
// lower bound; a counter that moved seldom was read in the middle of a movement twice.
void add_energy(const TraceState& trace, DeviceReport& report) {
  constexpr double kWhole = 0.99;
  constexpr uint64_t kMany = 100;
  report.energy_j = Figure::unknown("the recorder read no energy");
  if (trace.skipped_steps.any()) {
    report.energy_j = Figure::unknown("energy is of the whole recording, skipped steps and all");
    return;
  }
  for (const auto& device : trace.energy.device()) {
    if (device.device() != report.facts.id()) continue;
    if (!device.unavailable().empty()) {
      report.energy_j = Figure::unknown(device.unavailable());
    } else if (device.updates() == 0 || device.end_ns() <= device.begin_ns()) {
      report.energy_j = Figure::unknown("too short for the energy counter");
    } else {
      report.energy_ns = device.end_ns() - device.begin_ns();
      const auto wall = trace.recorded_ns();
      const bool whole =
          wall && static_cast<double>(report.energy_ns) >= kWhole * static_cast<double>(*wall);
      report.energy_j = Figure(
          static_cast<double>(device.millijoules()) / 1e3,
          mark_if(!whole, Mark::kAtLeast) | mark_if(device.updates() < kMany, Mark::kEstimate));
    }
  }
}

}  // namespace

void build_ledger(const ReportSources& from, const WorkTable& work, Report& report) {
  const TraceTables& tables = from.tables;
  ReasonCounts unmeasured, dropped, duplicates, unseen;
  std::vector<LedgerLine> lines =
      lines_of_rows(tables, from.totals, work, unmeasured, report.ledger);
  const std::vector<MissingLaunches> missing = missing_launches(tables, lines);
  LedgerReport& ledger = report.ledger;
  report.devices.reserve(tables.traces.size());
  for (uint32_t d = 0; d < tables.devices.size(); ++d) {
    const Device& device = tables.devices[d];
    LedgerLine& line = lines[d];
    check_against_trace(tables, device, line.launches, missing[d].unreadable, report);
    add_saturating(line.dropped, missing[d].unreadable);
    add_saturating(line.dropped, missing[d].not_written);
    add_saturating(line.dropped, device.ledger_dropped);
    add_saturating(line.launches, line.dropped);
    add_saturating(dropped["lost_in_trace"], missing[d].unreadable);
    add_saturating(dropped["not_written"], missing[d].not_written);
    if (line.launches == 0 && device.id == 0) continue;
    report.devices.push_back({device.trace, device.facts, line, {}, 0});
    report.devices.back().facts.set_id(device.id);
    add_energy(tables.traces[device.trace], report.devices.back());
    ledger.total.add(line);
  }
  for (const auto& trace : tables.traces) {
    for (const auto& r : trace.ledger.dropped()) add_saturating(dropped[r.reason()], r.count());
    for (const auto& r : trace.ledger.unseen()) add_saturating(unseen[r.reason()], r.count());
    for (const auto& r : trace.ledger.duplicate()) {
      add_saturating(duplicates[r.reason()], r.count());
      add_saturating(ledger.duplicates_removed, r.count());
    }
  }
  append(ledger.unmeasured, unmeasured);
  append(ledger.dropped, dropped);
  append(ledger.duplicates, duplicates);
  append(ledger.unseen, unseen);
}

}  // namespace flopinj::reduce
