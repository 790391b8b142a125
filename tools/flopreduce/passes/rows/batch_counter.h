// The launches of one batch, decoded: each is added to its row, has its place in time, and is shown
// to a consumer where there is one.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "passes/rows/busy_interval.h"
#include "passes/rows/launch_consumer.h"
#include "passes/rows/number_split.h"
#include "passes/rows/row_table.h"
#include "reader/damage.h"
#include "reader/launch_batch.h"
#include "reader/unpack.h"
#include "tables/totals.h"

namespace flopinj::reduce {

// One per reading thread.
class BatchCounter {
 public:
  // All must outlive this; the consumer may be null.
  BatchCounter(SharedTables& shared, RowTable& rows, LaunchConsumer* consumer)
      : shared_(shared),
        rows_of_(rows),
        consumer_(consumer),
        split_(shared.numbers()),
        flop_(shared.phases().size()) {}

  // Writes to `intervals`, which has room for all launches, when those ran that have a time, in the
  // order of their beginnings. Returns how many. `device` is that of the batch's lanes.
  size_t count(const LaunchBatchReader& batch, DeviceTime& device, BusyInterval* intervals,
               DamageLog& damage);
  // A sum became too large.
  bool overflow() const { return overflow_; }

 private:
  static constexpr size_t kAtOnce = RowBlock::kRows;  // launches

  struct Columns {
    PackedColumn gaps, durations;
  };
  // Of launches that follow each other: the times before them, and how much longer they took than
  // the last ones of their signatures.
  struct Deltas {
    std::array<int64_t, kAtOnce + kUnpackRoom> gaps;
    std::array<int64_t, kAtOnce + kUnpackRoom> longer;
  };
  uint32_t lane_of(const LaunchBatchReader& batch, const LaunchBatchReader::Stretch& alike,
                   NumberTells tells);
  void next_rows(uint32_t lane, size_t launches);
  RowStretch name_rows(uint32_t lane, size_t most);
  void note_durations(const RowStretch& rows);
  void forget_durations();
  // Calls visit(number of a launch among those at hand, its row).
  template <typename Visit>
  void for_each_row(Visit&& visit) const;
  void untimed(const LaunchBatchReader::Stretch& alike, Columns& columns);
  void timed(const LaunchBatchReader::Stretch& alike, size_t launches, Columns& columns,
             DamageLog& damage);
  bool place(const Deltas& deltas, size_t launches);
  void take_back(const Deltas& deltas, size_t launches);
  uint64_t place_one(uint32_t row, int64_t gap, int64_t longer, bool windowed, DamageLog& damage);
  void begin_calls(const LaunchBatchReader& batch);
  void read_pause();
  void note_calls(const Deltas& deltas, size_t launches);
  void show(const LaunchBatchReader::Stretch& alike, size_t begin, size_t launches);
  void add_flop(std::span<const BusyInterval> placed, bool ends_in_order);
  void sum_flop();

  SharedTables& shared_;
  RowTable& rows_of_;
  LaunchConsumer* const consumer_;
  NumberSplit split_;
  bool overflow_ = false;

  // Of the batch at hand.
  LaunchOrder order_;
  LaunchOrder::Run run_;  // what is left of it
  bool run_is_pattern_ = false;
  std::vector<RowStretch> rows_;  // of the launches at hand
  LaunchPiece piece_;             // likewise; durations always, the rest for the consumer
  RowBlock named_;                // of those at hand that are in no pattern
  size_t named_rows_ = 0;
  BusyInterval* interval_ = nullptr;  // of those placed in time
  size_t intervals_ = 0;
  bool in_order_ = true;
  std::vector<uint64_t> last_duration_;       // zeros between batches
  std::vector<uint32_t> durations_to_clear_;  // beyond the first
  uint64_t now_ = 0;                          // end of the last timed launch
  PackedColumn called_before_, pauses_;
  bool any_timed_ = false;
  LaunchPiece::Pause next_pause_;  // its place is that in the batch
  DeviceTime* device_ = nullptr;
  // By phase: of the launches at hand, what is not in the device's yet; zeros between them.
  std::vector<uint64_t> flop_;
};

}  // namespace flopinj::reduce
