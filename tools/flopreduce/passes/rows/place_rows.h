// Launches that follow each other, from what they differ in to when they ran: the loop that takes
// most of pass two.
#pragma once
#include <cstddef>
#include <cstdint>

#include "passes/rows/busy_interval.h"

namespace flopinj::reduce {

// Columns of launches.
struct PlaceColumns {
  const uint64_t* duration_ns = nullptr;
  const int64_t* gap_ns = nullptr;   // since the launch before has ended
  const uint64_t* kernel = nullptr;  // BusyInterval::packed_kernel()
  uint64_t* time_ns = nullptr;       // of their rows: durations are added
  BusyInterval* interval = nullptr;  // written
};

// What was found on the way. Bits are those that any of the launches has.
struct Placed {
  uint64_t now = 0;  // end of the last launch
  uint64_t start_bits = 0, duration_bits = 0;
  int64_t gap_bits = 0;
  uint64_t duration_ns = 0;  // sum
};

// Goes on from placed.now. Sums and times wrap where they do not fit; the bits tell. Four at a time
// where the processor has AVX2.
void place_rows(const PlaceColumns& columns, size_t launches, Placed& placed);
// One after another, on any processor: the same.
void place_rows_one_by_one(const PlaceColumns& columns, size_t launches, Placed& placed);

}  // namespace flopinj::reduce
