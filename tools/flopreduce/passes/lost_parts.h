// The devices of traces that are read in parts. Any thread may read any part; the parts of a trace
// are joined in their order.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "passes/packets/segments.h"
#include "passes/rows/device_split.h"

namespace flopinj::reduce {

class LostParts {
 public:
  using Devices = std::map<uint32_t, DeviceSplit>;  // of one trace: TraceTables::devices
  using Ended = std::function<void(uint32_t trace, Devices)>;

  // `in_parts`, by trace: whether it is read in parts. Devices are handed to `ended` after their
  // trace's last part: not clean() where the parts do not fit, and it has to be read by one thread.
  // `room`: as TimeSplit's.
  LostParts(const std::vector<Segment>& segments, std::vector<bool> in_parts, LogRoom* room,
            Ended ended);
  bool in_parts(uint32_t trace) const { return in_parts_[trace]; }
  // Whether it is the first part of its trace.
  bool is_first(size_t segment) const { return first_[segments_[segment].trace] == segment; }
  // Whether it is all of its trace.
  bool is_whole(size_t segment) const {
    return is_first(segment) && !is_of(segment + 1, segments_[segment].trace);
  }
  // The devices of a segment that was read. Any thread.
  void add(size_t segment, Devices devices);
  // Of all devices.
  SpareLaunches& spare() { return spare_; }
  LogRoom* room() const { return room_; }

 private:
  struct Trace {
    size_t next = 0;  // segment
    Devices devices;
    std::map<size_t, Devices> waiting;  // for the segments before them
  };
  void join(Devices& all, Devices next);
  void end(uint32_t trace, Devices devices);
  bool is_of(size_t segment, uint32_t trace) const {
    return segment < segments_.size() && segments_[segment].trace == trace;
  }

  const std::vector<Segment>& segments_;
  const std::vector<bool> in_parts_;
  std::vector<size_t> first_;  // segment of each trace
  LogRoom* const room_;
  const Ended ended_;
  SpareLaunches spare_;  // outlives the devices below
  std::mutex lock_;
  std::map<uint32_t, Trace> traces_;  // begun, and not ended
};

}  // namespace flopinj::reduce
