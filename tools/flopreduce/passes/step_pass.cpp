#include "passes/step_pass.h"

#include <algorithm>
#include <utility>

#include "passes/merged_classes.h"
#include "passes/rows/step_kernels.h"
#include "report/roofs.h"
#include "report/work_table.h"

namespace flopinj::reduce {

StepLaunches::StepLaunches(const TraceTables& tables, const Totals& totals, const WorkTable& work,
                           Formulas& formulas, const std::vector<PeakOverride>& peaks)
    : tables_(tables), each_(tables.chips.size()) {
  const MergedClasses classes(tables);
  Roofs roofs(tables, totals, formulas, peaks);
  for (const DeviceRow& row : totals.device_rows) {
    const uint32_t chip = tables.devices[row.device].chip;
    value(row.signature, chip, work.result(row.signature, chip), roofs);
  }
  // Those that count with a class have no row any more.
  for (uint32_t chip = 0; classes.any() && chip < each_.size(); ++chip)
    for (uint32_t s = 0; s < each_[chip].size(); ++s)
      each_[chip][s] = each_[chip][classes.home(s, chip)];
}

void StepLaunches::value(uint32_t signature, uint32_t chip, const SignatureResult& result,
                         Roofs& roofs) {
  each_[chip].resize(tables_.signatures.size());
  StepLaunch& each = each_[chip][signature];
  if (std::exchange(each.known, true)) return;
  bool overflow = false;
  if (result.counts.timed > 0) {
    each.time_known = true;
    each.mean_ns = mul_div_round(result.counts.time_ns, 1, result.counts.timed, overflow);
  }
  if (result.flop.status != FlopStatus::kMeasured) return;
  each.flop_known = true;
  each.unscreened = result.flop.unscreened;
  each.estimated = result.estimated();
  const uint64_t all = std::max<uint64_t>(1, result.counts.launches);
  // The mean, where launches differ.
  const Flop flop = each.estimated ? result.flop.of(0, all, all) : result.flop.of(0, 1, 1);
  const uint64_t of = each.estimated ? all : 1;
  each.flop = mul_div_round(flop.total, 1, of, overflow);
  const Roof roof = roofs.of(Row{signature, chip, 0, 0, {}}, flop, of);
  each.peak_known = roof.no_peak == 0;
  each.least_fs = static_cast<u128>(roof.compute_ns * 1e6 / static_cast<double>(of));
}

const StepLaunch& StepLaunches::of(size_t trace, uint32_t device, uint32_t signature) const {
  const TraceState& state = tables_.traces[trace];
  const uint32_t of_device = device == 0 ? kNoIndex : state.devices.get(device + 1);
  const uint32_t of_signature = state.signatures.get(signature);
  return of(of_signature != kNoIndex ? of_signature : SignatureTable::kUndefined,
            of_device != kNoIndex ? of_device : state.unknown_device());
}

StepPass::StepPass(const TraceTables& tables, const StepLaunches& each, const ModelWork& model,
                   bool single_steps)
    : tables_(tables),
      each_(each),
      model_(model),
      read_{std::vector<std::map<uint32_t, StepWork>>(tables.traces.size()),
            std::vector<StepKernels>(tables.traces.size()),
            std::vector<std::map<uint32_t, StepGpuTime>>(single_steps ? tables.traces.size() : 0)} {
}

void StepPass::end_single_steps() {
  if (single_) read_.times[trace_] = single_->take_times();
  single_.reset();
}

const StepPass::OfRow& StepPass::row_of(const RowTable& rows, uint32_t row, const StepLaunch& one) {
  if (rows_.size() < rows.size()) rows_.resize(rows.size());
  OfRow& of = rows_[row];
  if (std::exchange(of.known, true) || row == RowTable::kDiscard) return of;
  const RowTable::Info& info = rows.info(row);
  const auto part = model_.at(info.path, info.rule, info.signature);
  if (!part) return of;
  const auto least_fs = static_cast<double>(one.least_fs);
  of.model_fs = static_cast<u128>(part->of(least_fs) + 0.5);
  const auto most_fs = part->most_of(least_fs);
  of.open = !most_fs.has_value();
  of.model_most_fs = static_cast<u128>(most_fs.value_or(0) + 0.5);
  if (part->complete && one.flop_known && of.model_fs > one.least_fs)
    of.saved_fs = of.model_fs - one.least_fs;
  return of;
}

void StepPass::add(StepWork& to, const RowTable& rows, uint32_t row, uint64_t launches) {
  const StepLaunch& one = each_.of(rows.info(row).signature, rows.info(row).device);
  to.add_launches(launches, one);
  const OfRow& model = row_of(rows, row, one);
  add_saturating(to.model_fs, model.model_fs * launches);
  add_saturating(to.model_most_fs, model.model_most_fs * launches);
  if (model.open) add_saturating(to.model_open, launches);
  add_saturating(to.saved_fs, model.saved_fs * launches);
}

void StepPass::add_counted(const RowTable& rows) {
  if (touched_.empty()) return;
  StepWork& step = read_.work[rows.trace()][step_];
  for (const uint32_t row : touched_) {
    const Counted& of = counted_[row];
    add(step, rows, row, of.launches);
    step.gpu_ns += of.ns;
    if (of.untimed > 0)
      step.add_untimed(of.untimed, each_.of(rows.info(row).signature, rows.info(row).device));
    counted_[row] = {};
  }
  touched_.clear();
}

void StepPass::end(const RowTable& rows) {
  add_counted(rows);
  rows_.clear();
  counted_.clear();
}

void StepPass::launches(const RowTable& rows, const LaunchPiece& piece) {
  const StepTable& steps = tables_.traces[rows.trace()].steps;
  if (rows.trace() != trace_ && !read_.times.empty()) {
    end_single_steps();
    single_.emplace(steps, SIZE_MAX);
  }
  trace_ = rows.trace();
  // Steps that did not end are not counted.
  if (piece.step == 0 || !steps.steps().contains(piece.step)) return;
  if (step_ != piece.step) add_counted(rows);
  step_ = piece.step;
  if (counted_.size() < rows.size()) counted_.resize(rows.size());
  for (size_t i = 0; i < piece.size; ++i) {
    Counted& of = counted_[piece.row[i]];
    if (of.launches++ == 0) touched_.push_back(piece.row[i]);
    if (piece.duration_ns[i] != LaunchPiece::kNoTime && !piece.windowed)
      of.ns += piece.duration_ns[i];
    else
      ++of.untimed;
  }
  add_kernels(rows, piece, read_.kernels[trace_]);
  if (single_) single_->launches(tables_, rows, piece);
}

void StepPass::tally(const RowTable& rows, uint32_t row, const TallyRow& tally) {
  const StepTable& steps = tables_.traces[rows.trace()].steps;
  if (!steps.any() || !steps.steps().empty()) return;  // the latter: times that came late
  if (!tally.in_step || tally.launches == 0) return;
  const StepLaunch& one = each_.of(rows.info(row).signature, rows.info(row).device);
  StepWork& all = read_.work[rows.trace()][0];
  add(all, rows, row, tally.launches);
  const uint64_t timed = tally.windowed ? 0 : std::min(tally.timed, tally.launches);
  if (timed > 0) add_saturating(all.gpu_ns, tally.gpu_time_ns);
  all.add_untimed(tally.launches - timed, one);
}

void StepPass::add(const StepPass& o) {
  for (size_t trace = 0; trace < read_.work.size(); ++trace) {
    for (const auto& [number, work] : o.read_.work[trace]) read_.work[trace][number].add(work);
    read_.kernels[trace].add(o.read_.kernels[trace]);
  }
}

StepsRead StepPass::take() {
  end_single_steps();
  return std::move(read_);
}

}  // namespace flopinj::reduce
