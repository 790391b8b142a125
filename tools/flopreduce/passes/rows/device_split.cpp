#include "passes/rows/device_split.h"

#include <algorithm>

namespace flopinj::reduce {

uint32_t DeviceSplit::add_row(const Row& row) {
  const auto [known, fresh] = row_of_.try_emplace(row.place, static_cast<uint32_t>(rows_.size()));
  if (!fresh) return known->second;
  rows_.push_back(row);
  rows_.back().launches = 0;
  split.add_row(row.guess);
  if (row.known) set_worth(known->second, row.worth);
  return known->second;
}

uint32_t DeviceSplit::add_row(const RowPlace& place, const LaunchGuess& guess) {
  return add_row({place, guess, {}, false, 0});
}

uint32_t DeviceSplit::add_row(const RowPlace& place, const LaunchWorth& worth) {
  const LaunchGuess guess{worth.of == KernelClass::kCommunication, worth.work_fs == 0};
  return add_row({place, guess, worth, true, 0});
}

void DeviceSplit::set_worth(uint32_t row, const LaunchWorth& worth) {
  const RowPlace& place = rows_[row].place;
  rows_[row].worth = worth;
  split.set_worth(row, worth, places[key(place.path, place.rule)]);
}

// The numbers of another part's rows here.
std::vector<uint32_t> DeviceSplit::rows_of(const DeviceSplit& other) {
  std::vector<uint32_t> rows;
  for (const Row& row : other.rows_) rows.push_back(add_row(row));
  return rows;
}

void DeviceSplit::launches(std::span<const LaunchInTime> in_order) {
  if (begun_) return split.launches(in_order);
  // A kernel that takes time: all after its begin follows from it and from kernels that run then.
  size_t seam = kept_ - std::min(kept_, head_.size());
  const auto is_seam = [](const LaunchInTime& launch) {
    return launch.row != LaunchInTime::kCopy && launch.length_ns > 0;
  };
  while (seam < in_order.size() && !is_seam(in_order[seam])) ++seam;
  const auto head = in_order.first(std::min(seam, in_order.size()));
  head_.insert(head_.end(), head.begin(), head.end());
  if (seam >= in_order.size()) {
    constexpr size_t kMuch = 16;
    clean_ = clean_ && head_.size() < kMuch * kept_;
    if (!clean_) drop_head();
    return;
  }
  begun_ = true;
  seam_ = in_order[seam];
  at_seam_ = split.begin_at(seam_, head_);
  split.launches(in_order.subspan(seam));
}

void DeviceSplit::late(const LaunchInTime& launch) {
  late_ = true;
  if (launch.row == LaunchInTime::kCopy)
    split.lose_copies();
  else if (split.within(launch.begin_ns))
    split.unplaced({.launches = 1,
                    .timed = 1,
                    .ns = launch.length_ns,
                    .row = launch.row,
                    .windowed = launch.windowed != 0});
}

LaunchInTime DeviceSplit::own(LaunchInTime launch, const DeviceSplit& next,
                              std::span<const uint32_t> rows) {
  if (launch.row == LaunchInTime::kCopy) return launch;
  launch.row = rows[launch.row];
  launch.set_pause(split.copy_pause(next.split, launch.pause));
  return launch;
}

void DeviceSplit::add_own(std::span<const LaunchInTime> launches, const DeviceSplit& next,
                          std::span<const uint32_t> rows) {
  constexpr size_t kAtOnce = 128;
  while (!launches.empty()) {
    const auto some = launches.first(std::min({kAtOnce, kept_, launches.size()}));
    add(some.size(), [&](LaunchInTime* to) {
      for (const LaunchInTime& launch : some) *to++ = own(launch, next, rows);
      return some.size();
    });
    launches = launches.subspan(some.size());
  }
}

void DeviceSplit::drop_head() {
  if (spare_ != nullptr) spare_->give(std::move(head_));
  head_ = {};
}

bool DeviceSplit::take(DeviceSplit& next) {
  const std::vector<uint32_t> rows = rows_of(next);
  split.clock_error(next.split.clock_error());
  add_own(next.head_, next, rows);
  next.drop_head();
  if (!next.begun_) {
    next.in_order_.give([&](const LaunchInTime& launch) { add(own(launch, next, rows)); });
    next.split.enter_at_least(split.step());
    take_sums(next, rows);
    return true;
  }
  in_order_.end(*this);
  clean_ = clean_ && in_order_.last_begin_ns() <= next.seam_.begin_ns;
  clean_ = clean_ && split.go_to(own(next.seam_, next, rows)) == next.at_seam_;
  next.split.enter_at_least(split.step());
  next.split.begin_as(split);
  next.take_sums(*this, next.rows_of(*this));
  return false;
}

void DeviceSplit::take_sums(DeviceSplit& other, std::span<const uint32_t> rows) {
  split.add(other.split, rows);
  for (const auto& [place, time] : other.places) places[place].add(time);
  for (size_t row = 0; row < rows.size(); ++row) counted(rows[row], other.rows_[row].launches);
  collectives = collectives || other.collectives;
  clean_ = clean_ && other.clean_;
  late_ = late_ || other.late_;
  joined_ = true;
}

void DeviceSplit::end() {
  in_order_.end(*this);
  split.finish();
}

bool DeviceSplit::value(const std::function<LaunchWorth(const RowPlace&)>& worth_of,
                        uint64_t clock_error_ns) {
  for (uint32_t row = 0; row < rows_.size(); ++row) set_worth(row, worth_of(rows_[row].place));
  return clock_error_ns <= split.clock_error_allowed() && split.value();
}

u128 DeviceSplit::fp32_fs() const {
  u128 sum = 0;
  for (const Row& row : rows_) add_saturating(sum, u128{row.worth.fp32_fs} * row.launches);
  return sum;
}

}  // namespace flopinj::reduce
