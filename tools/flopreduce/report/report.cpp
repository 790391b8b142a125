#include "report/report.h"

#include <algorithm>

namespace flopinj::reduce {

void GpuTime::add(const GpuTime& o) {
  add_saturating(ns, o.ns);
  add_saturating(estimated, o.estimated);
  add_saturating(windowed, o.windowed);
  add_saturating(unknown, o.unknown);
}

void Work::add(const Work& o) {
  bool fits = add_saturating(launches, o.launches);
  fits = add_saturating(unmeasured, o.unmeasured) && fits;
  fits = add_saturating(varying, o.varying) && fits;
  fits = add_saturating(rounded, o.rounded) && fits;
  fits = add_saturating(agreeing, o.agreeing) && fits;
  if (o.agreeing > 0)
    fewest_windows =
        fewest_windows == 0 ? o.fewest_windows : std::min(fewest_windows, o.fewest_windows);
  fits = add_saturating(unscreened, o.unscreened) && fits;
  fits = add_saturating(flop, o.flop) && fits;
  fits = add_saturating(matrix_flop, o.matrix_flop) && fits;
  fits = add_saturating(doubtful, o.doubtful) && fits;
  fits = add_saturating(left_out, o.left_out) && fits;
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

void LedgerLine::add(const LedgerLine& o) {
  add_saturating(launches, o.launches);
  add_saturating(measured, o.measured);
  add_saturating(extrapolated, o.extrapolated);
  add_saturating(unmeasured, o.unmeasured);
  add_saturating(dropped, o.dropped);
}

}  // namespace flopinj::reduce
