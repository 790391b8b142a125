// Times of recordings whose clock has whole units, such as microseconds.
#pragma once
#include <algorithm>
#include <cstdint>

#include "report/report.h"

namespace flopinj::reduce {

// A time of so few units may be another by a fiftieth and more.
inline constexpr uint64_t kFewUnits = 50;

// Times of the report below so many ns are rough; 0: none is.
inline uint64_t rough_below_ns(const Report& report) {
  constexpr uint64_t kMostUnit = 1'000'000'000;
  uint64_t unit_ns = 1;
  for (const TraceReport& t : report.traces)
    unit_ns = std::max<uint64_t>(unit_ns, t.header.clock_unit_ns());
  return unit_ns > 1 ? kFewUnits * std::min(unit_ns, kMostUnit) : 0;
}

}  // namespace flopinj::reduce
