#include "passes/summary/kernel_times.h"

#include <algorithm>

#include "passes/rows/device_times.h"
#include "passes/totals_pass.h"

namespace flopinj::reduce {

void KernelTimes::batch(const TraceTables& tables, uint32_t trace, uint32_t stream,
                        size_t segment) {
  const TraceState& state = tables.traces[trace];
  if (kept_ == 0) kept_ = most_open_intervals(tables, trace);
  if (segment != segment_) end_segment();
  segment_ = segment;
  const uint32_t id = tables.devices[state.device_of(stream)].id;
  device_ = &devices_.try_emplace(id, kept_).first->second;
  intervals_.clear();
}

void KernelTimes::launch(const LaunchRow& launch) {
  if (!launch.timed || !BusyInterval::has_place(launch.start_ns, launch.duration_ns)) return;
  intervals_.push_back(
      {launch.start_ns, BusyInterval::packed_kernel(launch.signature) | launch.duration_ns});
  device_->kernel_ns += launch.duration_ns;
}

void KernelTimes::end_batch() {
  const auto before = [](const BusyInterval& a, const BusyInterval& b) {
    return a.begin < b.begin;
  };
  if (!std::is_sorted(intervals_.begin(), intervals_.end(), before))
    std::stable_sort(intervals_.begin(), intervals_.end(), before);
  device_->placed += intervals_.size();
  device_->segment.add(intervals_);
}

void KernelTimes::end_segment() {
  for (auto& [id, device] : devices_) {
    device.whole.append(device.segment);
    device.segment = BusyTrack(kept_, true);
  }
}

std::vector<trace::DeviceTimes> KernelTimes::take() {
  end_segment();
  for (auto& [id, device] : devices_) {
    if (device.placed == 0) continue;
    DeviceTime time;
    time.placed = device.placed;
    time.kernel_ns = device.kernel_ns;
    time.busy = device.whole.take();
    known_[id] = device_times_message(id, time);
  }
  std::vector<trace::DeviceTimes> all;
  for (auto& [id, message] : known_) all.push_back(std::move(message));
  return all;
}

}  // namespace flopinj::reduce
