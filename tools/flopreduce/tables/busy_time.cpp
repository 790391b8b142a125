#include "tables/busy_time.h"

#include <algorithm>

namespace flopinj::reduce {
namespace {

bool longer(const IdleGap& a, const IdleGap& b) {
  return a.length_ns != b.length_ns ? a.length_ns > b.length_ns : a.begin_ns < b.begin_ns;
}

}  // namespace

void BusyTime::add_gap(const IdleGap& gap) {
  size_t place = 0;
  for (uint64_t power = 10; place + 1 < kDecades && gap.length_ns >= power; power *= 10) ++place;
  Decade& decade = idle[place];
  ++decade.gaps;
  decade.ns += gap.length_ns;
  if (gap.length_ns >= least_kept_) keep_if_large(gap);
}

void BusyTime::keep_if_large(const IdleGap& gap) {
  if (largest.size() == kLargest) {
    if (!longer(gap, largest.back())) return;
    largest.pop_back();
  }
  largest.insert(std::upper_bound(largest.begin(), largest.end(), gap, longer), gap);
  if (largest.size() == kLargest) least_kept_ = largest.back().length_ns;
}

void BusyTime::add(const BusyTime& later) {
  late += later.late;
  late_ns += later.late_ns;
  if (!later.any) return;
  begin_ns = any ? std::min(begin_ns, later.begin_ns) : later.begin_ns;
  end_ns = any ? std::max(end_ns, later.end_ns) : later.end_ns;
  any = true;
  busy_ns += later.busy_ns;
  for (size_t i = 0; i < kDecades; ++i) {
    idle[i].gaps += later.idle[i].gaps;
    idle[i].ns += later.idle[i].ns;
  }
  for (const auto& gap : later.largest) keep_if_large(gap);
}

}  // namespace flopinj::reduce
