// How often each signature was launched on each device, as the writer thread sees it. The scheduler
// gets these counts, and a measured launch its place among its signature's. Used only by the writer
// thread.
//
// Bounded: 16 bytes per signature and device that launched it, and the last kMaxMeasured measured
// launches.
#pragma once
#include <collector/base/assert.h>
#include <collector/schedule/scheduler.h>
#include <collector/trace/launch_columns.h>
#include <collector/writer/correlation_table.h>
#include <collector/writer/thread_registry.h>

#include <array>
#include <cstdint>
#include <vector>

namespace flopinj {

class LaunchCounts {
 public:
  static constexpr size_t kMaxMeasured = 1U << 16;

  // A launch came out of its thread's ring, with these LaunchRecord::Flags. Kernels of graph
  // launches are not reported: samples of theirs have no place among the others.
  void taken(DeviceId, SignatureId, uint32_t correlation, uint32_t flags);
  // A launch goes to the trace, with its time or without.
  void recorded(DeviceId, const TimedLaunch&);

  // What changed since the last call; valid until the next one of any function.
  const std::vector<LaunchProgress>& changed();
  // How many launches of the signature were taken before this one; of one that was not taken yet,
  // how many there are. Asked once for each group that was read.
  uint64_t ordinal(DeviceId, SignatureId, uint32_t correlation);

 private:
  struct Entry {
    uint64_t launches = 0;
    uint32_t changed = 0;  // place in next_ plus 1
  };
  Entry& entry(DeviceId, SignatureId);
  LaunchProgress& progress(DeviceId, SignatureId);

  std::array<std::vector<Entry>, kDeviceSlots> entries_;
  std::vector<LaunchProgress> next_, told_;
  CorrelationTable<uint64_t> measured_{kMaxMeasured};
  OneThread thread_;
};

}  // namespace flopinj
