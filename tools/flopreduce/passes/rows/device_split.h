// One device's time, split, of launches that come nearly in order.
//
// Launches of a trace may be read in parts, apart from each other. A part keeps its first launches,
// its head, until all that belong before the rest must be among them or in earlier parts. The first
// launch after the head is a seam: there the time line of the part begins, with the kernels of the
// head that still run. When the part before is done it is given the head, goes on to the seam, and
// the sums of both are one. So the lines are the same as of launches that are read at once, unless
// that the seam shows otherwise: then the parts are of no use.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "passes/rows/nearly_in_order.h"
#include "passes/rows/time_split.h"

namespace flopinj::reduce {

class DeviceSplit {
 public:
  // Keeps so many launches until they are in order. `first`: none of the device come before.
  DeviceSplit(size_t kept, bool first) : in_order_(kept), kept_(kept), begun_(first) {}
  size_t kept() const { return kept_; }

  // By key() of the path and the rule. Those of a part that goes on in another are in that one.
  std::unordered_map<uint64_t, LostTime> places;
  TimeSplit split;
  bool summed = false;  // it is a summary's, which says what ran at once
  bool collectives = false;

  static uint64_t key(uint32_t path, uint32_t rule) { return uint64_t{path} << 32 | rule; }
  // For launches that are worth so much: the number of their row.
  uint32_t add_row(const LaunchWorth& worth, uint64_t place);
  void add(const LaunchInTime& launch) { in_order_.add(launch, *this); }
  // As NearlyInOrder::add().
  template <typename Write>
  void add(size_t most, Write&& write) {
    in_order_.add(most, std::forward<Write>(write), *this);
  }
  // The part after this one, before the end() of either. True: all of it is in this one now. False:
  // this one has ended, and all of it is in `next`.
  bool take(DeviceSplit& next);
  // Whether parts of it have come to what one reading would.
  bool clean() const { return clean_ && !(joined_ && late_); }
  void end();

  // Of NearlyInOrder.
  void launches(std::span<const LaunchInTime> in_order);
  void late(const LaunchInTime& launch);

 private:
  struct Row {
    LaunchWorth worth;
    uint64_t place = 0;
  };
  // Of a launch of the part after this one.
  LaunchInTime own(LaunchInTime launch, const DeviceSplit& next, std::vector<uint32_t>& rows);
  void take_sums(DeviceSplit& other);

  NearlyInOrder in_order_;
  const size_t kept_;
  std::vector<LaunchInTime> head_;
  std::vector<Row> rows_;
  bool begun_;  // its time line has
  LaunchInTime seam_{};
  TimeSplit::Seam at_seam_;
  bool clean_ = true, joined_ = false, late_ = false;
};

}  // namespace flopinj::reduce
