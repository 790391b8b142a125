#include "passes/rows/device_split.h"

#include <algorithm>

#include "tables/id_map.h"

namespace flopinj::reduce {

uint32_t DeviceSplit::add_row(const LaunchWorth& worth, uint64_t place) {
  rows_.push_back({worth, place});
  return split.add_row(worth, places[place]);
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
  else if (!split.within(launch.begin_ns))
    return;
  else if (launch.slowed != 0)
    split.slowed_unplaced(launch.row, launch.length_ns);
  else
    split.unplaced(launch.row, 1, launch.length_ns);
}

LaunchInTime DeviceSplit::own(LaunchInTime launch, const DeviceSplit& next,
                              std::vector<uint32_t>& rows) {
  if (launch.row == LaunchInTime::kCopy) return launch;
  uint32_t& row = rows[launch.row];
  if (row == kNoIndex) row = add_row(next.rows_[launch.row].worth, next.rows_[launch.row].place);
  launch.row = row;
  launch.set_pause(split.copy_pause(next.split, launch.pause));
  return launch;
}

void DeviceSplit::add_own(std::span<const LaunchInTime> launches, const DeviceSplit& next,
                          std::vector<uint32_t>& rows) {
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
  std::vector<uint32_t> rows(next.rows_.size(), kNoIndex);
  split.clock_error(next.split.clock_error());
  add_own(next.head_, next, rows);
  next.drop_head();
  if (!next.begun_) {
    next.in_order_.give([&](const LaunchInTime& launch) { add(own(launch, next, rows)); });
    next.split.enter_at_least(split.step());
    take_sums(next);
    return true;
  }
  in_order_.end(*this);
  clean_ = clean_ && in_order_.last_begin_ns() <= next.seam_.begin_ns;
  clean_ = clean_ && split.go_to(own(next.seam_, next, rows)) == next.at_seam_;
  next.split.enter_at_least(split.step());
  next.split.begin_as(split);
  next.take_sums(*this);
  return false;
}

void DeviceSplit::take_sums(DeviceSplit& other) {
  split.add(other.split);
  for (const auto& [place, time] : other.places) places[place].add(time);
  collectives = collectives || other.collectives;
  clean_ = clean_ && other.clean_;
  late_ = late_ || other.late_;
  joined_ = true;
}

void DeviceSplit::end() {
  in_order_.end(*this);
  split.finish();
}

}  // namespace flopinj::reduce
