#include "report/ledger.h"

#include <algorithm>
#include <map>

#include "support/text.h"

namespace flopinj::reduce {
namespace {

using ReasonCounts = std::map<std::string, uint64_t>;

// Launches whose counters were read on this very device: every required group has that many
// samples.
uint64_t measured_on(const Model& model, const DeviceRow& row) {
  const auto& required = model.required[model.devices[row.device].chip];
  const SampleSet* samples = model.samples_by_device.find(row.signature, row.device);
  if (samples == nullptr || required.empty()) return 0;
  uint64_t least = row.launches;
  for (const uint32_t group : required) least = std::min(least, samples->group_samples(group));
  return least;
}

std::string device_label(const Model& model, const Device& device) {
  const auto& trace = model.traces[device.trace];
  return "process " + (trace.has_header ? std::to_string(trace.header.pid()) : "?") + " device " +
         (device.id == 0 ? "?" : std::to_string(device.id - 1));
}

void check_against_trace(const Model& model, const Device& device, uint64_t rows,
                         LedgerReport& ledger) {
  const auto& trace = model.traces[device.trace];
  const std::string label = device_label(model, device);
  u128 accounted = device.ledger_recorded;
  add_saturating(accounted, device.ledger_dropped);
  if (accounted != device.ledger_launches)
    ledger.disagreements.push_back(label + ": the trace's ledger has " +
                                   to_grouped(device.ledger_launches) + " launches made, but " +
                                   to_grouped(accounted) + " recorded or dropped");
  if (rows < device.ledger_recorded)
    ledger.disagreements.push_back(label + ": the trace recorded " +
                                   to_grouped(device.ledger_recorded) + " launches, but only " +
                                   to_grouped(rows) + " are readable");
  // Before the end of a trace the ledger may be older than the last rows.
  if (trace.has_end && rows > device.ledger_recorded)
    ledger.disagreements.push_back(label + ": the trace holds " + to_grouped(rows) +
                                   " launches, but its ledger has " +
                                   to_grouped(device.ledger_recorded) + " recorded");
}

void append(std::vector<Reason>& to, const ReasonCounts& from) {
  for (const auto& [reason, launches] : from)
    if (launches > 0) to.push_back({reason, launches});
  std::stable_sort(to.begin(), to.end(),
                   [](const auto& a, const auto& b) { return a.launches > b.launches; });
}

}  // namespace

std::string reason_of(const SignatureFlop& flop, const Model& model) {
  switch (flop.status) {
    case FlopStatus::kMeasured:
      return {};
    case FlopStatus::kNoCounters:
      return "no_counters";
    case FlopStatus::kGroupNotSampled:
      return "not_sampled:" + printable(model.names[flop.missing_group]);
    case FlopStatus::kTensorNotSampled:
      return "tensor_not_sampled";
    case FlopStatus::kTensorNotCovered:
      return "tensor_not_covered";
    case FlopStatus::kUndefined:
      return "definition_lost";
  }
  return {};
}

void build_ledger(const Model& model, const Totals& totals, const WorkTable& work, Report& report) {
  std::vector<LedgerLine> lines(model.devices.size());
  ReasonCounts unmeasured;
  ReasonCounts dropped;
  ReasonCounts duplicates;
  for (const auto& row : totals.device_rows) {
    LedgerLine& line = lines[row.device];
    const SignatureFlop& flop = work.result(row.signature, model.devices[row.device].chip).flop;
    LedgerLine add;
    add.launches = row.launches;
    if (flop.status == FlopStatus::kMeasured) {
      add.measured = measured_on(model, row);
      add.extrapolated = row.launches - add.measured;
    } else {
      add.unmeasured = row.launches;
      add_saturating(unmeasured[reason_of(flop, model)], row.launches);
    }
    line.add(add);
  }
  LedgerReport& ledger = report.ledger;
  for (uint32_t d = 0; d < model.devices.size(); ++d) {
    const Device& device = model.devices[d];
    LedgerLine& line = lines[d];
    const uint64_t rows = line.launches;
    if (model.traces[device.trace].has_ledger) check_against_trace(model, device, rows, ledger);
    const uint64_t lost = device.ledger_recorded > rows ? device.ledger_recorded - rows : 0;
    add_saturating(line.dropped, lost);
    add_saturating(line.dropped, device.ledger_dropped);
    add_saturating(line.launches, line.dropped);
    add_saturating(dropped["lost_in_trace"], lost);
    if (line.launches == 0 && device.id == 0) continue;
    report.devices.push_back({device.trace, device.facts, line});
    report.devices.back().facts.set_id(device.id);
    ledger.total.add(line);
  }
  for (const auto& trace : model.traces) {
    for (const auto& r : trace.ledger.dropped()) add_saturating(dropped[r.reason()], r.count());
    for (const auto& r : trace.ledger.duplicate()) {
      add_saturating(duplicates[r.reason()], r.count());
      add_saturating(ledger.duplicates_removed, r.count());
    }
  }
  append(ledger.unmeasured, unmeasured);
  append(ledger.dropped, dropped);
  append(ledger.duplicates, duplicates);
}

}  // namespace flopinj::reduce
