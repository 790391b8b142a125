#include "report/roofs.h"

#include <algorithm>

namespace flopinj::reduce {
namespace {

// docs/metrics.md, "Bytes, time, cycles". A chip has one pair or the other.
constexpr std::string_view kByteMetrics[] = {"dram__bytes_read.sum", "dram__bytes_write.sum",
                                             "dram__bytes_op_read.sum", "dram__bytes_op_write.sum"};

bool same_peaks(const DevicePeaksReport& a, const DevicePeaksReport& b) {
  const auto same = [](const PeakUsed& x, const PeakUsed& y) {
    return x.precision == y.precision && x.peak.per_second == y.peak.per_second;
  };
  return a.error == b.error &&
         std::equal(a.peaks.begin(), a.peaks.end(), b.peaks.begin(), b.peaks.end(), same) &&
         std::equal(a.integer_peaks.begin(), a.integer_peaks.end(), b.integer_peaks.begin(),
                    b.integer_peaks.end(), same) &&
         a.memory.has_value() == b.memory.has_value() &&
         (!a.memory || a.memory->per_second == b.memory->per_second);
}

DeviceFacts facts_of(const TraceTables& tables, const Device& device) {
  const auto& facts = device.facts;
  return {facts.name(), facts.chip(), facts.multiprocessors(), facts.clock_khz(),
          tables.traces[device.trace].header.simulated()};
}

// `used`: what ran.
double fastest_of(const std::array<double, kPrecisionNames.size()>& dense,
                  const std::vector<PeakUsed>& used) {
  double fastest = 0;
  for (size_t i = 0; i < kPrecisionNames.size(); ++i)
    if (std::ranges::find(kIntegerFormats, kPrecisionNames[i]) == kIntegerFormats.end())
      fastest = std::max(fastest, dense[i]);
  for (const PeakUsed& one : used) fastest = std::max(fastest, one.per_second);
  return fastest;
}

}  // namespace

Roofs::Roofs(const TraceTables& tables, const Totals& totals, const Formulas& formulas,
             std::vector<PeakOverride> overrides)
    : tables_(tables), formulas_(formulas), chips_(tables.chips.size()) {
  std::vector<uint64_t> launches(tables.devices.size());
  totals.device_rows.for_each(
      [&](uint32_t, const DeviceRow& row) { add_saturating(launches[row.device], row.launches); });
  std::vector<DeviceFacts> facts;
  for (const Device& device : tables.devices) facts.push_back(facts_of(tables, device));
  note_whole_names(overrides, facts);
  for (const auto& option : overrides)
    if (std::none_of(facts.begin(), facts.end(), [&](const auto& f) { return applies(option, f); }))
      unused_.push_back(option.device);
  for (size_t i = 0; i < tables.devices.size(); ++i)
    if (launches[i] > 0) add_device(tables.devices[i], facts[i], launches[i], overrides);
  for (Chip& chip : chips_) chip.flop_per_ns.resize(formulas.precisions().size());
  for (const auto& device : devices_) {
    Chip& chip = chips_[device.chip];
    for (const auto& used : device.peaks) {
      const auto& names = formulas.precisions();
      const auto at = std::find(names.begin(), names.end(), used.precision) - names.begin();
      chip.flop_per_ns[static_cast<size_t>(at)] = used.per_second * 1e-9;
    }
    for (const auto& used : device.integer_peaks) {
      const auto at = std::find(kIntegerFormats.begin(), kIntegerFormats.end(), used.precision) -
                      kIntegerFormats.begin();
      chip.op_per_ns[static_cast<size_t>(at)] = used.per_second * 1e-9;
    }
    if (device.memory) chip.bytes_per_ns = device.memory->per_second * 1e-9;
  }
  for (const auto name : kByteMetrics)
    if (const auto found = tables.names.find(name)) byte_metrics_.push_back(*found);
}

void Roofs::add_device(const Device& device, const DeviceFacts& facts, uint64_t launches,
                       const std::vector<PeakOverride>& overrides) {
  const PeakLookup found = find_peaks(facts, overrides);
  DevicePeaksReport report;
  report.chip = device.chip;
  report.name = facts.name.empty() ? kNoDeviceName : facts.name;
  report.launches = launches;
  report.error = found.error;
  if (found.error.empty()) {
    if (const Gpu* gpu = found.peaks.gpu()) {
      report.row = gpu->name;
      report.clock_mhz = gpu->clock_mhz;
      report.tensor_clock_mhz = gpu->tensor_clock_mhz;
    }
    for (const auto& precision : formulas_.precisions())
      if (auto peak = found.peaks.of(precision))
        report.peaks.push_back(
            {precision, *peak, in_convention(peak->per_second, formulas_.fma())});
    for (const auto format : kIntegerFormats)  // a multiply-add is always two operations
      if (auto peak = found.peaks.of(format))
        report.integer_peaks.push_back({std::string(format), *peak, peak->per_second});
    if (const auto peak = found.peaks.of("tensor_bf16"))
      report.bf16 = in_convention(peak->per_second, formulas_.fma());
    for (size_t i = 0; i < kPrecisionNames.size(); ++i)
      if (const auto peak = found.peaks.of(kPrecisionNames[i]))
        report.dense[i] = in_convention(peak->per_second, formulas_.fma());
    if (found.peaks.gpu() != nullptr) report.fastest = fastest_of(report.dense, report.peaks);
    report.memory = found.peaks.memory();
    report.notes = found.peaks.notes();
  }
  for (auto& known : devices_) {
    if (known.chip != report.chip) continue;
    if (same_peaks(known, report)) {
      add_saturating(known.launches, launches);
      return;
    }
    // Rows are joined by chip, so products with one chip cannot be kept apart.
    known.error = "devices of chip " + facts.chip +
                  " with different peaks are in these traces: reduce each kind apart, or give one "
                  "--peak for all";
    known.peaks.clear();
    known.integer_peaks.clear();
    known.memory.reset();
    known.fastest.reset();
    known.dense = {};
    add_saturating(known.launches, launches);
    return;
  }
  devices_.push_back(std::move(report));
}

Roof Roofs::of(const Row& row, const Flop& flop, uint64_t launches) {
  Roof roof;
  Chip& chip = chips_[row.chip];
  const auto add = [&](u128 work, double per_ns, std::string_view name, double& ns,
                       uint64_t& without) {
    if (work == 0) return;
    if (per_ns > 0) {
      ns += static_cast<double>(work) / per_ns;
    } else {
      without = launches;
      chip.no_peak_of.emplace(name);
    }
  };
  for (size_t i = 0; i < chip.flop_per_ns.size(); ++i)
    add(flop.by_precision[i], chip.flop_per_ns[i], formulas_.precisions()[i], roof.compute_ns,
        roof.no_peak);
  for (size_t i = 0; i < kIntegerFormats.size(); ++i)
    add(flop.integer[i], chip.op_per_ns[i], kIntegerFormats[i], roof.integer_ns,
        roof.no_integer_peak);
  const SampleSet* samples = tables_.samples_by_chip.find(row.signature, row.chip);
  bool any_bytes = false;
  for (const uint32_t name : byte_metrics_) {
    const MetricStat* stat = samples != nullptr ? samples->find_metric(name) : nullptr;
    if (stat == nullptr || stat->n == 0) continue;
    any_bytes = true;
    bool overflow = false;
    add_saturating(roof.dram_bytes, mul_div_round(stat->sum, launches, stat->n, overflow));
  }
  if (!any_bytes)
    roof.no_bytes = launches;
  else if (chip.bytes_per_ns > 0)
    roof.memory_ns = static_cast<double>(roof.dram_bytes) / chip.bytes_per_ns;
  else
    roof.no_bandwidth = launches;
  roof.ns = std::max(roof.compute_ns + roof.integer_ns, roof.memory_ns);
  return roof;
}

std::vector<DevicePeaksReport> Roofs::devices() const {
  std::vector<DevicePeaksReport> devices = devices_;
  for (auto& device : devices)
    if (device.error.empty())
      device.no_peak_of.assign(chips_[device.chip].no_peak_of.begin(),
                               chips_[device.chip].no_peak_of.end());
  return devices;
}

}  // namespace flopinj::reduce
