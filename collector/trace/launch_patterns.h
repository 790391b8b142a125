// What launches have in common with launches before them: a training step repeats the last one, so
// a batch says "rows 1 to 600 again" instead of naming every signature and range path (Pattern and
// LaunchBatch.pattern_run in the format).
//
// An order of launches becomes rows when it comes again and the rows so far say it only in pieces,
// if at all. So a program that repeats itself gets rows once, its runs are as long as what it
// repeats, and what never comes again takes no rows. All rows are kept, up to kMaxPatternRows. Used
// only by the writer thread.
#pragma once
#include <collector/base/zero_pages.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace flopinj {

inline constexpr size_t kMaxPatternRows = 1U << 16;  // 1 MiB, and 256 KiB to find them

// A launch without its times.
struct PatternRow {
  // No sequence step that a pattern can hold: such a launch is in no pattern.
  static constexpr uint32_t kNoStep = UINT32_MAX;
  uint32_t signature = 0, path = 0;
  uint32_t step = 0;  // 0 without a sequence number, else 1 + zigzag(difference to the last one)
  bool call = false;  // the first launch of a call of an operator
  bool operator==(const PatternRow&) const = default;
};

class LaunchPatterns {
 public:
  struct Run {
    uint32_t first_row = 0;  // counts from 1; 0: these launches are in no pattern
    uint32_t count = 0;
  };
  // Runs that are shorter are worth new rows.
  static constexpr size_t kLongRun = 256;
  // Orders are found by so many launches; fewer, at the end of a batch, are in a pattern only as
  // part of a run.
  static constexpr size_t kContext = 4;

  // Says `launches` as runs. What has come before may become rows. `next_row` is where the last
  // launch before these left off (0: nowhere), and then where these do.
  void code(std::span<const PatternRow> launches, uint32_t& next_row, std::vector<Run>& runs);

  uint32_t size() const { return static_cast<uint32_t>(rows_.size()); }
  // Rows from this number on.
  std::span<const PatternRow> from(uint32_t row) const { return std::span(rows_).subspan(row - 1); }

 private:
  using Launches = std::span<const PatternRow>;
  static constexpr size_t kSlots = 1U << 16;
  static constexpr size_t kMaxRecent = 1U << 16;  // launches: 1 MiB, and 256 KiB to find them

  size_t repeats(uint32_t row, Launches launches) const;
  uint32_t longest(Launches launches) const;
  size_t seen_before(Launches launches);
  uint32_t find(Launches launches);
  void add(Launches launches);

  std::vector<PatternRow> rows_;
  std::vector<uint32_t>
      older_;  // by row, from 0: the one before with the same hash of kContext rows
  ZeroPages<std::array<uint32_t, kSlots>> newest_;  // rows by that hash
  // Of all batches, one after another; begun anew when there are too many.
  std::vector<PatternRow> recent_;
  // In recent_, from 1, by the hash of kContext launches: where find() was asked.
  ZeroPages<std::array<uint32_t, kSlots>> places_;
};

}  // namespace flopinj
