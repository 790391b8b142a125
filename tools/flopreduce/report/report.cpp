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

Mark missing_mark(const Work& work) { return mark_if(!work.flop_complete(), Mark::kAtLeast); }

Mark flop_mark(const Work& work) {
  return missing_mark(work) | mark_if(work.flop_at_most(), Mark::kAtMost) |
         mark_if(work.varying > 0, Mark::kEstimate);
}

Figure flop_of(const Work& work) {
  if (!work.flop_known()) return Figure::unknown("not measured");
  // Where tensor work may be missing, the rest is no upper bound of all: without what may be no
  // arithmetic it is a lower one.
  if (work.unscreened > 0 && work.flop_at_most())
    return {work.flop - std::min(work.doubtful, work.flop),
            Mark::kAtLeast | mark_if(work.varying > 0, Mark::kEstimate)};
  const Figure flop(work.flop, flop_mark(work));
  // Without what may be no arithmetic.
  return flop.bound() ? flop.no_less_than(work.flop - std::min(work.doubtful, work.flop)) : flop;
}

Figure gpu_time_of(const GpuTime& time, uint64_t launches) {
  if (launches > 0 && time.unknown >= launches) return Figure::unknown("unknown");
  return {time.ns, mark_if(time.estimated > 0, Mark::kEstimate) |
                       mark_if(time.unknown > 0, Mark::kAtLeast) |
                       mark_if(time.windowed > 0, Mark::kAtMost)};
}

Figure gpu_time_of(const Work& work) { return gpu_time_of(work.time, work.launches); }

Mark end_mark(const Report& report) {
  return mark_if(
      std::ranges::any_of(report.damage,
                          [](const DamageReport& d) { return d.kind == Damage::kStopped; }),
      Mark::kAtLeast);
}

const Work& phase_work(const Report& report, std::string_view phase) {
  static const Work kNoWork;
  for (const auto& p : report.phases)
    if (p.name == phase) return p.work;
  return kNoWork;
}

}  // namespace flopinj::reduce
