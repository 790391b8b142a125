#include "passes/rows/time_split.h"

#include <algorithm>
#include <utility>

namespace flopinj::reduce {
namespace {

// What a launch is worth, and a stretch, where sums of 64 bits are enough.
constexpr uint64_t kSmallFs = uint64_t{1} << 58;
constexpr size_t kFewKernels = 16;

// Of a row, here and in the device: about so much.
constexpr size_t kRowBytes = 640;

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

uint32_t TimeSplit::add_row(const LaunchGuess& guess) {
  const auto row = static_cast<uint32_t>(worths_.size());
  worths_.push_back({guess, {}, nullptr, {}});
  if (rows().size() <= row) rows().resize(row + size_t{1});
  rows()[row].beside = guess.communicates;
  if (room_ != nullptr) log_takes(log_bytes_ + kRowBytes);
  return row;
}

// Lines of launches that are not faster than their roof allows are so much each, and so much of
// their time.
void TimeSplit::set_worth(uint32_t row, const LaunchWorth& worth, LostTime& place) {
  const uint64_t least_fs = rest_of(worth.of).roofs ? worth.blocks_fs : worth.work_fs;
  rows()[row].least_ns = std::max<uint64_t>(1, (least_fs + kFsInNs - 1) / kFsInNs);
  worths_[row].each = worth;
  worths_[row].place = &place;
  small_ = small_ && worth.work_fs < kSmallFs && worth.blocks_fs < kSmallFs;
}

// What rows came to goes to the log of the step at hand.
void TimeSplit::log_rows() {
  RowLog& log = in_step_->log;
  const size_t before = log.bytes();
  for (const uint32_t row : touched_rows()) {
    Row& of = rows()[row];
    for (uint32_t kind = 0; !given_up_ && kind < RowTimes::kKinds; ++kind)
      if (const uint64_t amount = of.times.of_kind(kind); amount > 0)
        log.sums.push_back({row, kind, amount});
    of.times = {};
    of.touched = false;
  }
  touched_rows().clear();
  log.add_up();
  log_takes(log_bytes_ - before + log.bytes());
}

// So many bytes all logs take now.
void TimeSplit::log_takes(size_t bytes) {
  constexpr size_t kLong = 1U << 18;
  if (room_ == nullptr) {
    log_bytes_ = bytes;
    if (bytes <= kLong) return;
    log_bytes_ = 0;
    log_rows();
    value_steps();
  } else if (given_up_) {
    return;
  } else if (bytes <= log_bytes_ || room_->take(bytes - log_bytes_)) {
    if (bytes < log_bytes_) room_->give(log_bytes_ - bytes);
    log_bytes_ = bytes;
  } else {
    give_up();
  }
}

size_t TimeSplit::bytes_of_logs() const {
  size_t bytes = room_ != nullptr ? worths_.size() * kRowBytes : 0;
  for (const auto& [place, step] : steps_) bytes += step.log.bytes();
  return bytes;
}

void TimeSplit::give_room() {
  if (room_ != nullptr) room_->give(log_bytes_);
  log_bytes_ = 0;
}

void TimeSplit::give_up() {
  given_up_ = true;
  give_room();
  for (auto& [place, step] : steps_) step.log = {};
}

bool TimeSplit::value() {
  log_rows();
  if (room_ != nullptr) {
    if (given_up_) return false;
    for (size_t row = 0; row < worths_.size(); ++row) {
      const auto& [guess, each, place, sums] = worths_[row];
      const bool communicates = each.of == KernelClass::kCommunication;
      if (rows()[row].shortest_ns < rows()[row].least_ns || guess.communicates != communicates ||
          (guess.no_work && each.work_fs > 0))
        return false;
    }
  }
  value_steps();
  return true;
}

void TimeSplit::value_steps() {
  for (auto& [place, step] : steps_) value(step);
  give_room();
}

void TimeSplit::value(InStep& step) {
  const RowLog log = std::exchange(step.log, {});
  std::span parts(log.parts);
  for (const RowLog::Stretch& stretch : log.stretches) {
    value(stretch, parts.first(stretch.parts));
    parts = parts.subspan(stretch.parts);
  }
  for (const RowLog::Unplaced& launches : log.unplaced) value(launches);
  for (const RowLog::Sum& sum : log.sums) touch(sum.row).times.of_kind(sum.kind) += sum.amount;
  value_rows(step.time);
}

// What rows came to goes to their places, and to the step.
void TimeSplit::value_rows(LostTime& step) {
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
      add_saturating(step[line], fs);
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
      for (LostTime* time : {its.place, &step})
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

// Kernels that were slowed by measuring take what they would have taken, and the profiler the rest.
uint64_t TimeSplit::kernel_ns(const RowLog::Part& part, const LaunchWorth& worth) {
  return part.windowed && worth.mean_ns ? std::min(part.length_ns, *worth.mean_ns) : part.length_ns;
}

void TimeSplit::stretch(uint64_t to) {
  if (before_ || given_up_) return;
  const uint64_t ns = to - now();
  if (running().size() == 1 && is_idle_beside(running().front().launch)) {
    touch(running().front().launch.row).times.ns += ns;
    return;
  }
  RowLog& log = in_step_->log;
  log.stretches.push_back({ns, running().size()});
  for (const Running& one : running())
    log.parts.push_back({now() - one.launch.begin_ns, one.launch.length_ns, one.launch.row,
                         one.launch.windowed != 0});
  log_takes(log_bytes_ + sizeof(RowLog::Stretch) + running().size() * sizeof(RowLog::Part));
}

// In pieces, where a kernel ends that was slowed.
void TimeSplit::value(const RowLog::Stretch& stretch, std::span<const RowLog::Part> parts) {
  for (const RowLog::Part& part : parts)
    if (part.ran_ns == 0 && kernel_ns(part, worths_[part.row].each) == 0) alone(part.row, 1, 0);
  for (uint64_t from = 0, to = 0; from < stretch.ns; from = to) {
    to = stretch.ns;
    for (const RowLog::Part& part : parts)
      if (const uint64_t ends = kernel_ns(part, worths_[part.row].each); ends > part.ran_ns + from)
        to = std::min(to, ends - part.ran_ns);
    if (small_ && parts.size() <= kFewKernels && to - from < kSmallFs / kFsInNs)
      value(from, to, parts, doing_);
    else
      value(from, to, parts, much_doing_);
  }
}

template <typename Fs>
void TimeSplit::value(uint64_t from, uint64_t to, std::span<const RowLog::Part> parts,
                      AllDoing<Fs>& doing) {
  doing.clear();
  for (const RowLog::Part& part : parts) {
    touch(part.row);
    Worth& row = worths_[part.row];
    const uint64_t kernel = kernel_ns(part, row.each), ran = part.ran_ns + from;
    if (ran >= kernel)
      doing.push_back({&row, KernelClass::kSlowed, {}});
    else
      doing.push_back(
          {&row, row.each.of,
           done_of<Fs>(row.each, part.ran_ns + to, kernel) - done_of<Fs>(row.each, ran, kernel)});
  }
  split(static_cast<Fs>(to - from) * kFsInNs, doing);
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
  value_rows(in_step_->time);
}

template <typename Fs>
void TimeSplit::split(Fs fs, const AllDoing<Fs>& doing) {
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
  touch(launch.row).times.ns += alone_ns;
  add_saturating(hidden_fs_, u128{ns} * kFsInNs);
}

// It belongs to the place of the kernel after it.
void TimeSplit::summed_gap(uint32_t row, LostLine line, uint64_t ns, uint64_t beside_ns) {
  RowTimes& times = touch(row).times;
  add_saturating(times.gap_ns[RowTimes::place_of_gap(line)], ns);
  if (beside_ns > 0) add_saturating(times.beside_ns[place_beside(line)], beside_ns);
}

void TimeSplit::enter_step(uint32_t step) {
  log_rows();
  in_step_ = &steps_[step_place(step, every_)];
  if (steps_.size() <= kMostSteps + 1) return;
  pair_steps();
  in_step_ = &steps_[step_place(step, every_)];
  log_takes(bytes_of_logs());
}

void TimeSplit::pair_steps() {
  std::map<uint32_t, InStep> fewer;
  for (const auto& [place, step] : steps_) fewer[step_place(place, 2)].add(step);
  steps_ = std::move(fewer);
  every_ *= 2;
}

void TimeSplit::enter_at_least(uint32_t step) {
  log_rows();
  step_was(std::max(step, this->step()));
  std::map<uint32_t, InStep> steps;
  for (const auto& [place, of] : steps_) steps[std::max(place, step_place(step, every_))].add(of);
  steps_ = std::move(steps);
  in_step_ = &steps_[step_place(this->step(), every_)];
}

void TimeSplit::add(TimeSplit& other, std::span<const uint32_t> rows) {
  log_rows();
  other.log_rows();
  take_counted(other, rows);
  while (every_ < other.every_) pair_steps();
  while (other.every_ < every_) other.pair_steps();
  for (const auto& [place, from] : other.steps_) {
    InStep& to = steps_[place];
    to.time.add(from.time);
    to.log.add(from.log, rows);
    to.log.add_up();
  }
  while (steps_.size() > kMostSteps + 1) pair_steps();
  in_step_ = &steps_[step_place(step(), every_)];
  other.give_room();
  if (given_up_ || other.given_up_) give_up();
  log_takes(bytes_of_logs());
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
  if (launch.begin_ns >= to_ns_ || next(launch) || before_) return;
  unplaced({.launches = 1, .timed = 1, .row = launch.row});  // it takes no time at all
}

void TimeSplit::unplaced(RowLog::Unplaced launches) {
  launches.counts = !before_;
  if (given_up_) return;
  in_step_->log.unplaced.push_back(launches);
  log_takes(log_bytes_ + sizeof(launches));
}

void TimeSplit::value(const RowLog::Unplaced& of) {
  const LaunchWorth& each = worths_[of.row].each;
  const auto add = [&](uint64_t launches, uint64_t ns) {
    if (launches == 0) return;
    add_saturating(unplaced_fs_, u128{ns} * kFsInNs);
    if (of.counts) alone(of.row, launches, ns);
  };
  const auto of_mean = [](uint64_t mean_ns, uint64_t launches) {
    return static_cast<uint64_t>(std::min<u128>(u128{mean_ns} * launches, UINT64_MAX));
  };
  const uint64_t untimed = of.launches - of.timed;
  if (const auto mean_ns = each.mean_ns ? each.mean_ns : each.slowed_mean_ns)
    add(untimed, of_mean(*mean_ns, untimed));
  uint64_t ns = of.ns;
  if (of.windowed && each.mean_ns) ns = std::min(ns, of_mean(*each.mean_ns, of.timed));
  add(of.timed, ns);
  if (of.timed == 0 || ns == of.ns) return;
  const u128 slowed_fs = u128{of.ns - ns} * kFsInNs;
  add_saturating(unplaced_fs_, slowed_fs);
  if (of.counts) worths_[of.row].sums.slowed += slowed_fs;
}

// Launches that ran alone, and took so long together.
void TimeSplit::alone(uint32_t row, uint64_t launches, uint64_t ns) {
  touch(row);
  Worth& of = worths_[row];
  const LaunchWorth& each = of.each;
  const u128 work = u128{each.work_fs} * launches;
  of.sums.work += work;
  of.sums.padding += u128{std::min(each.padding_fs, each.work_fs)} * launches;
  much_doing_.assign(1, {&of, each.of, {}});
  lose(each.of, u128{ns} * kFsInNs, work, u128{each.memory_fs - each.work_fs} * launches,
       u128{each.blocks_fs - each.memory_fs} * launches, 1, much_doing_);
}

void TimeSplit::finish() {
  if (before_) begin();
  run_until(to_ns_);
  end_copies();
  if (room_ == nullptr) value();
}

std::vector<TimeSplit::Step> TimeSplit::steps() const {
  std::vector<Step> steps;
  for (const auto& [place, of] : steps_)
    steps.push_back({place == 0 ? 0 : (place - 1) * every_ + 1, place == 0 ? 0 : every_, of.time});
  return steps;
}

}  // namespace flopinj::reduce
