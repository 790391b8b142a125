#include "passes/summary/kernel_times.h"

#include <algorithm>

#include "passes/rows/device_times.h"
#include "passes/totals_pass.h"

namespace flopinj::reduce {

void KernelTimes::add(const TraceTables& tables, uint32_t trace, uint32_t stream, size_t segment,
                      const LaunchList& list) {
  const auto before = [](const BusyInterval& a, const BusyInterval& b) {
    return a.begin < b.begin;
  };
  if (kept_ == 0) kept_ = most_open_intervals(tables, trace);
  if (segment != segment_) end_segment();
  segment_ = segment;
  const uint32_t id = tables.devices[tables.traces[trace].device_of(stream)].id;
  Device& device = devices_.try_emplace(id, kept_).first->second;
  BusyInterval* const first = device.segment.room(list.size);
  BusyInterval* end = first;
  for (size_t i = 0; i < list.size; ++i) {
    const uint64_t start = list.start_ns[i], duration = list.duration_ns[i];
    if (!list.is(i, LaunchList::kTimed) || !BusyInterval::has_place(start, duration)) continue;
    *end++ = {start, BusyInterval::packed_kernel(list.signature[i]) | duration};
    device.kernel_ns += duration;
  }
  if (!std::is_sorted(first, end, before)) std::stable_sort(first, end, before);
  device.placed += static_cast<size_t>(end - first);
  device.segment.added(static_cast<size_t>(end - first));
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
