#include "passes/rows/time_split.h"

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
void TimeSplit::lose(KernelClass of, u128 fs, u128 work, u128 memory, u128 blocks,
                     std::span<const Part> parts, size_t kernels) {
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
    for (const Part& part : parts) {
      if (part.of() != of) continue;
      if (kernels == 1) {  // most of the time
        add(*part.place, line, amount);
        break;
      }
      const u128 up_to = amount * ++number / kernels;
      add(*part.place, line, up_to - given);
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
  return true;
}

void TimeSplit::stretch(uint64_t to) {
  parts_.clear();
  for (const Running& one : running()) {
    const Launch& launch = one.launch;
    parts_.push_back({launch.worth, launch.place, now() - launch.begin_ns, to - launch.begin_ns,
                      launch.length_ns, launch.slowed});
  }
  summed_stretch(u128{to - now()} * kFsInNs, parts_);
}

void TimeSplit::summed_stretch(u128 fs, std::span<const Part> parts) {
  KernelClass of = KernelClass::kSlowed;
  bool communication = false;
  for (const Part& part : parts) {
    of = std::min(of, part.of());
    communication = communication || part.of() == KernelClass::kCommunication;
  }
  if (communication && of != KernelClass::kCommunication && !before_)
    add_saturating(hidden_fs_, fs);
  u128 work = 0, memory = 0, blocks = 0;
  size_t kernels = 0;
  for (const Part& its : parts) {
    if (its.of() == of) ++kernels;
    if (its.slowed) continue;
    const LaunchWorth& worth = *its.worth;
    const auto part = [&](uint64_t all) { return part_of(all, its.from, its.to, its.whole); };
    const u128 its_work = part(worth.work_fs);
    add_work(*its.place, worth, its_work, part(worth.padding_fs));
    work += its_work;
    if (its.of() != of) continue;
    const u128 its_memory = std::max(its_work, part(worth.memory_fs));
    memory += its_memory - its_work;
    blocks += less(part(worth.blocks_fs), its_memory);
  }
  lose(of, fs, work, memory, blocks, parts, kernels);
}

// It belongs to the place of the kernel after it.
void TimeSplit::gap(uint64_t ns, LostLine line, const Launch& next, bool beside) {
  summed_gap(*next.place, line, ns, beside ? ns : 0);
}

void TimeSplit::summed_gap(LostTime& place, LostLine line, uint64_t ns, uint64_t beside_ns) {
  add(place, line, u128{ns} * kFsInNs);
  if (beside_ns == 0 || before_) return;
  for (LostTime* time : {&place, in_step_})
    add_saturating(time->beside_fs[place_beside(line)], u128{beside_ns} * kFsInNs);
}

void TimeSplit::enter_step(uint32_t step) {
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
  begin_here();
}

void TimeSplit::launch(const Launch& launch) {
  if (before_ && launch.begin_ns >= from_ns_) begin();
  if (launch.begin_ns >= to_ns_ || next(launch) || launch.slowed) return;
  add_work(*launch.place, *launch.worth, launch.worth->work_fs, launch.worth->padding_fs);
  lose(launch.worth->of, 0, launch.worth->work_fs, 0, 0, {}, 0);
}

void TimeSplit::unplaced(const LaunchWorth& worth, LostTime& place, uint64_t count, uint64_t ns) {
  if (count == 0) return;
  const u128 fs = u128{ns} * kFsInNs;
  const u128 work = u128{worth.work_fs} * count;
  add_work(place, worth, work, u128{worth.padding_fs} * count);
  const Part alone{&worth, &place};
  lose(worth.of, fs, work, u128{worth.memory_fs - worth.work_fs} * count,
       u128{worth.blocks_fs - worth.memory_fs} * count, {&alone, 1}, 1);
  add_saturating(unplaced_fs_, fs);
}

void TimeSplit::slowed_unplaced(LostTime& place, uint64_t ns) {
  add(place, LostLine::kProfiler, u128{ns} * kFsInNs);
  add_saturating(unplaced_fs_, u128{ns} * kFsInNs);
}

void TimeSplit::finish() {
  if (before_) begin();
  run_until(to_ns_);
  end_copies();
}

std::vector<TimeSplit::Step> TimeSplit::steps() const {
  std::vector<Step> steps;
  for (const auto& [place, time] : steps_)
    steps.push_back({place == 0 ? 0 : (place - 1) * every_ + 1, place == 0 ? 0 : every_, time});
  return steps;
}

}  // namespace flopinj::reduce
