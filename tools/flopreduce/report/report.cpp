#include "report/report.h"

#include <algorithm>

namespace flopinj::reduce {

void Work::add(const Work& o) {
  const bool fits = add_each(sums(*this), sums(o));
  if (o.agreeing > 0)
    fewest_windows =
        fewest_windows == 0 ? o.fewest_windows : std::min(fewest_windows, o.fewest_windows);
  overflow = overflow || o.overflow || !fits;
  time.add(o.time);
  roof.add(o.roof);
  uncertainty.add(o.uncertainty);
}

std::optional<Interval> Work::interval() const {
  if (varying == 0) return std::nullopt;
  auto interval = uncertainty.interval(flop);
  if (interval) interval->low -= std::min(interval->low, doubtful);
  return interval;
}

const Work& phase_work(const Report& report, std::string_view phase) {
  static const Work kNoWork;
  for (const auto& p : report.phases)
    if (p.name == phase) return p.work;
  return kNoWork;
}

}  // namespace flopinj::reduce
