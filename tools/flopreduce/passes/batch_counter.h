// The launches of one batch: each is added to its row, and has its place in time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/totals.h"
#include "passes/busy_track.h"
#include "passes/row_table.h"
#include "reader/damage.h"
#include "reader/launch_batch.h"

namespace flopinj::reduce {

// One per reading thread.
class BatchCounter {
 public:
  BatchCounter(SharedTables& shared, RowTable& rows)
      : rows_of_(rows), flop_(shared.phases().size()) {}

  // Returns when the launches ran that have a time, in the order of their beginnings; good until the
  // next call. `device` is that of the lane.
  std::span<const BusyInterval> count(const LaunchBatchReader& batch, uint32_t lane,
                                      DeviceTime& device, DamageLog& damage);
  // A sum became too large.
  bool overflow() const { return overflow_; }

 private:
  // Launches that are worked on at a time: what they take stays in the fastest memory.
  static constexpr size_t kChunk = 128;

  struct Columns {
    PackedColumn gaps, durations;
  };
  // Of launches that follow each other: the times before them, and how much longer they took than the
  // last ones of their signatures.
  struct Deltas {
    const int64_t* gaps;
    const int64_t* longer;
  };
  void look_up_rows(const LaunchBatchReader& batch, uint32_t lane);
  void forget_durations();
  void untimed(const LaunchBatchReader::Stretch& stretch, Columns& columns);
  void timed(const LaunchBatchReader::Stretch& stretch, Columns& columns, DamageLog& damage);
  size_t place(const uint32_t* rows, Deltas deltas, size_t launches);
  void place_one(uint32_t row, int64_t gap, int64_t longer, bool windowed, DamageLog& damage);
  void add_flop(std::span<const BusyInterval> placed, const uint32_t* rows, bool ends_in_order);

  RowTable& rows_of_;
  bool overflow_ = false;

  // Of the batch at hand.
  std::vector<uint32_t> row_;           // of each launch
  std::vector<BusyInterval> interval_;  // of those placed in time; room for more
  size_t intervals_ = 0;
  bool in_order_ = true;
  std::vector<uint64_t> last_duration_;
  uint64_t now_ = 0;  // end of the last timed launch
  DeviceTime* device_ = nullptr;
  std::vector<uint64_t> flop_;  // by phase: of launches that are not in the device's yet
};

}  // namespace flopinj::reduce
