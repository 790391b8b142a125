// Rows of one trace, and what is added up in them: its launches by signature, range path, phase
// rule and device, or by finer places. One per reading thread.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "passes/rows/busy_interval.h"
#include "passes/rows/number_split.h"
#include "phases/operator_calls.h"
#include "phases/phases.h"
#include "reader/launch_batch.h"
#include "tables/flop_series.h"
#include "tables/totals.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

// What launches of one row have in common beside what the first three say.
enum class RowsBy : uint8_t {
  kReport,   // nothing
  kThread,   // their thread and stream, too
  kSummary,  // and whether counters were read, and whether they are in a training step that ended;
             // phase rules and FLOP are not looked up
};

// What all reading threads share.
class SharedTables {
 public:
  // The tables must be joined, and must outlive this.
  SharedTables(const TraceTables& tables, PhaseMap& phases, RowsBy rows_by = RowsBy::kReport);
  // Of each device and phase, which takes memory for each of a job's ranks: without this there is
  // none.
  void keep_flop_over_time(const PhaseRules& rules, int fma);
  // Without a source, sequence numbers are not used. It must outlive this.
  void use_numbers(const NumberSource& source) { numbers_ = &source; }
  // Likewise of steps without names.
  void use_step_names(const StepNames& names) { step_names_ = names.any() ? &names : nullptr; }
  const StepNames* step_names() const { return step_names_; }
  const TraceTables& tables() const { return tables_; }
  RowsBy rows_by() const { return rows_by_; }
  const NumberSource* numbers() const { return numbers_; }
  const std::vector<std::string>& phases() const { return phase_names_; }
  uint32_t rule_of(uint32_t path, uint32_t thread_name, NumberTells tells);
  uint32_t rule_of_kernel(uint32_t rule, uint32_t signature) const {
    return phases_.rule_of_kernel(rule, signature);
  }
  uint32_t phase_of(uint32_t rule) const {
    return phase_of_rule_.empty() ? 0 : phase_of_rule_[rule];
  }
  size_t most_flop_bins() const { return most_flop_bins_; }  // of a device and phase
  // FLOP of one launch, as far as samples have them; 0 where they do not.
  uint64_t flop_of(uint32_t signature, uint32_t chip) const;

 private:
  const TraceTables& tables_;
  PhaseMap& phases_;
  const RowsBy rows_by_;
  const NumberSource* numbers_ = nullptr;
  const StepNames* step_names_ = nullptr;
  std::mutex phases_lock_;
  std::vector<std::string> phase_names_;
  std::vector<uint32_t> phase_of_rule_;
  size_t most_flop_bins_ = FlopSeries::kMostBins;
  std::unordered_map<uint64_t, uint64_t> flop_;
};

// A thread on a stream, as a batch names them, and what its launches have in common.
struct LaunchLane {
  uint32_t thread = 0, stream = 0;
  NumberTells tells = NumberTells::kNothing;
  bool windowed = false, in_step = false;  // RowsBy::kSummary only
  auto operator<=>(const LaunchLane&) const = default;
};

// Rows of launches that follow each other, column by column: what all launches of a row have in
// common, and what is added up of them.
struct RowBlock {
  static constexpr size_t kRows = 128;  // so many at a time stay in the fastest memory

  std::array<uint32_t, kRows> row;            // RowTable::hot(); kNoIndex: not looked up yet
  size_t known_begin = 0, known_end = 0;      // all of these have been looked up
  std::array<uint32_t, kRows> duration{};     // RowTable::Hot::duration
  std::array<uint64_t, kRows> kernel{};       // RowTable::Hot::kernel
  std::array<uint32_t, kRows> phase{};        // RowTable::Hot::phase
  std::array<uint64_t, kRows + 1> flop_to{};  // of one launch of each row before; sums wrap
  std::array<uint8_t, kRows> phase_to{};      // the next row of another phase

  // Not in RowTable::hot() yet: the time of the launches, and how many more stretches of launches
  // began at a row than ended before it.
  std::array<uint64_t, kRows> time_ns{};
  std::array<uint32_t, kRows + 1> begun{};
  bool counted = false;

  RowBlock() {
    row.fill(kNoIndex);
    phase_to.fill(kRows);
  }
};

// Of a block, as many as launches that follow each other have.
struct RowStretch {
  RowBlock* block = nullptr;
  size_t at = 0, count = 0;

  uint32_t row(size_t i) const { return block->row[at + i]; }
};

class RowTable {
 public:
  static constexpr size_t kMaxRows = 1U << 20;
  static constexpr uint32_t kDiscard = 0;  // the row of all beyond kMaxRows, and their lane

  // What a launch outside windows touches, and nothing else.
  struct Hot {
    uint64_t timed = 0;
    uint64_t time_ns = 0;
    uint64_t flop = 0;      // of one launch
    uint64_t kernel = 0;    // BusyInterval::packed_kernel() of the signature
    uint32_t duration = 0;  // place of the signature's last duration
    uint32_t phase = 0;     // SharedTables::phases()
  };
  struct Info {
    uint32_t signature = 0;  // TraceTables::signatures
    uint32_t device = 0, path = 0, rule = 0;
    uint32_t lane = 0;                       // lane_of()
    uint32_t signature_id = 0, path_id = 0;  // of the trace
    bool green = false;                      // launched on green contexts
    bool call = false;                       // each is the first launch of a call of an operator
    uint64_t reported = 0;                   // of its launches, those that are in the damage log
    Counts other;                            // all that Hot does not hold
  };

