// One device's time, split, of launches that come nearly in order.
//
// Launches of a trace may be read in parts, apart from each other. A part keeps its first launches,
// its head: so many that no later launch of the part can belong before the head's end. The first
// launch after the head is a seam. There the time line of the part begins, with the kernels of the
// head that still run. The part before it, once it is done, takes over the head and goes on to the
// seam; then the sums of both parts are added. So the lines are those of one reading of all
// launches. Where the two time lines do not agree at the seam, the parts are of no use.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "passes/rows/nearly_in_order.h"
#include "passes/rows/time_split.h"

namespace flopinj::reduce {

// Where launches were made that are worth the same, by indices of the joined tables.
struct RowPlace {
  uint32_t signature = 0, device = 0, path = 0, rule = 0;
  auto operator<=>(const RowPlace&) const = default;
};

class DeviceSplit {
 public:
  // Keeps `kept` launches until they are in order. `first`: no launch of the device comes before.
  // `spare`: as NearlyInOrder's. `room`: as TimeSplit's.
  DeviceSplit(size_t kept, bool first, SpareLaunches* spare = nullptr, LogRoom* room = nullptr)
      : split(room), in_order_(kept, spare), spare_(spare), kept_(kept), begun_(first) {
    if (!first && spare != nullptr) head_ = spare->take();
  }
  size_t kept() const { return kept_; }

  // By key() of the path and the rule. After take() the places of both parts are in one of them.
  std::unordered_map<uint64_t, LostTime> places;
  TimeSplit split;
  bool summed = false;  // a summary's device: the summary says which kernels ran at once
  bool collectives = false;

  static uint64_t key(uint32_t path, uint32_t rule) { return uint64_t{path} << 32 | rule; }
  // The number of a row for launches in this place.
  uint32_t add_row(const RowPlace& place, const LaunchGuess& guess);  // with room for a log
  uint32_t add_row(const RowPlace& place, const LaunchWorth& worth);  // else
  // Of all launches of a row, placed or not, so many count.
  void counted(uint32_t row, uint64_t launches) { rows_[row].launches += launches; }
  void add(const LaunchInTime& launch) { in_order_.add(launch, *this); }
  // As NearlyInOrder::add().
  template <typename Write>
  void add(size_t most, Write&& write) {
    in_order_.add(most, std::forward<Write>(write), *this);
  }
  // Adds the part after this one, before the end() of either. True: both are in this one now.
  // False: this one has ended, and both are in `next`.
  bool take(DeviceSplit& next);
  // Whether the sums of the parts are those of one reading.
  bool clean() const { return clean_ && !(joined_ && late_); }
  void end();
  // After it, with room for a log, when it is known what launches are worth, and how far clocks
  // differed. False: they have to be read again.
  bool value(const std::function<LaunchWorth(const RowPlace&)>& worth_of, uint64_t clock_error_ns);
  u128 fp32_fs() const;  // at peak, of products in fp32

  // Of NearlyInOrder.
  void launches(std::span<const LaunchInTime> in_order);
  void late(const LaunchInTime& launch);

 private:
  struct Row {
    RowPlace place;
    LaunchGuess guess;
    LaunchWorth worth;
    bool known = false;
    uint64_t launches = 0;
  };
  uint32_t add_row(const Row& row);
  void set_worth(uint32_t row, const LaunchWorth& worth);
  std::vector<uint32_t> rows_of(const DeviceSplit& other);
  // Of launches of the part after this one, and of one of them.
  void add_own(std::span<const LaunchInTime> launches, const DeviceSplit& next,
               std::span<const uint32_t> rows);
  LaunchInTime own(LaunchInTime launch, const DeviceSplit& next, std::span<const uint32_t> rows);
  void take_sums(DeviceSplit& other, std::span<const uint32_t> rows);
  void drop_head();

  NearlyInOrder in_order_;
  SpareLaunches* const spare_;
  const size_t kept_;
  SpareLaunches::Launches head_;
  std::vector<Row> rows_;
  std::map<RowPlace, uint32_t> row_of_;
  bool begun_;  // its time line has
  LaunchInTime seam_{};
  TimeSplit::Seam at_seam_;
  bool clean_ = true, joined_ = false, late_ = false;
};

}  // namespace flopinj::reduce
