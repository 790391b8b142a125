#include "passes/rows/time_split.h"

#include <algorithm>

namespace flopinj::reduce {
namespace {

// What a launch is worth, and a stretch, where sums of 64 bits are enough.
constexpr uint64_t kSmallFs = uint64_t{1} << 58;
constexpr size_t kFewKernels = 16;

// Of `whole` that is spread over `length`, where `ran` of it has passed.
template <typename Fs>
Fs part_of(uint64_t whole, uint64_t ran, uint64_t length) {
  if (whole == 0 || ran == length) return whole;
  uint64_t small = 0;
  if (!__builtin_mul_overflow(whole, ran, &small)) return small / length;
  return static_cast<Fs>(u128{whole} * ran / length);
}

template <typename Fs>
Fs less(Fs a, Fs b) {
  return a > b ? a - b : 0;
}

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

uint32_t TimeSplit::add_row(const LaunchWorth& worth, LostTime& place) {
  const uint64_t least_fs = rest_of(worth.of).roofs ? worth.blocks_fs : worth.work_fs;
  const auto row = static_cast<uint32_t>(worths_.size());
  worths_.push_back({worth, &place, {}});
  // Lines of launches that are not faster than their roof allows are so much each, and so much of
  // their time.
  Row& of = rows().emplace_back();
  of.least_ns = std::max<uint64_t>(1, (least_fs + kFsInNs - 1) / kFsInNs);
  of.beside = worth.of == KernelClass::kCommunication;
  small_ = small_ && worth.work_fs < kSmallFs && worth.blocks_fs < kSmallFs;
  return row;
}

// What rows came to goes to their places, and to the step.
void TimeSplit::value_rows() {
  for (const uint32_t row : touched_rows()) {
    Row& of = rows()[row];
    Worth& its = worths_[row];
    const LaunchWorth& each = its.each;
    const Rest& rest = rest_of(each.of);
    const RowTimes& times = of.times;
    Sums& sums = its.sums;
    const auto add = [&](LostLine line, u128 fs) {
      if (fs == 0) return;
      add_saturating((*its.place)[line], fs);
      add_saturating((*in_step_)[line], fs);
    };
    const u128 launches = times.launches;
    const u128 work = sums.work + launches * each.work_fs;
    const u128 padding = sums.padding + launches * std::min(each.padding_fs, each.work_fs);
    add(each.work_line, work - padding);
    add(LostLine::kPadding, padding);
    u128 below = u128{times.ns} * kFsInNs - launches * each.work_fs;
    if (rest.roofs) {
      add(rest.memory, sums.rest[0] + launches * (each.memory_fs - each.work_fs));
      add(rest.blocks, sums.rest[1] + launches * (each.blocks_fs - each.memory_fs));
      below -= launches * (each.blocks_fs - each.work_fs);
    }
    add(rest.below, sums.rest[2] + below);
    add(LostLine::kProfiler, sums.slowed);
    for (size_t gap = 0; gap < times.gap_ns.size(); ++gap)
      add(RowTimes::line_of_gap(gap), u128{times.gap_ns[gap]} * kFsInNs);
    for (size_t i = 0; i < times.beside_ns.size(); ++i)
      for (LostTime* time : {its.place, in_step_})
        add_saturating(time->beside_fs[i], u128{times.beside_ns[i]} * kFsInNs);
    sums = {};
    of.times = {};
    of.touched = false;
  }
  touched_rows().clear();
}

// Of a stretch of `fs` of a class: what its work leaves. `memory` and `blocks` beyond the work.
template <typename Fs>
void TimeSplit::lose(KernelClass of, Fs fs, Fs work, Fs memory, Fs blocks, size_t kernels,
                     const AllDoing<Fs>& doing) {
  if (work > fs) {
    add_saturating(excess_fs_[static_cast<size_t>(of)], u128{work - fs});
    return;
  }
  const bool roofs = rest_of(of).roofs;
  Fs left = fs - work;
  memory = roofs ? std::min(memory, left) : 0;
  left -= memory;
  blocks = roofs ? std::min(blocks, left) : 0;
  left -= blocks;
  const std::array<Fs, 3> amounts{memory, blocks, left};
  size_t number = 0;
  for (const Doing<Fs>& one : doing) {
    if (one.of != of) continue;
    Sums& sums = one.row->sums;
    for (size_t i = 0; i < amounts.size(); ++i) {
      u128& to = of == KernelClass::kSlowed ? sums.slowed : sums.rest[i];
      if (kernels == 1)  // most of the time
        to += amounts[i];
      else
        to += u128{amounts[i]} * (number + 1) / kernels - u128{amounts[i]} * number / kernels;
    }
    ++number;
  }
}

template <typename Fs>
TimeSplit::Amounts<Fs> TimeSplit::done_of(const LaunchWorth& worth, uint64_t ran, uint64_t length) {
  Amounts<Fs> done;
  done.work = part_of<Fs>(worth.work_fs, ran, length);
  done.padding = part_of<Fs>(worth.padding_fs, ran, length);
  if (!rest_of(worth.of).roofs) return done;
  const auto beyond = [&](uint64_t more, uint64_t less, Fs of_less) {
    return more == less ? of_less : part_of<Fs>(more, ran, length);
  };
  done.memory = beyond(worth.memory_fs, worth.work_fs, done.work);
  done.blocks = beyond(worth.blocks_fs, worth.memory_fs, done.memory);
  return done;
}

TimeSplit::Done TimeSplit::done_at(const Launch& launch, uint64_t ns) const {
  if (launch.slowed != 0) return {};
  return done_of<uint64_t>(worths_[launch.row].each, ns - launch.begin_ns, launch.length_ns);
}

void TimeSplit::stretch(uint64_t to) {
  const uint64_t ns = to - now();
  if (small_ && running().size() <= kFewKernels && ns < kSmallFs / kFsInNs)
    stretch(ns * kFsInNs, to, doing_);
  else
    stretch(u128{ns} * kFsInNs, to, much_doing_);
}

template <typename Fs>
void TimeSplit::stretch(Fs fs, uint64_t to, AllDoing<Fs>& doing) {
  doing.clear();
  for (Running& one : running()) {
    const Launch& launch = one.launch;
    if (!before_) touch(launch.row);
    Worth& row = worths_[launch.row];
    if (launch.slowed != 0) {
      doing.push_back({&row, KernelClass::kSlowed, {}});
      continue;
    }
    const auto done = done_of<uint64_t>(row.each, to - launch.begin_ns, launch.length_ns);
    const Done now_done = done - one.done;
    one.done = done;
    doing.push_back(
        {&row, row.each.of, {now_done.work, now_done.padding, now_done.memory, now_done.blocks}});
  }
  split(fs, doing);
}

void TimeSplit::summed_stretch(u128 fs, std::span<const Part> parts) {
  much_doing_.clear();
  for (const Part& part : parts) {
    touch(part.row);
    Worth& row = worths_[part.row];
    if (part.slowed)
      much_doing_.push_back({&row, KernelClass::kSlowed, {}});
    else
      much_doing_.push_back({&row, row.each.of,
                             done_of<u128>(row.each, part.to, kLaunch) -
                                 done_of<u128>(row.each, part.from, kLaunch)});
  }
  split(fs, much_doing_);
}

template <typename Fs>
void TimeSplit::split(Fs fs, const AllDoing<Fs>& doing) {
  if (before_) return;
  KernelClass of = KernelClass::kSlowed;
  bool communication = false;
  for (const Doing<Fs>& one : doing) {
    of = std::min(of, one.of);
    communication = communication || one.of == KernelClass::kCommunication;
  }
  if (communication && of != KernelClass::kCommunication) add_saturating(hidden_fs_, u128{fs});
  Fs work = 0, memory = 0, blocks = 0;
  size_t kernels = 0;
  for (const Doing<Fs>& one : doing) {
    if (one.of == of) ++kernels;
    if (one.of == KernelClass::kSlowed) continue;
    const Amounts<Fs>& its = one.amount;
    one.row->sums.work += its.work;
    one.row->sums.padding += std::min(its.padding, its.work);
    work += its.work;
    if (one.of != of) continue;
    const Fs its_memory = std::max(its.work, its.memory);
    memory += its_memory - its.work;
    blocks += less(its.blocks, its_memory);
  }
  lose(of, fs, work, memory, blocks, kernels, doing);
}

void TimeSplit::ran_beside(const Launch& launch, uint64_t alone_ns, uint64_t ns) {
  touch(launch.row);
  worths_[launch.row].sums.rest[2] += u128{alone_ns} * kFsInNs;
  add_saturating(hidden_fs_, u128{ns} * kFsInNs);
}

// It belongs to the place of the kernel after it.
void TimeSplit::summed_gap(uint32_t row, LostLine line, uint64_t ns, uint64_t beside_ns) {
  if (before_) return;
  RowTimes& times = touch(row).times;
  add_saturating(times.gap_ns[RowTimes::place_of_gap(line)], ns);
  if (beside_ns > 0) add_saturating(times.beside_ns[place_beside(line)], beside_ns);
}

void TimeSplit::enter_step(uint32_t step) {
  value_rows();
  in_step_ = &steps_[step_place(step, every_)];
  if (steps_.size() <= kMostSteps + 1) return;
  pair_steps();
  in_step_ = &steps_[step_place(step, every_)];
}

void TimeSplit::pair_steps() {
  std::map<uint32_t, LostTime> fewer;
  for (const auto& [place, time] : steps_) fewer[step_place(place, 2)].add(time);
  steps_ = std::move(fewer);
  every_ *= 2;
}

void TimeSplit::enter_at_least(uint32_t step) {
  value_rows();
  step_was(std::max(step, this->step()));
  std::map<uint32_t, LostTime> steps;
  for (const auto& [place, time] : steps_)
    steps[std::max(place, step_place(step, every_))].add(time);
  steps_ = std::move(steps);
  in_step_ = &steps_[step_place(this->step(), every_)];
}

void TimeSplit::add(TimeSplit& other) {
  value_rows();
  other.value_rows();
  while (every_ < other.every_) pair_steps();
  while (other.every_ < every_) other.pair_steps();
  for (const auto& [place, time] : other.steps_) steps_[place].add(time);
  while (steps_.size() > kMostSteps + 1) pair_steps();
  in_step_ = &steps_[step_place(step(), every_)];
  add_saturating(unplaced_fs_, other.unplaced_fs_);
  add_saturating(hidden_fs_, other.hidden_fs_);
  for (size_t of = 0; of < excess_fs_.size(); ++of)
    add_saturating(excess_fs_[of], other.excess_fs_[of]);
  for (const auto& [path, ns] : other.host_ns()) add_host_ns(path, ns);
  if (other.lost_copies()) lose_copies();
}

// From now on time counts: also that of kernels which began before.
void TimeSplit::begin() {
  run_until(from_ns_);
  before_ = false;
  begin_here();
}

void TimeSplit::launch(const Launch& launch) {
  if (launch.row == Launch::kCopy)
    return add_copy(std::max(launch.begin_ns, from_ns_),
                    std::min(launch.begin_ns + launch.length_ns, to_ns_));
  if (before_ && launch.begin_ns >= from_ns_) begin();
  if (launch.begin_ns >= to_ns_ || next(launch) || launch.slowed != 0 || before_) return;
  // It takes no time at all.
  add_work(launch.row, 1);
  add_saturating(excess_fs_[static_cast<size_t>(worths_[launch.row].each.of)],
                 worths_[launch.row].each.work_fs);
}

void TimeSplit::unplaced(uint32_t row, uint64_t count, uint64_t ns) {
  if (count == 0) return;
  const u128 fs = u128{ns} * kFsInNs;
  add_saturating(unplaced_fs_, fs);
  if (before_) return;
  const LaunchWorth& each = worths_[row].each;
  much_doing_.assign(1, {&worths_[row], each.of, {}});
  lose(each.of, fs, add_work(row, count), u128{each.memory_fs - each.work_fs} * count,
       u128{each.blocks_fs - each.memory_fs} * count, 1, much_doing_);
}

u128 TimeSplit::add_work(uint32_t row, uint64_t launches) {
  touch(row);
  const LaunchWorth& each = worths_[row].each;
  const u128 work = u128{each.work_fs} * launches;
  worths_[row].sums.work += work;
  worths_[row].sums.padding += u128{std::min(each.padding_fs, each.work_fs)} * launches;
  return work;
}

void TimeSplit::slowed_unplaced(uint32_t row, uint64_t ns) {
  add_saturating(unplaced_fs_, u128{ns} * kFsInNs);
  if (before_) return;
  touch(row);
  worths_[row].sums.slowed += u128{ns} * kFsInNs;
}

void TimeSplit::finish() {
  if (before_) begin();
  run_until(to_ns_);
  end_copies();
  value_rows();
  rows().clear();
  worths_.clear();
}

std::vector<TimeSplit::Step> TimeSplit::steps() const {
  std::vector<Step> steps;
  for (const auto& [place, time] : steps_)
    steps.push_back({place == 0 ? 0 : (place - 1) * every_ + 1, place == 0 ? 0 : every_, time});
  return steps;
}

}  // namespace flopinj::reduce
