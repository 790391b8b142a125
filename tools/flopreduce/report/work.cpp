#include "report/work.h"

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
  by_formula.add(o.by_formula);
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

namespace {

// Of `sum`, which is the work's FLOP or a part of them.
Figure counted(const Work& work, u128 sum) {
  if (!work.flop_known()) return Figure::unknown("not measured");
  const u128 arithmetic = sum - std::min(work.doubtful, sum);  // at least
  // Where tensor work may be missing, the rest is no upper bound of all: without what may be no
  // arithmetic it is a lower one.
  if (work.unscreened > 0 && work.flop_at_most())
    return {arithmetic, Mark::kAtLeast | mark_if(work.varying > 0, Mark::kEstimate)};
  const Figure flop(sum, flop_mark(work));
  return flop.bound() ? flop.no_less_than(arithmetic) : flop;
}

}  // namespace

Figure flop_of(const Work& work) { return counted(work, work.flop); }
Figure matrix_flop_of(const Work& work) { return counted(work, work.matrix_flop); }

Figure flop_or_formula(const Work& work) {
  const ByFormula& by_formula = work.by_formula;
  if (by_formula.launches == 0)
    return work.flop_known() ? flop_of(work)
                             : Figure::unknown("no FLOP count, and no operator with a formula");
  u128 flop = work.flop;
  add_saturating(flop, by_formula.flop);
  const bool lacks = by_formula.launches < work.incomplete();
  const bool at_most = by_formula.perhaps > flop / 2000 || work.flop_at_most();
  return {flop, Mark::kEstimate | mark_if(lacks && !at_most, Mark::kAtLeast) |
                    mark_if(at_most && !lacks, Mark::kAtMost)};
}

Figure gpu_time_of(const GpuTime& time, uint64_t launches) {
  if (launches > 0 && time.unknown >= launches) return Figure::unknown("unknown");
  return {time.ns, mark_if(time.estimated > 0, Mark::kEstimate) |
                       mark_if(time.unknown > 0, Mark::kAtLeast) |
                       mark_if(time.windowed > 0, Mark::kAtMost)};
}

Figure gpu_time_of(const Work& work) { return gpu_time_of(work.time, work.launches); }

u128 Part::of(u128 value) const {
  bool overflow = false;
  return mul_div_round(value, to, all, overflow) - mul_div_round(value, from, all, overflow);
}

Work Part::of(const Work& work) const {
  if (whole()) return work;
  const auto shared = [&]<typename Number>(Number& part, Number sum) {
    part = static_cast<Number>(of(u128{sum}));
  };
  const double share = static_cast<double>(to - from) / static_cast<double>(all);
  Work out;
  for_each_pair(Work::sums(out), Work::sums(work), shared);
  for_each_pair(GpuTime::sums(out.time), GpuTime::sums(work.time), shared);
  for_each_pair(Roof::sums(out.roof), Roof::sums(work.roof), shared);
  for_each_pair(Roof::times(out.roof), Roof::times(work.roof),
                [&](double& part, double sum) { part = sum * share; });
  for_each_pair(ByFormula::sums(out.by_formula), ByFormula::sums(work.by_formula), shared);
  out.by_formula.precisions = work.by_formula.precisions;
  out.fewest_windows = work.fewest_windows;
  out.overflow = work.overflow;
  if (!alike) {
    if (out.flop > 0) out.varying = out.launches - std::min(out.launches, out.unmeasured);
    out.time.estimated = out.launches - std::min(out.launches, out.time.unknown);
  }
  if (out.varying > 0)
    out.uncertainty.add_unknown(out.varying);  // which launches it got is unknown
  return out;
}

ModelFlop Part::of(const ModelFlop& model) const {
  ModelFlop out = model;
  for_each_pair(ModelFlop::sums(out), ModelFlop::sums(model),
                [&]<typename Number>(Number& part, Number sum) {
                  part = static_cast<Number>(of(u128{sum}));
                });
  return alike || whole() ? out : out.with_about();
}

}  // namespace flopinj::reduce
