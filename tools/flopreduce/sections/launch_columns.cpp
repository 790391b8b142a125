#include "sections/launch_columns.h"

#include <algorithm>

#include "sections/notices.h"
#include "sections/parts/work_columns.h"

namespace flopinj::reduce {
namespace launches {
namespace {

constexpr auto kWork = [](const LaunchRow& row) -> const Work& { return row.group.work; };
constexpr auto kMark = [](const LaunchRow& row, const Report& report) { return row.mark(report); };

bool of_integers(const LaunchRow& row) {
  return row.has(by::kFormat) && row.id(by::kFormat) >= kMaxPrecisions;
}

// Operations of one format. Other operations of its launches are of other formats.
Figure of_one_format(const LaunchRow& row, u128 operations) {
  const Work& all = row.group.work;
  Work work;
  work.flop = operations;
  work.doubtful = all.doubtful;
  work.unmeasured = all.incomplete();
  work.varying = all.varying;
  return flop_of(work);
}

Figure flop_figure(const LaunchRow& row, const Report& report) {
  if (of_integers(row)) return {};
  const Figure flop =
      row.has(by::kFormat) ? of_one_format(row, row.group.work.flop) : flop_of(row.group.work);
  return flop.with(row.mark(report));
}

Figure operations_figure(const LaunchRow& row) {
  if (!of_integers(row)) return {};
  return of_one_format(row, row.group.flop.integer[row.id(by::kFormat) - kMaxPrecisions]);
}

// FLOP that were not measured may be of this format or of others.
Figure share_of_format(const LaunchRow& row, const Work& whole) {
  if (of_integers(row)) return {};
  const u128 flop = row.group.work.flop;
  const Figure share = Figure::exact(flop) / Figure::exact(whole.flop);
  if (whole.flop_complete()) return share;
  return share.with(Mark::kAtMost | mark_if(flop < whole.flop, Mark::kAtLeast));
}

Figure share_figure_of(const LaunchRow& row, const Report& report) {
  const Work whole = row.has(by::kPhase) ? whole_of_phase(report.phases[row.id(by::kPhase)], report)
                                         : report.total;
  const Figure share =
      row.has(by::kFormat) ? share_of_format(row, whole) : flop_share(row.group.work, whole);
  return share.with(row.mark(report));
}

// Of the interval; why there is none.
template <u128 Interval::*kEnd>
Figure end_of_interval(const LaunchRow& row) {
  const Work& work = row.group.work;
  if (const auto interval = work.interval()) return Figure::exact((*interval).*kEnd);
  if (work.varying == 0) return {};
  return Figure::unknown(work.uncertainty.elsewhere_launches() > 0 ? "not sampled everywhere"
                                                                   : "too few samples");
}

Figure reach_share(const LaunchRow& row) {
  const Work& work = row.group.work;
  const auto interval = work.interval();
  if (!interval) return {};
  return share_figure(std::max(interval->high - work.flop, work.flop - interval->low), work.flop);
}

std::string slowest_of(const LaunchRow& row, const Report& report) {
  return slowest_precision(row.group.flop, report.precisions, report.utilization.devices);
}

}  // namespace

void add_name(Columns<LaunchRow>& c, const WorkKey& key) {
  c.text(
      key.column, key.heading,
      [&key](const LaunchRow& row, const Report& report) { return row.name(key, report); },
      key.meaning);
}
void flop(Columns<LaunchRow>& c) { c.figure(said::kFlop, flop_figure); }
void flop_exact(Columns<LaunchRow>& c) {
  flop(c);
  c.main().and_exact();
}
void share(Columns<LaunchRow>& c) { c.figure(said::kFlopShare, share_figure_of); }
void operations(Columns<LaunchRow>& c) { c.figure(said::kOperations, operations_figure); }
void operations_exact(Columns<LaunchRow>& c) {
  operations(c);
  c.main().and_exact("op_exact");
}
void count(Columns<LaunchRow>& c) { add_launches(c, kWork); }
void count_share(Columns<LaunchRow>& c) {
  c.figure("launches_share", "of launches", Kind::kShare,
           [](const LaunchRow& row, const Report& report) {
             return share_figure(row.group.work.launches, report.total.launches);
           });
}
void how_counted(Columns<LaunchRow>& c) {
  c.count(
      "exact_launches", "exact",
      [](const LaunchRow& row) {
        const Work& work = row.group.work;
        return work.launches - std::min(work.launches, work.unmeasured + work.varying);
      },
      "launches with a FLOP count that is no estimate");
  add_varying(c, kWork);
  unmeasured(c);
}
void unmeasured(Columns<LaunchRow>& c) {
  c.count(said::kUnmeasured, through(kWork, &Work::unmeasured));
}
void gpu_time(Columns<LaunchRow>& c) { add_gpu_time(c, kWork); }
void gpu_time_share(Columns<LaunchRow>& c) {
  c.figure(said::headed(said::kGpuTimeShare, "of GPU time"),
           [](const LaunchRow& row, const Report& report) {
             const GpuTime &own = row.group.work.time, &all = report.total.time;
             const bool own_bound = own.unknown > 0 || own.windowed > 0;
             const bool all_exact = all.unknown == 0 && all.windowed == 0 && all.estimated == 0;
             // Times that are not known in both move the share either way.
             const bool at_most = all.unknown > 0 && all.windowed == 0 && all.estimated == 0;
             const Figure share = time_share(row.group.work, report.total);
             if (all_exact || !share.known() || share.number() == 0.0) return share;
             return share.with(mark_if(at_most && !own_bound, Mark::kAtMost) |
                               mark_if(!at_most || own_bound, Mark::kEstimate));
           });
}
void each(Columns<LaunchRow>& c) {
  c.figure(said::kEach, [](const LaunchRow& row) { return gpu_time_each(row.group.work); });
}
void rate(Columns<LaunchRow>& c) {
  c.figure(said::headed(said::kRate, "rate"), [](const LaunchRow& row, const Report& report) {
     return rate_of(row.group.work).with(row.mark(report));
   }).dash();
}
void utilization(Columns<LaunchRow>& c) {
  c.figure(said::kUtilization, [](const LaunchRow& row, const Report& report) {
     return utilization_of(row.group.work).with(row.mark(report));
   }).dash(kAbovePeak);
}
void roof_share(Columns<LaunchRow>& c) { add_share_of_roof(c, kWork); }
void rates(Columns<LaunchRow>& c) {
  rate(c);
  utilization(c);
  roof_share(c);
}
void intensity(Columns<LaunchRow>& c) {
  c.figure(said::kIntensity, [](const LaunchRow& row) {
     return intensity_of(row.group.work);
   }).dash();
}
void bandwidth(Columns<LaunchRow>& c) {
  c.figure(said::kBandwidth, [](const LaunchRow& row) {
     return bandwidth_of(row.group.work);
   }).dash();
}
void dram_bytes(Columns<LaunchRow>& c) {
  c.figure(said::kDramBytes, [](const LaunchRow& row) { return dram_bytes_of(row.group.work); });
}
void bound_by(Columns<LaunchRow>& c) {
  c.text(said::kBoundBy, [](const LaunchRow& row, const Report& report) {
    return reduce::bound_by(row.group.work, slowest_of(row, report));
  });
}
void nearer_roof(Columns<LaunchRow>& c) {
  c.text(said::kNearerRoof, [](const LaunchRow& row, const Report& report) {
    return reduce::nearer_roof(row.group.work, slowest_of(row, report));
  });
}
void roofs(Columns<LaunchRow>& c) {
  intensity(c);
  bandwidth(c);
  dram_bytes(c);
  bound_by(c);
  nearer_roof(c);
  roof_share(c);
}
void interval(Columns<LaunchRow>& c) {
  c.figure("flop_low", "at least", Kind::kFlop, end_of_interval<&Interval::low>,
           "lower end of the 95 % interval");
  c.figure("flop_high", "at most", Kind::kFlop, end_of_interval<&Interval::high>,
           "upper end of the 95 % interval");
  c.figure("flop_reach_share", "+-", Kind::kShare, reach_share,
           "the farther end's distance, as a share of the FLOP");
}
void details(Columns<LaunchRow>& c) { add_work_details(c, kWork, kMark); }

void kernel(Columns<LaunchRow>& c) {
  c.text("kernel", "kernel", of_common(by::kKernel, &Report::kernels, &KernelReport::name));
}
void chip(Columns<LaunchRow>& c) {
  c.text("chip", "chip", of_common(by::kChip, &Report::chips, std::identity()));
}
void phase(Columns<LaunchRow>& c) {
  c.text("phase", "phase", of_common(by::kPhase, &Report::phases, &PhaseReport::name),
         "null where the launches are of several");
}
void mangled(Columns<LaunchRow>& c) {
  c.text(said::kMangled, of_common(by::kKernel, &Report::kernels, &KernelReport::mangled));
}
void stable_hash(Columns<LaunchRow>& c) {
  c.text(said::kStableHash,
         of_common(by::kSignature, &Report::signatures,
                   [](const SignatureReport& s) { return hash_text(s.stable_hash); }));
}
void for_programs(Columns<LaunchRow>& c) { c.for_programs(); }

}  // namespace launches

bool LaunchRow::has(const WorkKey& key) const { return std::ranges::count(*keys, ByKey(key)) > 0; }

size_t LaunchRow::place(const WorkKey& key) const {
  return static_cast<size_t>(std::ranges::find(*keys, ByKey(key)) - keys->begin());
}

std::optional<std::string> LaunchRow::name(const WorkKey& key, const Report& report) const {
  return group.name(key, place(key), report);
}

Mark LaunchRow::mark(const Report& report) const {
  return has(by::kPhase) ? phase_mark(report.phases[id(by::kPhase)], report) : Mark::kNone;
}

}  // namespace flopinj::reduce
