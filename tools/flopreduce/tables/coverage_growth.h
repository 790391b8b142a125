// Coverage as it grew while recording: how much of the work had complete counts, by the recorder's
// own ledgers (Ledger.covered_launches and its neighbours in the format).
#pragma once
#include <bit>
#include <cstdint>
#include <vector>

#include "flop_trace.pb.h"
#include "support/wide.h"

namespace flopinj::reduce {

struct CoveragePoint {
  uint64_t launches = 0;  // recorded until then
  uint64_t covered_launches = 0;
  uint64_t timed_gpu_time_ns = 0, covered_gpu_time_ns = 0;
};

inline CoveragePoint coverage_at(const trace::Ledger& ledger) {
  CoveragePoint at;
  for (const auto& device : ledger.device()) add_saturating(at.launches, device.recorded());
  at.covered_launches = ledger.covered_launches();
  at.timed_gpu_time_ns = ledger.timed_gpu_time_ns();
  at.covered_gpu_time_ns = ledger.covered_gpu_time_ns();
  return at;
}

// The first ledger at which recorded launches had reached each power of two: at most 64, however
// long the recording. Only of these are the same ones kept.
class CoverageGrowth {
 public:
  // In the order they were written. True for one that is kept.
  bool add(const trace::Ledger& ledger) {
    const CoveragePoint at = coverage_at(ledger);
    const uint64_t before = points_.empty() ? 0 : points_.back().launches;
    if (std::bit_width(at.launches) <= std::bit_width(before)) return false;
    points_.push_back(at);
    return true;
  }
  const std::vector<CoveragePoint>& points() const { return points_; }

 private:
  std::vector<CoveragePoint> points_;
};

}  // namespace flopinj::reduce
