// What launches have in common with launches before them: a training step repeats the last one, so a
// batch says "rows 1 to 600 again" instead of naming every signature and range path (Pattern and
// LaunchBatch.pattern_run in the format).
//
// All rows ever written are kept, up to kMaxPatternRows; what is new is added until then. Used by
// the writer thread alone.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace flopinj {

inline constexpr size_t kMaxPatternRows = 1U << 16;  // 800 KiB, and 512 KiB to find them

// A launch without its times.
struct PatternRow {
  // No sequence step that a pattern can hold: such a launch is in no pattern.
  static constexpr uint32_t kNoStep = UINT32_MAX;
  uint32_t signature = 0, path = 0;
  uint32_t step = 0;  // 0 without a sequence number, else 1 + zigzag(difference to the last one)
  bool operator==(const PatternRow&) const = default;
};

class LaunchPatterns {
 public:
  struct Run {
    uint32_t first_row = 0;  // counts from 1; 0: these launches are in no pattern
    uint32_t count = 0;
  };

  // Says `launches` as runs. What is new becomes rows. `next_row` is where the last launch before
  // these left off (0: nowhere), and then where these do.
  void code(std::span<const PatternRow> launches, uint32_t& next_row, std::vector<Run>& runs);

  uint32_t size() const { return static_cast<uint32_t>(rows_.size()); }
  // Rows from this number on.
  std::span<const PatternRow> from(uint32_t row) const { return std::span(rows_).subspan(row - 1); }

 private:
  // Rows are found by the hash of kContext of them, and by the hash of one. A newer row takes an
  // older one's place; what is found is compared.
  static constexpr size_t kContext = 4;
  static constexpr size_t kSlots = 1U << 16;
  using Index = std::vector<uint32_t>;

  uint32_t find(std::span<const PatternRow> launches) const;
  uint32_t look_up(const Index& index, std::span<const PatternRow> launches) const;
  void add(const PatternRow& row);

  std::vector<PatternRow> rows_;
  Index by_context_, by_row_;
};

}  // namespace flopinj
