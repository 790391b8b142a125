// Rows of launches that follow each other, column by column: what all launches of a row have in
// common, and what is added up of them.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "tables/id_map.h"

namespace flopinj::reduce {

struct RowBlock {
  static constexpr size_t kRows = 128;  // so many at a time stay in the fastest memory

  std::array<uint32_t, kRows> row;            // RowTable::hot(); kNoIndex: not looked up yet
  size_t known_begin = 0, known_end = 0;      // all of these have been looked up
  std::array<uint32_t, kRows> duration{};     // RowTable::Hot::duration
  std::array<uint64_t, kRows> kernel{};       // RowTable::Hot::kernel
  std::array<uint32_t, kRows> phase{};        // RowTable::Hot::phase
  std::array<uint64_t, kRows + 1> flop_to{};  // of one launch of each row before; sums wrap
  std::array<uint8_t, kRows> phase_to{};      // the next row of another phase

  // Not in RowTable::hot() yet: the time of the launches, and how many stretches of launches began
  // at a row, less those that ended before it.
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

}  // namespace flopinj::reduce
