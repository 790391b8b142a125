// The whole run in one row: what people ask for first, by short names. Programs and gates have the
// figures from here.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "sections/notices.h"
#include "sections/parts/terms.h"
#include "sections/parts/work_columns.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

// Of traces in which no launch can be read, the sum of none is no figure.
Work total_of(const Report& report) {
  Work total = report.total;
  if (report.partial && total.launches == 0) total.launches = total.unmeasured = 1;
  return total;
}

using Method = UtilizationMethod;
auto method_share(const Method* (UtilizationReport::*of)() const, Figure Method::*time) {
  return [of, time](const Report& r) {
    const Method* method = (r.utilization.*of)();
    return method == nullptr ? Figure() : method->*time;
  };
}

Figure backward_over_forward(const Report& r) {
  return r.ratio.ratio.known() ? r.ratio.ratio : Figure::unknown(ratio_missing(r));
}

Figure coverage_of(const Report& r) {
  const LedgerLine& all = r.ledger.total;
  if (all.launches == 0) return Figure::unknown("no launches");
  return Figure::exact(quotient(u128{all.measured} + all.extrapolated, all.launches));
}

Figure seconds_of_step(const Report& report) {
  const std::optional<Spread>& wall = report.steps.wall_ns;
  if (!wall) return Figure::unknown(report.steps.missing);
  return wall->of(&Spread::median) * 1e-9;
}

// Of all devices that launched. Of one that several processes share none knows it.
Figure energy_of(const Report& report) {
  Figure sum;
  bool first = true;
  for (const DeviceReport& device : report.devices) {
    if (device.ledger.launches == 0) continue;
    if (std::exchange(first, false))
      sum = device.energy_j;
    else
      sum += device.energy_j;
  }
  return sum;
}

// The number format with the most FLOP; none where there are no FLOP.
std::optional<std::string> main_precision(const Report& report) {
  const auto& flop = report.flop.by_precision;
  const auto most = std::max_element(flop.begin(), flop.end());
  if (most == flop.end() || *most == 0) return std::nullopt;
  return report.precisions[static_cast<size_t>(most - flop.begin())];
}

// Its peak, of the fastest device. Launches without a count may make another format the one.
Figure main_peak(const Report& report) {
  const auto precision = main_precision(report);
  double most = 0;
  for (const DevicePeaksReport& device : report.utilization.devices)
    for (const auto& peak : device.peaks)
      if (peak.precision == precision) most = std::max(most, peak.per_second);
  if (most == 0) return Figure::unknown("no peak known");
  return Figure::exact(most).with(mark_if(!report.total.flop_complete(), Mark::kEstimate));
}