  explicit RowTable(SharedTables& shared) : shared_(shared) { clear(); }
  // Ids change their meaning with the trace.
  void use_trace(uint32_t trace);
  uint32_t trace() const { return trace_; }
  void clear();

  // By RowsBy::kReport several threads and streams share a lane.
  uint32_t lane(LaunchLane of);
  const LaunchLane& lane_of(const Info& row) const { return lanes_[row.lane].of; }
  uint32_t device(uint32_t lane) const { return lanes_[lane].device; }
  uint32_t row(uint32_t lane, uint32_t path, uint32_t signature, bool call);
  // Rows of the first launches of a run, at most `most`: one or more. They stay where they are
  // until the next make_room().
  RowStretch pattern_rows(uint32_t lane, const LaunchOrder::Run& run, size_t most) {
    const uint64_t first = run.first_row - 1;
    // Of rows that no pattern can have, all are in the last block.
    const uint64_t key =
        static_cast<uint64_t>(lane) << 32 | std::min<uint64_t>(first / RowBlock::kRows, UINT32_MAX);
    if (recent_ == nullptr || key != recent_key_) use_block(key);
    const auto at = static_cast<size_t>(first % RowBlock::kRows);
    const RowStretch stretch{recent_, at, std::min({most, run.launches, RowBlock::kRows - at})};
    if (at < recent_->known_begin || at + stretch.count > recent_->known_end) [[unlikely]]
      look_up(lane, first, stretch);
    return stretch;
  }
  // For so many calls of pattern_rows().
  void make_room(size_t blocks);
  // What follows from the rows [begin, end) of a block.
  void describe(RowBlock& block, size_t begin, size_t end) const;
  // Adds to the rows what these rows of the block have counted, and what all those of patterns
  // have.
  void take(RowBlock& block, size_t begin, size_t end);
  void take_patterns();

  size_t size() const { return hot_.size(); }
  Hot* hot() { return hot_.data(); }
  const Hot& hot(uint32_t row) const { return hot_[row]; }
  Info* info() { return info_.data(); }
  const Info& info(uint32_t row) const { return info_[row]; }
  // TraceTables::signatures
  uint32_t signature(uint32_t row) const { return BusyInterval{0, hot_[row].kernel}.kernel(); }
  size_t durations() const { return durations_; }
  // So many launches have FLOP that fit into a number.
  size_t flop_fit() const { return flop_fit_; }
  bool full() const { return full_; }
  bool overflow() const { return overflow_; }  // of a row's time; clear() does not change it
  const std::vector<uint32_t>& lost() const { return lost_; }

 private:
  struct Lane {
    LaunchLane of;  // by kReport: that of its first launches
    uint32_t device = 0, thread_name = 0;
    bool green = false, lost = false;
  };
  static constexpr size_t kFirstPlaces = 64;  // of a table that is made for each short recording
  // Over all lanes: 10 MiB, and four times as many rows as our writer makes patterns of.
  static constexpr size_t kMaxBlocks = 2048;

  uint32_t& place(uint32_t lane, uint32_t path, uint32_t signature, bool call);
  void more_places();
  uint32_t add_row(uint32_t lane, uint32_t path, uint32_t signature, bool call);
  void use_block(uint64_t key);
  void look_up(uint32_t lane, uint64_t first, const RowStretch& stretch);
  uint32_t duration_of(uint32_t signature);

  SharedTables& shared_;
  uint32_t trace_ = kNoIndex;
  std::vector<Hot> hot_;
  std::vector<Info> info_;
  std::vector<uint32_t> lost_;
  // Rows by a hash of what add_row() takes, or behind it; kDiscard: none. At most half are taken.
  std::vector<uint32_t> places_;
  std::vector<Lane> lanes_;
  // By (thread id, stream id), for each other kind of LaunchLane; and, by kReport, by (device,
  // thread name, green, what numbers tell, lost).
  std::array<std::unordered_map<uint64_t, uint32_t>, 32> lane_of_ids_;
  std::unordered_map<uint64_t, uint32_t> lane_of_what_;
  std::unordered_map<uint64_t, RowBlock> patterns_;  // by lane and number of the block
  RowBlock* recent_ = nullptr;                       // the last one used
  uint64_t recent_key_ = 0;
  std::vector<RowBlock*> counted_;                      // those of patterns_ that have counted
  std::unordered_map<uint32_t, uint32_t> duration_of_;  // by signature id
  size_t durations_ = 0;
  uint64_t most_flop_ = 0;  // of a launch of any row
  size_t flop_fit_ = SIZE_MAX;
  bool full_ = false, overflow_ = false;
};

}  // namespace flopinj::reduce
