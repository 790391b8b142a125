#include "report/work_table.h"

#include <algorithm>

#include "report/extrapolate.h"

namespace flopinj::reduce {

WorkTable::WorkTable(const TraceTables& tables, const Totals& totals, Formulas& formulas) {
  for (const auto& row : totals.rows) {
    auto [entry, fresh] = results_.try_emplace(key(row.signature, row.chip));
    if (fresh && row.signature != SignatureTable::kUndefined)
      entry->second.flop =
          formulas.evaluate(tables.samples_by_chip.find(row.signature, row.chip),
                            tables.required[row.chip], tables.names, tables.code_of(row.signature));
    entry->second.counts.add(row.counts);
  }
  std::unordered_map<uint64_t, std::vector<DeviceSamples>> sampled;
  for (const auto& row : totals.device_rows) {
    const auto found = results_.find(key(row.signature, tables.devices[row.device].chip));
    if (found == results_.end() || found->second.flop.status != FlopStatus::kMeasured) continue;
    SignatureFlop& flop = found->second.flop;
    const auto parameters = tables.signatures[row.signature].parameter_class;
    flop.varying = flop.varying || parameters == ParameterClass::kMerged;
    const SampleSet* samples = tables.samples_by_device.find(row.signature, row.device);
    const uint64_t in_graphs = std::min(row.graph, row.launches);
    if (samples != nullptr)
      sampled[found->first].push_back({samples, row.launches - in_graphs, in_graphs});
  }
  for (auto& [where, devices] : sampled)
    extrapolate(results_.at(where), devices,
                tables.signatures[static_cast<uint32_t>(where >> 32)].parameter_class ==
                    ParameterClass::kMerged);
  classify();
}

// The signatures that are most unsure get a class of their own.
void WorkTable::classify() {
  std::vector<std::pair<uint64_t, SignatureResult*>> unsure;
  for (auto& [where, result] : results_)
    if (result.error) unsure.emplace_back(where, &result);
  std::sort(unsure.begin(), unsure.end(), [](const auto& a, const auto& b) {
    const double da = a.second->error->deviation;
    const double db = b.second->error->deviation;
    return da != db ? da > db : a.first < b.first;
  });
  for (uint32_t i = 0; i < unsure.size(); ++i)
    unsure[i].second->error_class = i % Uncertainty::kClasses;
}

const SignatureResult& WorkTable::result(uint32_t signature, uint32_t chip) const {
  static const SignatureResult kNone;
  const auto found = results_.find(key(signature, chip));
  return found == results_.end() ? kNone : found->second;
}

WorkTable::RowWork WorkTable::next(const Row& row) {
  const SignatureResult& result = this->result(row.signature, row.chip);
  RowWork out;
  Work& work = out.work;
  work.launches = row.counts.launches;
  work.time = time_of(row.counts, result.counts, work.overflow);
  if (result.flop.status != FlopStatus::kMeasured) {
    work.unmeasured = row.counts.launches;
    return out;
  }
  if (result.flop.unscreened) work.unscreened = row.counts.launches;
  if (result.estimated()) {
    work.varying = row.counts.launches;
    if (!result.flop.varying) work.rounded = row.counts.launches;
  } else if (!result.sum_exact()) {
    work.agreeing = row.counts.launches;
    work.fewest_windows = std::max<uint64_t>(result.windows, 1);
  }
  uint64_t& from = handed_out_[key(row.signature, row.chip)];
  const uint64_t all = result.counts.launches;
  const uint64_t count =
      std::min(row.counts.launches, all - from);  // less only where sums are held
  out.flop = result.flop.of(from, count, all);
  from += count;
  work.flop = out.flop.total;
  if (result.error)
    work.uncertainty.add_share(*result.error, result.error_class, count, all,
                               static_cast<double>(work.flop));
  else if (result.elsewhere > 0)
    work.uncertainty.add_elsewhere(row.counts.launches);
  else if (result.estimated())
    work.uncertainty.add_unknown(row.counts.launches);
  work.matrix_flop = out.flop.matrix;
  work.doubtful = out.flop.all_doubtful();
  work.left_out = out.flop.left_out;
  work.overflow = work.overflow || out.flop.overflow;
  if (count == all) work = in_whole(row, work);
  return out;
}

Work WorkTable::in_whole(const Row& row, const Work& work) const {
  const SignatureResult& result = results_.at(key(row.signature, row.chip));
  if (!result.error || work.varying == 0) return work;
  Work whole = work;
  whole.uncertainty = {};
  if (result.sum_exact()) {
    whole.varying = 0;
    return whole;
  }
  EstimateError error = *result.error;
  error.launch_variance = 0;
  whole.uncertainty.add_share(error, result.error_class, work.launches, result.counts.launches,
                              static_cast<double>(work.flop));
  return whole;
}

GpuTime time_of(const Counts& counts, const Counts& signature, bool& overflow) {
  GpuTime time;
  if (signature.timed > 0) {
    time.ns = counts.time_ns;
    time.estimated = counts.launches > counts.timed ? counts.launches - counts.timed : 0;
    const u128 rest = mul_div_round(signature.time_ns, time.estimated, signature.timed, overflow);
    if (!add_saturating(time.ns, rest)) overflow = true;
  } else if (signature.windowed_timed > 0) {
    const uint64_t missing =
        counts.launches > counts.windowed_timed ? counts.launches - counts.windowed_timed : 0;
    time.ns = counts.windowed_time_ns;
    time.windowed = counts.launches;
    const u128 rest =
        mul_div_round(signature.windowed_time_ns, missing, signature.windowed_timed, overflow);
    if (!add_saturating(time.ns, rest)) overflow = true;
  } else {
    time.unknown = counts.launches;
  }
  return time;
}

}  // namespace flopinj::reduce