Columns<Report> figure_columns() {
  Columns<Report> c;
  c.for_programs();
  c.flag("simulated", "simulated", &Report::simulated,
         "recorded on simgpu: no number was read on hardware; null where a header is lost");
  c.flag(said::kSimulatedClock, &Report::simulated_clock);
  c.flag(said::kPtxCounts, &Report::ptx_counts);
  c.flag("partial", "partial", &Report::partial,
         "something is missing from the traces: see damage");
  c.count("fma", "FLOP of an FMA", &Report::fma, "what one fused multiply-add counts: 1 or 2");
  c.count("launches", "launches", [](const Report& r) { return r.total.launches; });
  c.figure(said::kFlop, [](const Report& r) { return flop_of(total_of(r)).with(end_mark(r)); });
  c.figure(said::kGpuTime, [](const Report& r) { return gpu_time_of(r.total).with(end_mark(r)); });
  c.figure("hfu", "HFU", Kind::kShare, method_share(&UtilizationReport::hfu, &Method::wall),
           meaning_of_figure("HFU"));
  c.figure("mfu", "MFU", Kind::kShare, method_share(&UtilizationReport::mfu, &Method::wall),
           meaning_of_figure("MFU"))
      .range();
  c.figure(
      "hfu_kernel_time", "of peak in kernels", Kind::kShare,
      method_share(&UtilizationReport::hfu, &Method::gpu_time),
      "executed FLOP at peak / sum of the kernels' times: not HFU, since idle time is not in it");
  c.figure("ratio", "backward / forward", Kind::kRatio, backward_over_forward,
           meaning_of_figure("Backward/fwd"));
  c.figure(
      "matrix_ratio", "of matrix work", Kind::kRatio,
      through(&Report::ratio, &RatioReport::matrix_ratio),
      "the same of fused multiply-adds and tensor work only: compare it with what is expected");
  c.text(
       "verdict", "verdict", [](const Report& r) { return ratio_verdict(r.ratio); },
       "whether that is as expected: ratio.verdict")
      .names(kVerdictNames);
  c.figure("coverage", "coverage", Kind::kShare, coverage_of, meaning_of_figure("Coverage"));
  c.figure("counted_gpu_time_share", "of GPU time", Kind::kShare, counted_gpu_time_share,
           "share of the GPU time that is of launches with a FLOP count");
  c.figure("step_time", "step time", Kind::kRatio, seconds_of_step,
           "seconds of a training step, the median of steps; null where no range marks them");
  c.figure("tokens_per_s", "tokens/s", Kind::kRatio,
           through(&Report::steps, &StepsReport::tokens_per_s),
           "of all processes, with --tokens-per-step");
  c.figure("flop_per_token", "FLOP/token", Kind::kFlop,
           through(&Report::steps, &StepsReport::flop_per_token),
           "executed FLOP of a step of all processes / tokens of a step (--tokens-per-step)");
  c.figure(said::kEnergy, [](const Report& r) { return energy_of(r).with(end_mark(r)); });
  c.figure(
      "flop_per_j", "FLOP/J", Kind::kRatio,
      [](const Report& r) { return flop_of(total_of(r)) / energy_of(r); },
      "executed FLOP / joules of all GPUs");
  c.text("precision", "precision", main_precision,
         "the number format with the most FLOP that were counted");
  c.figure("peak_flop_per_s", "peak", Kind::kRate, main_peak,
           "peak of that format, of the fastest device; an estimate where launches have no count");
  c.figure("wall_device_ns", "wall", Kind::kNanoseconds,
           through(&Report::utilization, &UtilizationReport::wall_ns),
           "wall time of each recording x the devices that it launched on, summed");
  c.count(
      "processes", "processes", [](const Report& r) { return r.traces.size(); },
      "recorded processes");
  c.count("world_size", "ranks", through(&Report::ranks, &RanksReport::world_size),
          "ranks of the job; null where no launcher said it");
  c.count(
      "ranks_missing", "missing", [](const Report& r) { return r.ranks.missing.size(); },
      "ranks of the job, or else below the highest one, that no trace is of");
  c.figure(
      "formula_flop", "formula", Kind::kFlop,
      [](const Report& r) {
        return r.operators.model.flop_where_any().with(mark_if(!r.named.whole(), Mark::kAtLeast));
      },
      "what counts for MFU: of all operators with a formula in forward, loss and backward, without "
      "gradients that were not computed and what a mask leaves out");
  c.figure(
      "recompute_flop", "recompute", Kind::kFlop,
      [](const Report& r) {
        return flop_of(r.operators.recompute).with(mark_if(!r.named.whole(), Mark::kAtLeast));
      },
      "executed by operators in phase recompute");
  c.figure(said::kIntensity, [](const Report& r) { return intensity_of(r.total); });
  c.figure(said::kRate, [](const Report& r) { return rate_of(r.total); });
  c.figure(said::kBandwidth, [](const Report& r) { return bandwidth_of(r.total); });
  c.figure(said::kDramBytes, [](const Report& r) { return dram_bytes_of(r.total); });
  c.text(said::kNearerRoof, [](const Report& r) { return nearer_roof(r.total, "compute"); });
  c.text(said::kBoundBy, [](const Report& r) { return bound_by(r.total, "compute"); });
  add_share_of_roof(c, total_of);
  add_work_details(c, total_of, [](const Report& r, const Report&) { return end_mark(r); });
  return c;
}

const TableSource kFigureTable("figures", "the whole run in one row, by short names",
                               figure_columns,
                               [](const Report& report) { return std::span(&report, 1); });

Columns<std::string> notice_columns() {
  Columns<std::string> c;
  c.text(
      "notice", "notice", [](const std::string& notice) { return notice; },
      "what to know before any figure, most important first, with what to do");
  return c;
}

const TableSource kNoticeTable("notices", "what to know before any figure", notice_columns,
                               notices);

}  // namespace

const Subject kFigureRow = {{&kFigureTable, &kNoticeTable}};

}  // namespace flopinj::reduce
