// Launches and tallies, streamed through tables of bounded size. One TotalsPass per reading thread;
// what they have is added up at the end.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "passes/packets/segments.h"
#include "passes/rows/batch_counter.h"
#include "passes/rows/busy_track.h"
#include "passes/rows/row_table.h"
#include "reader/damage.h"
#include "reader/packet_reader.h"
#include "tables/totals.h"

namespace flopinj::reduce {

// When the kernels of a segment ran, by device.
using SegmentTimes = std::map<uint32_t, BusyTrack>;
// Intervals that the tracks of one segment keep at the least, over all devices and at each end:
// launches of half a second where a device runs 100,000 in a second, and each is in the file a
// quarter of a second after it ran.
inline constexpr size_t kMostOpenIntervals = 1U << 16;
size_t most_open_intervals(const TraceTables& tables, uint32_t trace);
// Adds those of the next segment of a trace.
void append_times(SegmentTimes& to, const TraceTables& tables, uint32_t trace,
                  const SegmentTimes& segment);

class TotalsPass {
 public:
  static constexpr size_t kMaxRows = RowTable::kMaxRows;  // per trace and in total
  static constexpr size_t kMaxFacts = 1U << 24;           // of all traces, by process
  static constexpr size_t kMaxDeviceRows = 1U << 26;  // likewise, by device, in a few bytes each

  // Both must outlive this; the consumer may be null. Without `totals` the consumer is shown the
  // launches, and nothing is added up.
  explicit TotalsPass(SharedTables& shared, LaunchConsumer* consumer = nullptr, bool totals = true);
  // Reads the launches and tallies of a segment.
  SegmentTimes segment(const Segment& segment, DamageLog& damage);
  // A tally by itself: the revision that counts.
  void tally(uint32_t trace, const Packet& packet, DamageLog& damage);
  // What batches of one trace have come to: by RowsBy::kSummary, which folds nothing.
  RowTable& rows() {
    rows_of_.take_patterns();
    return rows_of_;
  }
  const DeviceTime& device(uint32_t index) { return time_of(index); }
  bool overflow() const { return overflow_ || rows_of_.overflow() || counter_.overflow(); }
  // Ids of the trace at hand become indices of the joined tables. To be called after the last
  // segment and the last tally.
  void fold_rows();
  // Adds what another has counted.
  void add(TotalsPass& other);
  // True when a table was too small: then rows that are left out depend on the threads.
  bool full() const { return full_ || facts_left_out_ > 0; }
  // In a fixed order. The union of kernel times is not in it.
  Totals take(DamageLog& damage);

 private:
  void launch_batch(const Packet& packet, SegmentTimes& times, DamageLog& damage);
  void tally_batch(const Packet& packet, DamageLog& damage);
  void report_lost(DamageLog& damage);
  void use_trace(uint32_t trace);
  DeviceTime& time_of(uint32_t device);
  void fold_totals();
  void add_fact(const RowTable::Info& info, const Counts& counts);

  SharedTables& shared_;
  LaunchConsumer* const consumer_;
  const bool totals_wanted_;
  const bool by_path_;                      // timed_rows_
  std::vector<BusyInterval> unused_times_;  // of a batch
  RowTable rows_of_;
  BatchCounter counter_;
  uint32_t trace_ = kNoIndex;
  bool full_ = false, overflow_ = false;
  uint64_t left_out_ = 0;  // launches for which there was no row

  std::unordered_map<uint32_t, DeviceTime> devices_;
  std::map<uint32_t, PackedRows<FactRow>> facts_;  // by RowsBy::kThread
  size_t facts_size_ = 0;
  uint64_t facts_left_out_ = 0;  // launches

  struct RowKey {
    uint64_t signature_chip = 0, path_rule = 0;
    bool operator==(const RowKey&) const = default;
  };
  struct RowHash {
    size_t operator()(const RowKey& k) const;
  };
  void add_counts(const RowKey& key, const Counts& counts);
  std::unordered_map<RowKey, Counts, RowHash> totals_;
  // Of each trace that was folded. Times may be in another segment than their launches: only the
  // sum over all has a meaning.
  DeviceRows device_rows_;
  TimedRows timed_rows_;
};

}  // namespace flopinj::reduce
