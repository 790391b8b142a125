#include "passes/rows/single_steps.h"

#include <algorithm>

#include "passes/rows/busy_interval.h"
#include "support/wide.h"

namespace flopinj::reduce {
namespace {

template <typename Interval>
uint64_t union_of(std::vector<Interval>& times) {
  std::sort(times.begin(), times.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  uint64_t busy_ns = 0, until_ns = 0;
  for (const Interval& time : times) {
    const uint64_t begin = std::max(time.begin, until_ns);
    if (time.end <= begin) continue;
    busy_ns += time.end - begin;
    until_ns = time.end;
  }
  return busy_ns;
}

}  // namespace

SingleSteps::SingleSteps(const StepTable& table, size_t most) : table_(table) {
  for (size_t left = table.steps().size(); left > most; left = (left + 1) / 2) every_ *= 2;
}

void SingleSteps::launch(uint32_t device, const LaunchRow& launch) {
  if (!is_kept(launch.step) || !table_.steps().contains(launch.step)) return;
  Step& step = steps_[launch.step];
  add_saturating(step.launches, 1);
  const bool timed = launch.timed && !launch.windowed;
  if (timed)
    add_saturating(step.times.gpu_ns, launch.duration_ns);
  else
    add_saturating(step.times.untimed, 1);
  if (step.closed) {  // too late
    step.times.busy_ns.reset();
    step.kind = 0;
    return;
  }
  Open& open = open_[launch.step];
  const size_t before = open.room;
  if (launch.timed && BusyInterval::has_place(launch.start_ns, launch.duration_ns)) {
    open.times[device].push_back({launch.start_ns, launch.start_ns + launch.duration_ns});
    ++open.room;
  }
  if (++open.launches[uint64_t{device} << 32 | launch.signature] == 1) ++open.room;
  room_taken_ += open.room - before;
  if (room_taken_ > kMostOpen) close_first();
}

void SingleSteps::close_first() {
  const auto first = open_.begin();
  close(first->first, first->second);
  open_.erase(first);
}

void SingleSteps::close(uint32_t number, Open& open) {
  Step& step = steps_[number];
  step.closed = true;
  uint64_t busy_ns = 0;
  for (auto& [device, times] : open.times) add_saturating(busy_ns, union_of(times));
  if (!open.times.empty()) step.times.busy_ns = busy_ns;
  step.kind = kind_of(open);
  room_taken_ -= open.room;
}

uint32_t SingleSteps::kind_of(const Open& open) {
  Kind kind(open.launches.begin(), open.launches.end());
  std::sort(kind.begin(), kind.end());
  const auto found = kinds_.find(kind);
  if (found != kinds_.end()) return found->second;
  if (kinds_.size() >= kMostKinds || kind_rows_ + kind.size() > kMostKindRows) return 0;
  kind_rows_ += kind.size();
  const auto number = static_cast<uint32_t>(kinds_.size() + 1);
  kinds_.emplace(std::move(kind), number);
  return number;
}

std::map<uint32_t, StepGpuTime> SingleSteps::take_times() {
  while (!open_.empty()) close_first();
  std::map<uint32_t, StepGpuTime> times;
  for (const auto& [number, step] : steps_) times.emplace(number, step.times);
  return times;
}

std::optional<trace::SingleSteps> SingleSteps::take_message() {
  if (table_.steps().empty()) return std::nullopt;
  while (!open_.empty()) close_first();
  trace::SingleSteps message;
  message.set_every(every_);
  trace::Steps& times = *message.mutable_times();
  uint32_t number_before = 0;
  uint64_t end_before = 0;
  for (const auto& [number, step] : table_.steps()) {
    if (!is_kept(number)) continue;
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
  }
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
