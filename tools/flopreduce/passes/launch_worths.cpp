#include "passes/launch_worths.h"

#include <algorithm>
#include <tuple>

#include "analytic/operator_flop.h"

namespace flopinj::reduce {
namespace {

constexpr std::string_view kCommunicationPhase = "communication";

uint64_t whole(double fs) {
  constexpr double kMost = 1e19;
  return static_cast<uint64_t>(std::clamp(fs + 0.5, 0.0, kMost));
}

// Blocks go to multiprocessors one by one: the fullest has more than its share.
double fullest_share(const Signature& signature, uint32_t multiprocessors) {
  u128 blocks = 1;
  for (const uint32_t size : signature.grid) blocks *= size;
  if (blocks == 0 || multiprocessors == 0) return 1;
  const u128 each = (blocks + multiprocessors - 1) / multiprocessors;
  return quotient(each * multiprocessors, blocks);
}

}  // namespace

LaunchGuesses::LaunchGuesses(const TraceTables& tables, const PhaseRules& rules,
                             const PhaseMap& phases)
    : tables_(tables), rules_(rules), phases_(phases), classes_(tables) {}

// It communicates by its kernel, whatever the range: a range that says communication may hold local
// work, copies that put what is sent in order.
LaunchGuess LaunchGuesses::of(const RowPlace& place) const {
  LaunchGuess guess;
  const uint32_t rule = phases_.kernel_rule(place.signature);
  const bool never_measured =
      tables_.never_measured.contains(tables_.signatures[place.signature].name);
  guess.communicates =
      rules_.rules()[rule != kNoIndex ? rule : place.rule].phase == kCommunicationPhase &&
      (rule != kNoIndex || never_measured);
  const uint32_t chip = tables_.devices[place.device].chip;
  guess.no_work = !classes_.any() && tables_.samples_by_chip.find(place.signature, chip) == nullptr;
  return guess;
}

LaunchWorths::LaunchWorths(const ReportSources& from, const Report& report, bool of_time)
    : from_(from),
      work_(from.work),
      roofs_(from.tables, from.totals, from.formulas, from.utilization.peaks),
      guesses_(from.tables, from.rules, from.phases),
      classes_(from.tables),
      of_time_(of_time),
      model_(from, report) {}

const LaunchWorths::Each& LaunchWorths::each_of(uint32_t signature, uint32_t chip) {
  const auto [entry, fresh] = each_.try_emplace(uint64_t{signature} << 32 | chip);
  Each& each = entry->second;
  if (!fresh || of_time_) return each;
  const SignatureResult& result = work_.result(signature, chip);
  if (result.flop.status != FlopStatus::kMeasured) return each;
  each.counted = !result.flop.unscreened;
  const uint64_t all = std::max<uint64_t>(1, result.counts.launches);
  const Flop flop = result.flop.of(0, all, all);
  const Roof roof = roofs_.of(Row{signature, chip, 0, 0, {}}, flop, all);
  const auto one = [all](double ns) { return whole(ns * kFsInNs / static_cast<double>(all)); };
  each.work_fs = one(roof.compute_ns);
  each.bytes = roof.no_bytes == 0 && roof.no_bandwidth == 0;
  each.memory_fs = std::max(each.work_fs, one(roof.memory_ns));
  each.multiplies = flop.matrix > 0;
  const auto& precisions = from_.formulas.precisions();
  for (size_t i = 0; i < precisions.size(); ++i)
    each.tensor = each.tensor || (precisions[i].starts_with("tensor_") && flop.by_precision[i] > 0);
  for (const u128 operations : flop.integer) each.integer = each.integer || operations > 0;
  if (!each.tensor && each.multiplies) {
    Flop fp32;
    fp32.by_precision[kFp32] = flop.by_precision[kFp32];
    each.fp32_fs = one(roofs_.of(Row{signature, chip, 0, 0, {}}, fp32, all).compute_ns);
  }
  return each;
}

void LaunchWorths::set_work_lines(const RowPlace& place, LaunchWorth& worth) const {
  if (phase_of(place) == "recompute") {
    worth.work_line = LostLine::kRecompute;
    return;
  }
  const auto model = model_.at(place.path, place.rule, place.signature);
  if (!model || model->of_others) return;
  const double share = std::min(1.0, model->share);
  worth.work_line = LostLine::kModel;
  worth.padding_fs =
      worth.work_fs - std::min(worth.work_fs, whole(static_cast<double>(worth.work_fs) * share));
}

void LaunchWorths::set_means(const RowPlace& place, uint32_t signature, uint32_t chip,
                             LaunchWorth& worth) const {
  const auto key = [](const Row& r) { return std::tuple(r.signature, r.chip, r.path, r.rule); };
  const auto mean = [](uint64_t ns, uint64_t launches) {
    return launches > 0 ? std::optional(ns / launches + (ns % launches >= launches / 2 + 1))
                        : std::nullopt;
  };
  const auto& rows = from_.totals.rows;
  const std::tuple wanted(signature, chip, place.path, place.rule);
  const auto row = std::ranges::lower_bound(rows, wanted, {}, key);
  const Counts& all = work_.result(signature, chip).counts;
  if (row != rows.end() && key(*row) == wanted)
    worth.mean_ns = mean(row->counts.time_ns, row->counts.timed);
  if (!worth.mean_ns) worth.mean_ns = mean(all.time_ns, all.timed);
  worth.slowed_mean_ns = mean(all.windowed_time_ns, all.windowed_timed);
}

LaunchWorth LaunchWorths::of(const RowPlace& place) {
  const std::lock_guard lock(lock_);
  const Device& device = from_.tables.devices[place.device];
  const uint32_t signature =
      classes_.any() ? classes_.home(place.signature, device.chip) : place.signature;
  const Each& each = each_of(signature, device.chip);
  LaunchWorth worth;
  set_means(place, signature, device.chip, worth);
  worth.work_fs = each.work_fs;
  worth.memory_fs = worth.blocks_fs = each.memory_fs;
  set_work_lines(place, worth);
  const uint32_t path = from_.operators.operator_of(place.path);
  const bool product = path != kNoIndex && is_matrix_work(from_.operators.name_of(path)->name);
  if (guesses_.of(place).communicates) {
    worth.of = KernelClass::kCommunication;
    unknown_.uncounted_communication = unknown_.uncounted_communication || !each.counted;
  } else if (!each.counted) {
    worth.of = KernelClass::kUncounted;
  } else if (each.integer && !each.tensor) {
    worth.of = KernelClass::kInteger;
  } else if (each.tensor || (product && each.multiplies)) {
    worth.of = KernelClass::kMatrix;
    worth.fp32_fs = each.fp32_fs;
    const double fullest =
        fullest_share(from_.tables.signatures[signature], device.facts.multiprocessors());
    worth.blocks_fs =
        std::max(worth.memory_fs, whole(static_cast<double>(worth.work_fs) * fullest));
    unknown_.uneven_blocks = unknown_.uneven_blocks || worth.blocks_fs > worth.memory_fs;
    unknown_.matrix_bytes = unknown_.matrix_bytes || !each.bytes;
  } else {
    worth.of = KernelClass::kOther;
    unknown_.other_bytes = unknown_.other_bytes || !each.bytes;
  }
  return worth;
}

}  // namespace flopinj::reduce
