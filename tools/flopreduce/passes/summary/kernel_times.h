// When the kernels of one recording ran, by device: what a summary keeps of the moments.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "flop_trace.pb.h"
#include "passes/rows/busy_track.h"
#include "reader/launch_batch.h"
#include "support/wide.h"
#include "tables/totals.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

// Joins times as pass two does, segment by segment, so that a summary's report has the figures of
// the trace's.
class KernelTimes {
 public:
  // A batch of a stream, in a segment of the trace by its number.
  void add(const TraceTables& tables, uint32_t trace, uint32_t stream, size_t segment,
           const LaunchList& list);
  // What a summary has of a device.
  void add(const trace::DeviceTimes& times) { known_[times.device()] = times; }
  // By device. Ends the times.
  std::vector<trace::DeviceTimes> take();

 private:
  struct Device {
    explicit Device(size_t kept) : whole(kept, false), segment(kept, true) {}
    uint64_t placed = 0;
    u128 kernel_ns = 0;
    BusyTrack whole, segment;
  };
  void end_segment();

  std::map<uint32_t, Device> devices_;  // by id in the trace
  std::map<uint32_t, trace::DeviceTimes> known_;
  size_t segment_ = 0, kept_ = 0;
};

}  // namespace flopinj::reduce
