// What a row of a tally adds to the counts of its launches.
#pragma once
#include <algorithm>

#include "reader/launch_batch.h"
#include "reader/tally_batch.h"
#include "tables/totals.h"

namespace flopinj::reduce {

// No kernel runs that long: the time is a damaged number.
inline bool has_possible_time(const TallyRow& row) {
  return row.timed == 0 ? row.gpu_time_ns == 0 : row.gpu_time_ns / row.timed <= kLongestKernelNs;
}

// Without an impossible time.
inline Counts counts_of(const TallyRow& row) {
  Counts counts;
  counts.launches = row.launches;
  counts.graph = std::min(row.graph_launches, row.launches);
  counts.windowed = row.windowed ? row.launches : 0;
  if (!has_possible_time(row)) return counts;
  (row.windowed ? counts.windowed_timed : counts.timed) = row.timed;
  (row.windowed ? counts.windowed_time_ns : counts.time_ns) = row.gpu_time_ns;
  return counts;
}

}  // namespace flopinj::reduce
