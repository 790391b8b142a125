#include "passes/rows/single_steps.h"

#include <algorithm>

#include "passes/rows/busy_interval.h"
#include "support/wide.h"

namespace flopinj::reduce {
namespace {

// Time in which any of a device's kernels ran, summed over devices. Launches are in order of these.
template <typename Launches>
uint64_t busy_time(const Launches& launches) {
  uint64_t busy_ns = 0, until_ns = 0;
  uint32_t device = 0;
  for (const auto& launch : launches) {
    if (launch.device != device) until_ns = 0;
    device = launch.device;
    const uint64_t begin = std::max(launch.begin, until_ns);
    if (launch.end <= begin) continue;
    add_saturating(busy_ns, launch.end - begin);
    until_ns = launch.end;
  }
  return busy_ns;
}

}  // namespace

SingleSteps::SingleSteps(const StepTable& table, size_t most) : table_(table) {
  for (size_t left = table.steps().size(); left > most; left = (left + 1) / 2) every_ *= 2;
}

void SingleSteps::launches(const TraceTables& tables, const RowTable& rows,
                           const LaunchPiece& piece) {
  if (!is_kept(piece.step)) return;
  for (size_t i = 0; i < piece.size; ++i) {
    const RowTable::Info& row = rows.info(piece.row[i]);
    const bool timed = piece.duration_ns[i] != LaunchPiece::kNoTime;
    launch(piece.step,
           {tables.devices[row.device].id, row.signature_id, timed ? piece.start_ns[i] : 0,
            timed ? piece.duration_ns[i] : 0, timed, piece.windowed});
  }
}

void SingleSteps::launch(uint32_t number, const Launch& launch) {
  if (!is_kept(number)) return;
  if (number != current_number_) {
    current_number_ = number;
    const bool ended = table_.steps().contains(number);
    current_ = ended ? &steps_[number] : nullptr;  // elements of a map stay where they are
    current_launches_ = ended && !current_->closed ? &open_[number] : nullptr;
    if (current_launches_ != nullptr && current_launches_->empty())
      current_launches_->reserve(launches_of_last_);
  }
  if (current_ == nullptr) return;
  Step& step = *current_;
  add_saturating(step.launches, 1);
  if (launch.timed && !launch.windowed)
    add_saturating(step.times.gpu_ns, launch.duration_ns);
  else
    add_saturating(step.times.untimed, 1);
  if (step.closed) {  // too late
    step.times.busy_ns.reset();
    step.kind = 0;
    return;
  }
  const bool placed = launch.timed && BusyInterval::has_place(launch.start_ns, launch.duration_ns);
  OneLaunch one{launch.device, launch.signature};
  if (placed) one.begin = launch.start_ns, one.end = launch.start_ns + launch.duration_ns;
  current_launches_->push_back(one);
  if (++launches_open_ > kMostOpen) close_first();
}

void SingleSteps::close_first() {
  const auto first = open_.begin();
  close(first->first, first->second);
  if (current_launches_ == &first->second) current_launches_ = nullptr;
  open_.erase(first);
}

void SingleSteps::close(uint32_t number, std::vector<OneLaunch>& launches) {
  Step& step = steps_[number];
  step.closed = true;
  launches_open_ -= launches.size();
  launches_of_last_ = launches.size();
  const auto before = [](const OneLaunch& a, const OneLaunch& b) {
    return a.device != b.device ? a.device < b.device : a.begin < b.begin;
  };
  if (!std::is_sorted(launches.begin(), launches.end(), before))
    std::sort(launches.begin(), launches.end(), before);
  const bool any_placed = std::any_of(launches.begin(), launches.end(),
                                      [](const OneLaunch& launch) { return launch.end != 0; });
  if (any_placed) step.times.busy_ns = busy_time(launches);
  step.kind = kind_of(launches);
}

uint32_t SingleSteps::kind_of(const std::vector<OneLaunch>& launches) {
  keys_.clear();
  for (const OneLaunch& launch : launches)
    keys_.push_back(uint64_t{launch.device} << 32 | launch.signature);
  std::sort(keys_.begin(), keys_.end());
  kind_.clear();
  for (const uint64_t key : keys_) {
    if (kind_.empty() || kind_.back().first != key) kind_.emplace_back(key, 0);
    ++kind_.back().second;
  }
  const auto found = kinds_.find(kind_);
  if (found != kinds_.end()) return found->second;
  if (kinds_.size() >= kMostKinds || kind_rows_ + kind_.size() > kMostKindRows) return 0;
  kind_rows_ += kind_.size();
  const auto number = static_cast<uint32_t>(kinds_.size() + 1);
  kinds_.emplace(kind_, number);
  return number;
}

std::map<uint32_t, StepGpuTime> SingleSteps::take_times() {
  while (!open_.empty()) close_first();
  std::map<uint32_t, StepGpuTime> times;
  for (const auto& [number, step] : steps_) times.emplace(number, step.times);
  return times;
}

std::optional<trace::SingleSteps> SingleSteps::take_message(const StepSpans& spans,
                                                            const EnergyReadings& energy) {
  if (spans.empty()) return std::nullopt;
  while (!open_.empty()) close_first();
  trace::SingleSteps message;
  message.set_every(every_);
  trace::Steps& times = *message.mutable_times();
  uint32_t number_before = 0;
  uint64_t end_before = 0;
  bool any_energy = false;
  for (const auto& [number, span] : spans) {
    if (!is_kept(number)) continue;
    const StepTimes& step = span.times;
    times.add_number_delta(static_cast<int32_t>(number - number_before));
    if (times.number_delta_size() == 1) times.set_first_start_ns(end_before = step.start_ns);
    times.add_gap_ns(static_cast<int64_t>(step.start_ns - end_before));
    times.add_duration_ns(step.duration_ns);
    const int runs = times.range_path_run_size();
    if (runs > 0 && times.range_path_run(runs - 2) == step.path) {
      times.set_range_path_run(runs - 1, times.range_path_run(runs - 1) + 1);
    } else {
      times.add_range_path_run(step.path);
      times.add_range_path_run(1);
    }
    number_before = number;
    end_before = step.start_ns + step.duration_ns;
    const Step of = steps_.contains(number) ? steps_[number] : Step{};
    message.add_launches(of.launches);
    message.add_untimed(of.times.untimed);
    message.add_gpu_time_ns(of.times.gpu_ns);
    message.add_busy_ns(of.times.busy_ns ? *of.times.busy_ns + 1 : 0);
    message.add_kind(of.kind);
    const auto millijoules = energy.between(step.start_ns, end_before);
    any_energy = any_energy || millijoules;
    message.add_energy(millijoules ? *millijoules + 1 : 0);
  }
  if (!any_energy) message.clear_energy();
  std::vector<const Kind*> by_number(kinds_.size());
  for (const auto& [kind, number] : kinds_) by_number[number - 1] = &kind;
  for (const Kind* kind : by_number) {
    message.add_kinds(kind->size());
    for (const auto& [key, launches] : *kind) {
      message.add_kinds(key >> 32);
      message.add_kinds(key & UINT32_MAX);
      message.add_kinds(launches);
    }
  }
  return message;
}

}  // namespace flopinj::reduce
