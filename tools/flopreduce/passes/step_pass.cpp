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
  totals.device_rows.for_each([&](uint32_t signature, const DeviceRow& row) {
    const uint32_t chip = tables.devices[row.device].chip;
    value(signature, chip, work.result(signature, chip), roofs);
  });
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

StepPass::StepPass(const TraceTables& tables, bool single_steps, LogRoom* room)
    : tables_(tables),
      room_(room),
      read_{std::vector<std::map<uint32_t, StepWork>>(tables.traces.size()),
            std::vector<StepKernels>(tables.traces.size()),
            std::vector<std::map<uint32_t, StepGpuTime>>(single_steps ? tables.traces.size() : 0)} {
}

StepPass::~StepPass() {
  if (room_ == nullptr) return;
  room_->give(log_.bytes);
  for (const Log& log : logs_) room_->give(log.bytes);
}

void StepPass::use(const StepLaunches& each, const ModelWork& model) {
  each_ = &each;
  model_ = &model;
}

size_t StepPass::KindHash::operator()(const Kind& kind) const {
  uint64_t hash = kind.size();
  for (const InRow& in : kind)
    for (const uint64_t value : {uint64_t{in.row}, in.launches, in.untimed})
      hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
  return hash ^ (hash >> 29);
}

void StepPass::end_single_steps() {
  if (single_) read_.times[trace_] = single_->take_times();
  single_.reset();
}

StepPass::ForModel StepPass::for_model(const RowPlace& place, const StepLaunch& one) const {
  ForModel model;
  const auto part = model_->at(place.path, place.rule, place.signature);
  if (!part) return model;
  const auto least_fs = static_cast<double>(one.least_fs);
  model.fs = static_cast<u128>(part->of(least_fs) + 0.5);
  const auto most_fs = part->most_of(least_fs);
  model.open = !most_fs.has_value();
  model.most_fs = static_cast<u128>(most_fs.value_or(0) + 0.5);
  if (part->complete && one.flop_known && model.fs > one.least_fs)
    model.saved_fs = model.fs - one.least_fs;
  return model;
}

void StepPass::take_room(size_t bytes) {
  if (given_up_) return;
  if (room_ == nullptr || room_->take(bytes)) {
    log_.bytes += bytes;
    return;
  }
  given_up_ = true;
  room_->give(std::exchange(log_, {}).bytes);
  for (const Log& log : std::exchange(logs_, {})) room_->give(log.bytes);
  kind_of_.clear();
}

// The launches in kind_.
void StepPass::add_step(uint32_t number, uint64_t timed_ns) {
  if (given_up_) return;
  const auto [known, fresh] = kind_of_.try_emplace(kind_, static_cast<uint32_t>(log_.kinds.size()));
  log_.steps.push_back({number, known->second, timed_ns});
  if (fresh) log_.kinds.push_back(kind_);
  take_room(sizeof(Step) + (fresh ? 2 * kind_.size() * sizeof(InRow) : 0));
}

void StepPass::add_counted() {
  if (touched_.empty()) return;
  kind_.clear();
  for (const uint32_t row : touched_) {
    kind_.push_back({row, counted_[row].launches, counted_[row].untimed});
    counted_[row] = {};
  }
  touched_.clear();
  add_step(step_, std::exchange(timed_ns_, 0));
}

// Rows have other numbers in the next one.
void StepPass::end_log(const RowTable& rows) {
  kind_of_.clear();
  if (log_.steps.empty()) return;
  log_.trace = rows.trace();
  for (uint32_t row = 0; row < rows.size(); ++row) {
    const RowTable::Info& info = rows.info(row);
    log_.rows.push_back({info.signature, info.device, info.path, info.rule});
  }
  take_room(log_.rows.size() * sizeof(RowPlace));
  if (given_up_) return;
  Log log = std::exchange(log_, {});
  if (each_ != nullptr)
    value(log);
  else
    logs_.push_back(std::move(log));
}

void StepPass::value(const Log& log) {
  std::vector<std::optional<ForModel>> models(log.rows.size());
  std::vector<StepWork> kinds;
  for (const Kind& kind : log.kinds) {
    StepWork& work = kinds.emplace_back();
    for (const InRow& in : kind) {
      const RowPlace& place = log.rows[in.row];
      const StepLaunch& one = each_->of(place.signature, place.device);
      std::optional<ForModel>& model = models[in.row];
      if (!model) model = in.row == RowTable::kDiscard ? ForModel{} : for_model(place, one);
      work.add_launches(in.launches, one);
      if (in.untimed > 0) work.add_untimed(in.untimed, one);
      add_saturating(work.model_fs, model->fs * in.launches);
      add_saturating(work.model_most_fs, model->most_fs * in.launches);
      if (model->open) add_saturating(work.model_open, in.launches);
      add_saturating(work.saved_fs, model->saved_fs * in.launches);
    }
  }
  for (const Step& step : log.steps) {
    StepWork& work = read_.work[log.trace][step.number];
    work.add(kinds[step.kind]);
    add_saturating(work.gpu_ns, u128{step.timed_ns});
  }
}

void StepPass::end(const RowTable& rows) {
  add_counted();
  counted_.clear();
  end_log(rows);
}

void StepPass::launches(const RowTable& rows, const LaunchPiece& piece) {
  constexpr size_t kLong = 1U << 20;
  const StepTable& steps = tables_.traces[rows.trace()].steps;
  if (rows.trace() != trace_ && !read_.times.empty()) {
    end_single_steps();
    single_.emplace(steps, SIZE_MAX);
  }
  trace_ = rows.trace();
  // Steps that did not end are not counted.
  if (piece.step == 0 || !steps.steps().contains(piece.step)) return;
  if (step_ != piece.step) {
    add_counted();
    if (each_ != nullptr && log_.bytes > kLong) end_log(rows);
  }
  step_ = piece.step;
  if (counted_.size() < rows.size()) counted_.resize(rows.size());
  for (size_t i = 0; i < piece.size; ++i) {
    Counted& of = counted_[piece.row[i]];
    if (of.launches++ == 0) touched_.push_back(piece.row[i]);
    if (piece.duration_ns[i] != LaunchPiece::kNoTime && !piece.windowed)
      add_saturating(timed_ns_, piece.duration_ns[i]);
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
  const uint64_t timed = tally.windowed ? 0 : std::min(tally.timed, tally.launches);
  kind_.assign(1, {row, tally.launches, tally.launches - timed});
  add_step(0, timed > 0 ? tally.gpu_time_ns : 0);
}

void StepPass::add(StepPass& o) {
  given_up_ = given_up_ || o.given_up_;
  for (Log& log : o.logs_) logs_.push_back(std::move(log));
  o.logs_.clear();
  for (size_t trace = 0; trace < read_.work.size(); ++trace) {
    for (const auto& [number, work] : o.read_.work[trace]) read_.work[trace][number].add(work);
    read_.kernels[trace].add(o.read_.kernels[trace]);
  }
}

StepsRead StepPass::take() {
  end_single_steps();
  for (const Log& log : logs_) value(log);
  return std::move(read_);
}

}  // namespace flopinj::reduce
