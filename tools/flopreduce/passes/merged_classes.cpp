#include "passes/merged_classes.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace flopinj::reduce {
namespace {

// All that a class shares with the exact signatures beside it.
auto kernel_of(const Signature& s) {
  return std::tie(s.name, s.grid, s.block, s.cluster, s.dynamic_shared_bytes, s.code_hash,
                  s.registers_per_thread, s.static_shared_bytes, s.only_in_trace);
}

// Are there samples of every group that all kernels need?
bool has_counts(const TraceTables& tables, uint32_t signature, uint32_t chip) {
  const SampleSet* samples = tables.samples_by_chip.find(signature, chip);
  const RequiredGroups& required = tables.required[chip];
  return samples != nullptr && !required.always.empty() &&
         std::ranges::all_of(required.always, [&](uint32_t group) {
           return samples->group_samples(group) > 0 || required.bounded(group, samples);
         });
}

// Do samples say which of the other groups the kernel needs?
bool is_screened(const TraceTables& tables, uint32_t signature, uint32_t chip) {
  const SampleSet* samples = tables.samples_by_chip.find(signature, chip);
  const auto& conditional = tables.required[chip].conditional;
  return samples != nullptr &&
         std::none_of(conditional.begin(), conditional.end(), [&](const auto& group) {
           return need_of(group, *samples) == Need::kUnknown;
         });
}

}  // namespace

MergedClasses::MergedClasses(const TraceTables& tables) : tables_(tables) {
  const auto less = [&](uint32_t a, uint32_t b) {
    return kernel_of(tables.signatures[a]) < kernel_of(tables.signatures[b]);
  };
  std::map<uint32_t, uint32_t, decltype(less)> classes(less);
  for (uint32_t i = 1; i < tables.signatures.size(); ++i)
    if (tables.signatures[i].parameter_class == ParameterClass::kMerged) classes.emplace(i, i);
  if (classes.empty()) return;
  for (uint32_t i = 0; i < tables.signatures.size(); ++i) {
    const auto found = tables.signatures[i].parameter_class == ParameterClass::kExact
                           ? classes.find(i)
                           : classes.end();
    class_of_.push_back(found != classes.end() ? found->second : i);
  }
}

uint32_t MergedClasses::home(uint32_t signature, uint32_t chip) const {
  const uint32_t merged = class_of_.empty() ? signature : class_of_[signature];
  const bool folds =
      merged != signature && has_counts(tables_, merged, chip) &&
      (!has_counts(tables_, signature, chip) ||
       (!is_screened(tables_, signature, chip) && is_screened(tables_, merged, chip)));
  return folds ? merged : signature;
}

void fold_into_merged_classes(const TraceTables& tables, Totals& totals) {
  const MergedClasses classes(tables);
  if (!classes.any()) return;
  for (Row& row : totals.rows) row.signature = classes.home(row.signature, row.chip);
  const auto home = [&](uint32_t signature, uint32_t device) {
    return classes.home(signature, tables.devices[device].chip);
  };
  const auto sum = [](auto& row, const auto& next) { row.add(next); };
  DeviceRows device_rows;
  totals.device_rows.for_each([&](uint32_t signature, const DeviceRow& row) {
    device_rows.add(home(signature, row.device), row);
  });
  device_rows.put_in_order(sum);
  totals.device_rows = std::move(device_rows);
  TimedRows timed_rows;
  totals.timed_rows.for_each([&](const TimedPlace& place, const TimedRow& row) {
    timed_rows.add({home(place.signature, row.device), place.path, place.rule}, row);
  });
  timed_rows.put_in_order(sum);
  totals.timed_rows = std::move(timed_rows);
  for (auto& [trace, rows] : totals.facts) {
    PackedRows<FactRow> at_home;
    for (FactRow row : rows) {
      row.signature = home(row.signature, row.device);
      at_home.push_back(row);
    }
    rows = std::move(at_home);
  }
  const auto place = [](const Row& r) { return std::tie(r.signature, r.chip, r.path, r.rule); };
  std::ranges::sort(totals.rows, {}, place);
  std::vector<Row> merged;
  for (const Row& row : totals.rows)
    if (!merged.empty() && place(merged.back()) == place(row))
      merged.back().counts.add(row.counts);
    else
      merged.push_back(row);
  totals.rows = std::move(merged);
}

}  // namespace flopinj::reduce
