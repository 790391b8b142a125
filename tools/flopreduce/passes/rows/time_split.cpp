#include "passes/rows/time_split.h"

#include <call_times.h>

#include <algorithm>

namespace flopinj::reduce {
namespace {

// Of `whole` that is spread over `length`: what lies in [from, to). Parts add up to the whole.
u128 part_of(uint64_t whole, uint64_t from, uint64_t to, uint64_t length) {
  if (whole == 0 || (from == 0 && to == length)) return whole;
  uint64_t small = 0;
  if (!__builtin_mul_overflow(whole, to, &small)) return small / length - whole * from / length;
  return u128{whole} * to / length - u128{whole} * from / length;
}

u128 less(u128 a, u128 b) { return a > b ? a - b : 0; }

uint32_t step_place(uint32_t step, uint32_t every) {
  return step == 0 ? 0 : 1 + (step - 1) / every;
}

}  // namespace

const TimeSplit::Rest& TimeSplit::rest_of(KernelClass of) {
  using enum LostLine;
  static constexpr Rest kRests[] = {
      {kMatrixMemory, kMatrixBlocks, kMatrixBelowRoof, true},
      {kInteger, kInteger, kInteger, false},
      {kUncounted, kUncounted, kUncounted, false},
      {kOtherMemory, kOtherBelowRoof, kOtherBelowRoof, true},
      {kCommunication, kCommunication, kCommunication, false},
      {kProfiler, kProfiler, kProfiler, false},
  };
  return kRests[static_cast<size_t>(of)];
}

void TimeSplit::add(LostTime& place, LostLine line, u128 fs) {
  if (before_) return;
  add_saturating(place[line], fs);
  add_saturating((*in_step_)[line], fs);
}

void TimeSplit::add_work(LostTime& place, const LaunchWorth& worth, u128 work, u128 padding) {
  if (work == 0) return;
  padding = std::min(padding, work);
  add(place, worth.work_line, work - padding);
  if (padding > 0) add(place, LostLine::kPadding, padding);
}

// Of a stretch of `fs` of a class: what its work leaves. `memory` and `blocks` beyond the work.
void TimeSplit::lose(KernelClass of, u128 fs, u128 work, u128 memory, u128 blocks, size_t kernels) {
  if (before_) return;
  if (work > fs) {
    add_saturating(excess_fs_[static_cast<size_t>(of)], work - fs);
    return;
  }
  const Rest& rest = rest_of(of);
  u128 left = fs - work;
  memory = rest.roofs ? std::min(memory, left) : 0;
  left -= memory;
  blocks = rest.roofs ? std::min(blocks, left) : 0;
  left -= blocks;
  const std::array<std::pair<LostLine, u128>, 3> lines{
      {{rest.memory, memory}, {rest.blocks, blocks}, {rest.below, left}}};
  for (const auto& [line, amount] : lines) {
    if (amount == 0) continue;
    u128 given = 0;
    size_t number = 0;
    for (const Running& running : running_) {
      if (running.of() != of) continue;
      if (kernels == 1) {  // most of the time
        add(*running.launch.place, line, amount);
        break;
      }
      const u128 up_to = amount * ++number / kernels;
      add(*running.launch.place, line, up_to - given);
      given = up_to;
    }
  }
}

// One kernel that ran alone for all of its time, as most do: the same as stretch(), and quicker.
// False, and nothing is done, where it is not so simple.
bool TimeSplit::alone(const Launch& launch) {
  const LaunchWorth& worth = *launch.worth;
  const uint64_t fs = launch.length_ns * kFsInNs;
  if (launch.slowed || launch.length_ns >= UINT64_MAX / kFsInNs || worth.work_fs > fs) return false;
  add_work(*launch.place, worth, worth.work_fs, worth.padding_fs);
  const Rest& rest = rest_of(worth.of);
  uint64_t left = fs - worth.work_fs;
  if (rest.roofs) {
    const uint64_t memory = std::min(worth.memory_fs - worth.work_fs, left);
    left -= memory;
    const uint64_t blocks = std::min(worth.blocks_fs - worth.memory_fs, left);
    left -= blocks;
    if (memory > 0) add(*launch.place, rest.memory, memory);
    if (blocks > 0) add(*launch.place, rest.blocks, blocks);
  }
  if (left > 0) add(*launch.place, rest.below, left);
  now_ += launch.length_ns;
  return true;
}

// All that run go on until `to`.
void TimeSplit::stretch(uint64_t to) {
  KernelClass of = KernelClass::kSlowed;
  bool communication = false;
  for (const Running& running : running_) {
    of = std::min(of, running.of());
    communication = communication || running.of() == KernelClass::kCommunication;
  }
  const u128 fs = u128{to - now_} * kFsInNs;
  if (communication && of != KernelClass::kCommunication && !before_)
    add_saturating(hidden_fs_, fs);
  u128 work = 0, memory = 0, blocks = 0;
  size_t kernels = 0;
  for (const Running& running : running_) {
    const Launch& launch = running.launch;
    if (running.of() == of) ++kernels;
    if (launch.slowed) continue;
    const LaunchWorth& worth = *launch.worth;
    const auto part = [&](uint64_t whole) {
      return part_of(whole, now_ - launch.begin_ns, to - launch.begin_ns, launch.length_ns);
    };
    const u128 its_work = part(worth.work_fs);
    add_work(*launch.place, worth, its_work, part(worth.padding_fs));
    work += its_work;
    if (running.of() != of) continue;
    const u128 its_memory = std::max(its_work, part(worth.memory_fs));
    memory += its_memory - its_work;
    blocks += less(part(worth.blocks_fs), its_memory);
  }
  lose(of, fs, work, memory, blocks, kernels);
  now_ = to;
}

void TimeSplit::run_until(uint64_t ns) {
  if (running_.size() == 1) {
    const auto& [launch, end_ns] = running_.front();
    if (now_ == launch.begin_ns && end_ns <= ns && alone(launch)) {
      last_step_ = launch.step;
      last_windowed_ = launch.windowed;
      running_.clear();
      return;
    }
  }
  while (!running_.empty() && now_ < ns) {
    uint64_t to = ns;
    for (const Running& running : running_) to = std::min(to, running.end_ns);
    stretch(to);
    std::erase_if(running_, [&](const Running& running) {
      if (running.end_ns > now_) return false;
      last_step_ = running.launch.step;
      last_windowed_ = running.launch.windowed;
      return true;
    });
  }
}

// By its cause where that is proven: the next kernel was called for after the last one's end, or
// before it, whatever the error of clocks and the rounding of times. A launch that is measured is
// called for when the profiler lets it.
LostLine TimeSplit::line_of_gap(uint64_t ns, const Launch& next) const {
  if (next.called_before != 0 && !last_windowed_ && !next.windowed) {
    const uint64_t most = next.called_before * kCallUnitNs - 1;
    if (ns >= most + clock_error_ns_) return LostLine::kIdleHostLate;
    if (most + 1 - kCallUnitNs > ns + clock_error_ns_) return LostLine::kIdleQueued;
  }
  return last_step_ != next.step ? LostLine::kIdleBetweenSteps
         : ns >= kLongGapNs      ? LostLine::kIdleLongGaps
                                 : LostLine::kIdleShortGaps;
}

void TimeSplit::add_host_time(uint64_t to, const Pause& pause) {
  const uint64_t from = std::max(now_, pause.begin_ns), until = std::min(to, pause.end_ns);
  if (from < until) add_saturating(host_ns_[pause.path], until - from);
}

// No kernel runs from now on until the next one begins. It belongs to that one's place.
void TimeSplit::gap(uint64_t to, const Launch& next) {
  const uint64_t ns = to - now_;
  const LostLine line = line_of_gap(ns, next);
  if (line == LostLine::kIdleHostLate && next.pause != 0 && !before_)
    add_host_time(to, pauses_[next.pause - 1]);
  const u128 fs = u128{ns} * kFsInNs;
  add(*next.place, line, fs);
  if (is_beside(line) && (last_windowed_ || next.windowed) && !before_)
    for (LostTime* time : {next.place, in_step_})
      add_saturating(time->beside_fs[place_beside(line)], fs);
}

void TimeSplit::enter_step(uint32_t step) {
  step_ = step;
  in_step_ = &steps_[step_place(step, every_)];
  if (steps_.size() <= kMostSteps + 1) return;
  std::map<uint32_t, LostTime> fewer;
  for (const auto& [number, time] : steps_) fewer[step_place(number, 2)].add(time);
  steps_ = std::move(fewer);
  every_ *= 2;
  in_step_ = &steps_[step_place(step, every_)];
}

// From now on time counts: also that of kernels which began before.
void TimeSplit::begin() {
  run_until(from_ns_);
  before_ = false;
  any_ = !running_.empty();
  begin_ns_ = now_;
}

void TimeSplit::launch(const Launch& launch) {
  if (before_ && launch.begin_ns >= from_ns_) begin();
  if (launch.begin_ns >= to_ns_) return;
  if (!any_) {
    any_ = true;
    begin_ns_ = now_ = launch.begin_ns;
    last_step_ = launch.step;
  }
  run_until(launch.begin_ns);
  if (launch.begin_ns > now_) {
    gap(launch.begin_ns, launch);
    now_ = launch.begin_ns;
  }
  if (launch.step > step_) enter_step(launch.step);
  if (launch.length_ns > 0) {
    running_.push_back({launch, launch.begin_ns + launch.length_ns});
    return;
  }
  if (!launch.slowed) {
    add_work(*launch.place, *launch.worth, launch.worth->work_fs, launch.worth->padding_fs);
    lose(launch.worth->of, 0, launch.worth->work_fs, 0, 0, 0);
  }
}

void TimeSplit::unplaced(const LaunchWorth& worth, LostTime& place, uint64_t count, uint64_t ns) {
  if (count == 0) return;
  const u128 fs = u128{ns} * kFsInNs;
  const u128 work = u128{worth.work_fs} * count;
  add_work(place, worth, work, u128{worth.padding_fs} * count);
  std::vector<Running> alone{{{0, ns, &worth, &place}, ns}};
  alone.swap(running_);
  lose(worth.of, fs, work, u128{worth.memory_fs - worth.work_fs} * count,
       u128{worth.blocks_fs - worth.memory_fs} * count, 1);
  alone.swap(running_);
  add_saturating(unplaced_fs_, fs);
}

void TimeSplit::slowed_unplaced(LostTime& place, uint64_t ns) {
  add(place, LostLine::kProfiler, u128{ns} * kFsInNs);
  add_saturating(unplaced_fs_, u128{ns} * kFsInNs);
}

void TimeSplit::finish() {
  if (before_) begin();
  run_until(to_ns_);
}

std::vector<TimeSplit::Step> TimeSplit::steps() const {
  std::vector<Step> steps;
  for (const auto& [place, time] : steps_)
    steps.push_back({place == 0 ? 0 : (place - 1) * every_ + 1, place == 0 ? 0 : every_, time});
  return steps;
}

}  // namespace flopinj::reduce
