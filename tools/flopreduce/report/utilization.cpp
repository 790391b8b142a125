#include "report/utilization.h"

#include <algorithm>
#include <limits>

#include "report/named_part.h"
#include "report/report.h"

namespace flopinj::reduce {
namespace {

// Launches of the phases a training step's FLOP estimate speaks of.
Work phases_named(const Report& report, std::initializer_list<std::string_view> names) {
  Work work;
  for (const auto& p : report.phases)
    if (std::find(names.begin(), names.end(), p.name) != names.end()) work.add(p.work);
  return work;
}

std::string without_least_time(const Work& work) {
  if (work.launches == 0) return "no launches";
  if (!work.flop_known()) return "FLOP not measured";
  if (work.roof.no_peak > 0) return "no peak known";
  return "";
}

// What takes `ns` at peak for all FLOP of `work`.
Figure least_time(const Work& work, double ns) {
  std::string why = without_least_time(work);
  return why.empty() ? Figure(ns, flop_mark(work)) : Figure::unknown(std::move(why));
}

// Of phases: where names were off some of their launches are not in `work`, nor their time.
bool of_a_part(const Work& work, const Report& report) {
  return &work != &report.total && !report.named.whole();
}

Figure time_of(const Work& work) {
  return work.time.unknown > 0 ? Figure::unknown("GPU time unknown") : gpu_time_of(work);
}

constexpr const char* kNoTimes = "not every launch has a start and an end";

// Each trace's wall time counts for every device that it launched on.
Figure wall_time(const Report& report) {
  if (report.clocks_differ())
    return Figure::unknown("simulated GPU time and real wall time cannot be compared");
  double wall = 0;
  for (const TraceReport& trace : report.traces) {
    if (trace.devices == 0) continue;
    if (!trace.wall_ns()) return Figure::unknown("a trace does not say how long it recorded");
    wall += static_cast<double>(trace.devices) * static_cast<double>(*trace.wall_ns());
  }
  return wall > 0 ? Figure::exact(wall) : Figure::unknown("no launches");
}

void add_times(Report& report) {
  UtilizationReport& out = report.utilization;
  out.wall_ns = wall_time(report);
  out.busy_ns = out.span_ns = Figure::unknown(kNoTimes);
  if (report.time.complete && report.time.busy_ns) {
    const auto busy = static_cast<double>(*report.time.busy_ns);
    out.busy_ns = Figure::exact(busy);
    out.span_ns = Figure::exact(busy + static_cast<double>(*report.time.idle_ns));
  }
  // Kernels of simulated length, gaps of real length.
  if (report.clocks_differ()) out.span_ns = out.wall_ns;
}

// The highest of all peaks of all devices; nothing where it is not known of one.
std::optional<double> fastest_per_ns(const Report& report) {
  double fastest = 0;
  for (const DevicePeaksReport& device : report.utilization.devices) {
    if (!device.fastest) return std::nullopt;
    fastest = std::max(fastest, *device.fastest * 1e-9);
  }
  return fastest > 0 ? std::optional(fastest) : std::nullopt;
}

// FLOP/ns of the precisions in a set.
struct PeakSpan {
  double slowest = std::numeric_limits<double>::infinity(), fastest = 0;
};
// Nothing where they are not known: of a device that is not in the table there may be others than
// the user gives.
std::optional<PeakSpan> peaks_of(const PrecisionSet& set, const Report& report) {
  PeakSpan span;
  for (const DevicePeaksReport& device : report.utilization.devices) {
    bool any = false;
    for (size_t i = 0; i < device.dense.size(); ++i) {
      if (!set.has(i)) continue;
      if (device.dense[i] <= 0 && device.row.empty()) return std::nullopt;
      if (device.dense[i] <= 0) continue;  // it does not run products in it
      any = true;
      span.slowest = std::min(span.slowest, device.dense[i] * 1e-9);
      span.fastest = std::max(span.fastest, device.dense[i] * 1e-9);
    }
    if (!any) return std::nullopt;
  }
  return span.fastest > 0 ? std::optional(span) : std::nullopt;
}

// What is known of the precisions of FLOP that no counter says.
struct PrecisionsSaid {
  double flop = 0;
  double of_several = 0;  // a set of precisions with different peaks
  double of_any = 0;      // nothing is known
  PrecisionSet one, several;

  // ", in tensor_tf32 by the kernels' names".
  std::string text() const {
    const auto part = [&](double some) {
      const double percent = std::min(100 * some / std::max(flop, 1.0), 100.0);
      return (percent < 1 ? "<1" : std::to_string(static_cast<int>(percent))) + " % of it ";
    };
    std::string text;
    if (!one.empty()) text += "; in " + one.text() + ", as the kernels' names say";
    if (of_several > 0) text += "; " + part(of_several) + "in " + several.text();
    if (of_any > 0)
      text += of_any >= flop ? "; at the fastest peak, since nothing says in which precision"
                             : "; " + part(of_any) + "at the fastest peak, in an unknown precision";
    return text;
  }
};

std::optional<AtPeak> flop_at_peak(double flop, const PrecisionSet& set, const Report& report,
                                   PrecisionsSaid& said) {
  said.flop += flop;
  if (const auto span = peaks_of(set, report)) {
    const bool same = span->slowest == span->fastest;
    if (!same) said.of_several += flop;
    (same ? said.one : said.several) |= set;
    return AtPeak{flop / span->fastest, flop / span->slowest};
  }
  said.of_any += flop;
  const auto fastest = fastest_per_ns(report);
  return fastest ? std::optional(AtPeak{flop / *fastest}) : std::nullopt;
}

// The same of FLOP of which it is not known which kernels did them: those whose names leave it open
// did at most what the fastest peak allows in their time.
std::optional<AtPeak> all_at_peak(double flop, const Report& report, PrecisionsSaid& said) {
  PrecisionSet known;
  u128 unknown_ns = 0;
  bool untimed = false;
  for (const WorkGroup& kernel : group(report, {by::kKernel})) {
    const KernelPrecisions its = precisions_of_kernel(report.kernels[kernel.ids[0]].mangled);
    if (!its.product) continue;
    known |= its.precisions;
    if (!its.precisions.empty()) continue;
    add_saturating(unknown_ns, kernel.work.time.ns);
    untimed = untimed || kernel.work.time.unknown > 0;
  }
  const auto fastest = fastest_per_ns(report);
  const bool rest = unknown_ns > 0 || untimed;
  if (rest && !fastest) return std::nullopt;
  double of_unknown = 0;
  if (rest)
    of_unknown = untimed ? flop : std::min(flop, static_cast<double>(unknown_ns) * *fastest);
  auto at_peak = flop_at_peak(flop - of_unknown, known, report, said);
  if (!at_peak || of_unknown <= 0) return at_peak;
  at_peak->least_ns += of_unknown / *fastest;
  at_peak->most_ns.reset();
  said.flop += of_unknown;
  said.of_any += of_unknown;
  return at_peak;
}

// Where both sides agree to the fourth digit it is known.
Figure bounded(const AtPeak& at_peak, Mark marks, bool complete) {
  constexpr double kAgree = 1 / 2000.0;
  const auto& most = at_peak.most_ns;
  if (most && *most - at_peak.least_ns <= *most * kAgree)
    return {(at_peak.least_ns + *most) / 2, marks};
  const Figure least(at_peak.least_ns, marks | Mark::kAtLeast);
  return most && complete ? least.no_more_than(*most) : least;
}

Figure no_bound() {
  return Figure::unknown(
      "launches without a FLOP count, and not all peaks of the device are known");
}

// That the peaks allow for what `work` executed.
Figure executed_least_ns(const Work& work) {
  const Figure least = least_time(work, work.roof.compute_ns);
  if (!least.known() || work.flop > 0) return least;
  return Figure::unknown(work.flop_complete() ? "no FLOP executed"
                                              : "launches without a FLOP count");
}

// That the peaks allow for `flop` operations in the mix of precisions of `mix`. Of a mix that is
// not known whole, or not at all, the names of kernels give bounds.
Figure least_time_of(const Figure& flop, const Work& mix, const Report& report,
                     PrecisionsSaid& said) {
  if (!flop.known()) return flop;
  const Figure whole = executed_least_ns(mix);
  if (!whole.known() && mix.flop_known()) return whole;
  if (mix.flop_complete())
    return (flop * (*whole.number() / static_cast<double>(mix.flop))).with(whole.marks());
  const auto at_peak = all_at_peak(*flop.number(), report, said);
  if (!at_peak) return no_bound();
  // A formula may have more than was executed, as of Winograd's algorithm.
  const Mark about = mark_if(said.of_any > 0 && said.of_any < said.flop, Mark::kEstimate);
  return bounded(*at_peak, flop.marks() | about, !flop.bound());
}

// `flop` operations that take `least_ns` at peak, over the time of `timed`.
UtilizationMethod method(const char* name, std::string basis, Figure flop, Figure least_ns,
                         const Work& timed, const Report& report) {
  const UtilizationReport& of = report.utilization;
  const bool whole = &timed == &report.total;
  UtilizationMethod m{name, std::move(basis), std::move(flop), std::move(least_ns), {}, {}, {}, {},
                      {}};
  const Mark unnamed = mark_if(of_a_part(timed, report), Mark::kAtLeast);
  if (timed.time.ns > 0) m.gpu_time_ns = gpu_time_of(timed).with(unnamed);
  m.gpu_time = share_of_peak(m.least_ns, time_of(timed)).with(inverse(unnamed));
  // These times hold launches that were slowed while counters were read.
  const auto recorded = [&](const Figure& time_ns, bool slowed) {
    return share_of_peak(m.least_ns, time_ns.with(mark_if(slowed, Mark::kAtMost)));
  };
  const bool windowed = report.total.time.windowed > 0;
  const bool slowed = windowed || report.time.kernel_ns > report.total.time.ns;
  const Figure part = Figure::unknown("known only of the whole recording");
  m.busy = recorded(whole ? of.busy_ns : part, slowed);
  m.span = recorded(whole ? of.span_ns : part, slowed);
  m.wall = recorded(of.wall_ns, windowed);
  return m;
}

Figure executed(const Work& work) {
  if (work.launches == 0) return Figure::unknown("no launches");
  return work.flop_known() ? flop_of(work) : Figure::unknown("FLOP not measured");
}

// Forward and backward of a transformer: 6 FLOP, three multiply-adds, for each parameter and token
// (Kaplan et al., Scaling Laws for Neural Language Models, 2020, section 2.1). Nothing where it is
// not asked for.
std::optional<double> flop_by_6nd(const UtilizationOptions& options, const Report& report) {
  if (!options.parameters || !options.tokens_per_step || report.steps.per_process == 0)
    return std::nullopt;
  return in_convention(6, report.fma) * *options.parameters * *options.tokens_per_step *
         static_cast<double>(report.steps.per_process);
}

// Executed FLOP at peak / (wall time x devices).
Figure hfu_of(const Report& report, const TraceReport& trace) {
  if (report.clocks_differ()) return report.utilization.wall_ns;  // why not
  const Roof& roof = trace.work.roof;
  if (roof.no_peak > 0) return Figure::unknown("no peak known");
  if (roof.compute_ns <= 0) return Figure::unknown("no FLOP executed");
  const Figure least(roof.compute_ns, flop_of(trace.work).marks());
  return share_of_peak(least, Figure::exact(trace.wall_ns()) * static_cast<double>(trace.devices));
}

std::optional<AtPeak> place_at_peak(const OperatorReport& place, const Report& report,
                                    PrecisionsSaid& said) {
  const double flop = *place.model.flop().number();
  const Work& mix = place.work.flop > 0 ? place.work : report.total;
  if (place.work.flop_complete() && mix.flop_complete()) {
    const double ns = flop * mix.roof.compute_ns / static_cast<double>(std::max<u128>(1, mix.flop));
    return AtPeak{ns, ns};
  }
  auto at_peak = flop_at_peak(flop, place.precisions, report, said);
  // What perhaps was not needed is in no lower bound, which is all that there is without counts.
  if (at_peak && !report.total.flop_known() && has(place.model.marks(), Mark::kAtMost))
    at_peak->least_ns = 0;
  return at_peak;
}

// What the FLOP of operators' formulas take at peak.
Figure formula_least_ns(const Report& report, PrecisionsSaid& said) {
  const Figure whole = executed_least_ns(report.total);
  if (!whole.known() && report.total.flop_known()) return whole;
  AtPeak all{0, 0.0};
  Work executed;  // by operators that are counted whole: their FLOP have the precisions of these
  for (const OperatorReport& place : report.operators.places) {
    if (!place.of_model) continue;
    const auto its = place_at_peak(place, report, said);
    if (!its) return no_bound();
    all.least_ns += its->least_ns;
    if (all.most_ns && its->most_ns)
      *all.most_ns += *its->most_ns;
    else
      all.most_ns.reset();
    if (place.work.flop_complete()) executed.add(place.work);
  }
  const ModelFlop& model = report.operators.model;
  const bool lacks = model.lacks_some() || !report.named.whole();
  const bool counted = report.total.flop_known();
  const Mark marks = counted ? model.marks() | flop_mark(executed)
                             : mark_if(lacks, Mark::kAtLeast) |
                                   mark_if(has(model.marks(), Mark::kEstimate), Mark::kEstimate);
  const Figure least = bounded(all, marks, !lacks);
  return counted ? (least * report.named.scale).with(report.named.mark()) : least;
}

// Of GPU time, where no FLOP say how much formulas cover: "in 63 % of the GPU time of kernels that
// count for the model".
std::string covered_time(const Report& report) {
  u128 all = 0, covered = 0;
  for (const PhaseReport& phase : report.phases)
    if (phase.name != "recompute" && phase.name != "optimizer" && phase.name != "communication")
      add_saturating(all, phase.work.time.ns);
  for (const OperatorReport& place : report.operators.places)
    if (place.of_model) add_saturating(covered, place.work.time.ns);
  // Never 100 of what is not all.
  const int percent =
      covered >= all ? 100 : std::min(99, static_cast<int>(quotient(covered, all) * 100));
  return "in " + std::to_string(percent) + " % of the GPU time of kernels that count for the model";
}

}  // namespace

std::string model_coverage(const Report& report) {
  return report.total.flop_known() ? report.operators.model.coverage() : covered_time(report);
}

std::string how_to_name_operators(const Report& report) {
  const auto all_by = [&](std::string_view profiler) {
    return !report.traces.empty() && std::ranges::all_of(report.traces, [&](const TraceReport& t) {
      return t.header.imported_from() == profiler;
    });
  };
  if (all_by("torch.profiler")) return "torch.profiler with record_shapes=True";
  if (all_by("Nsight Systems")) return "emit_nvtx(record_shapes=True)";
  if (all_by("Nsight Compute")) return "ncu --nvtx and emit_nvtx(record_shapes=True)";
  return "flopinj run --torch";
}

namespace {

// What the user says goes before what the operators' names say.
void add_formula(const UtilizationOptions& options, Report& report) {
  const OperatorsReport& operators = report.operators;
  Figure flop = Figure::unknown(
      "no operator with a formula is named (PyTorch: " + how_to_name_operators(report) +
      "), and no --formula-flop is given");
  std::string basis = "by operators' formulas";
  bool given = true;
  if (options.formula_flop) {
    flop = Figure::exact(*options.formula_flop);
    basis = "by formula as given";
  } else if (const auto six_nd = flop_by_6nd(options, report)) {
    flop = Figure::exact(*six_nd);
    basis = "6 x parameters x tokens of " + std::to_string(report.steps.per_process) + " steps";
  } else if (given = false; operators.model.flop_where_any().known()) {
    flop = operators.model.flop();
    basis += ", " + model_coverage(report);
    if (has(flop.marks(), Mark::kAtMost))
      basis += report.total.flop_known() ? ", at most: not every gradient is known"
                                         : ", MFU without what perhaps was not needed";
    if (has(flop.marks(), Mark::kEstimate))
      basis += ", about: of attention half, or of products what was executed, and no name says it";
    if (!report.named.whole()) {
      flop = (flop * report.named.scale).with(report.named.mark());
      basis += ", of " + names_text(report);
    }
  }
  UtilizationReport& out = report.utilization;
  PrecisionsSaid said;
  Figure least_ns = given || !flop.known() ? least_time_of(flop, report.total, report, said)
                                           : formula_least_ns(report, said);
  if (flop.known() && !report.total.flop_known()) basis += said.text();
  out.model_known = flop.known() && (least_ns.known() || report.total.flop_complete());
  if (given) out.given_formula_ns = least_ns.number();
  out.methods.push_back(method("formula", std::move(basis), std::move(flop), std::move(least_ns),
                               report.total, report));
}

// Three times forward, by the best that is known of it.
void add_theory(const UtilizationOptions& options, const Work& step, Report& report) {
  const Work forward = phases_named(report, {"forward"});
  const ModelFlop& model = report.operators.forward_model;
  std::string basis = "3 x forward by formula";
  Figure flop, least_ns;
  const auto by_formula = [&](Figure given) {
    flop = std::move(given);
    PrecisionsSaid said;
    least_ns = least_time_of(flop, forward, report, said);
  };
  if (options.forward_flop) {
    by_formula(Figure::exact(*options.forward_flop));
  } else if (model.known() && model.has_all()) {  // a part says nothing of the whole
    by_formula(model.flop());
  } else {
    flop = executed(forward);
    least_ns = flop.known() ? executed_least_ns(forward) : flop;
    basis = "3 x forward as executed";
    if (model.known()) {  // executed FLOP have padding, and what a mask leaves out
      basis += " (" + model.coverage() + " by formulas)";
      flop = flop.with(Mark::kEstimate);
      least_ns = least_ns.with(Mark::kEstimate);
    }
  }
  if (!options.forward_flop && (report.part(PhasePart::kUnclear).flop > 0 ||
                                !report.part(PhasePart::kUnclear).flop_complete())) {
    flop = flop.with(Mark::kAtLeast);
    least_ns = least_ns.with(Mark::kAtLeast);
    basis += ", at least: launches of other may have run forward";
  }
  if (!report.named.whole()) {
    flop = flop.with(Mark::kAtLeast);
    least_ns = least_ns.with(Mark::kAtLeast);
  }
  report.utilization.methods.push_back(method("theory", basis + ", forward and backward time",
                                              flop * 3, least_ns * 3, step, report));
}

}  // namespace

Figure share_of_peak(const Figure& least_ns, const Figure& time_ns) {
  if (!least_ns.known()) return least_ns;
  if (!time_ns.known()) return time_ns;
  if (*time_ns.number() <= 0) return Figure::unknown("no GPU time");
  const double share = *least_ns.number() / *time_ns.number();
  if (share > 1) return Figure::unknown(kAbovePeak);
  const Mark of_time = share > 0 ? over_time_mark(time_ns.marks()) : Mark::kNone;
  Figure out(share, least_ns.marks());
  if (const auto& most = least_ns.most())  // nothing is above peak
    out = out.no_more_than(std::min(1.0, *most / *time_ns.number()));
  return of_time == Mark::kNone ? out : out.with(of_time);
}

std::string slowest_precision(const Flop& flop, const std::vector<std::string>& precisions,
                              const std::vector<DevicePeaksReport>& devices) {
  std::string slowest;
  double longest = 0;
  const auto look = [&](std::span<const u128> work, auto names,
                        const std::vector<PeakUsed>& peaks) {
    for (const PeakUsed& used : peaks) {
      const auto at = static_cast<size_t>(std::ranges::find(names, used.precision) - names.begin());
      const double per_ns = used.per_second * 1e-9;
      const double ns = per_ns > 0 ? static_cast<double>(work[at]) / per_ns : 0;
      if (ns <= longest) continue;
      longest = ns;
      slowest = used.precision;
    }
  };
  for (const DevicePeaksReport& device : devices) {
    look(flop.by_precision, std::span(precisions), device.peaks);
    look(flop.integer, std::span(kIntegerFormats), device.integer_peaks);
  }
  return slowest;
}

bool above_peak(const Figure& share) { return !share.known() && share.why() == kAbovePeak; }

bool UtilizationMethod::above_peak() const {
  const auto above = [](const Figure& share) { return reduce::above_peak(share); };
  return above(gpu_time) || above(busy) || above(span) || above(wall);
}

Figure utilization_of(const Work& work) {
  return share_of_peak(least_time(work, work.roof.compute_ns), time_of(work));
}

Figure least_ns_or_formula(const Work& work, const Report& report) {
  const ByFormula& by_formula = work.by_formula;
  if (by_formula.launches == 0 || work.roof.no_peak > 0)
    return least_time(work, work.roof.compute_ns);
  PrecisionsSaid said;
  AtPeak all{work.roof.compute_ns, work.roof.compute_ns};
  double slowest_least = 0;  // ns of a FLOP, of those in `all.least_ns`
  const auto add = [&](u128 flop, const PrecisionSet& precisions) {
    if (flop == 0) return true;
    const auto its = flop_at_peak(static_cast<double>(flop), precisions, report, said);
    if (!its) return false;
    slowest_least = std::max(slowest_least, its->least_ns / static_cast<double>(flop));
    all.least_ns += its->least_ns;
    all.most_ns =
        all.most_ns && its->most_ns ? std::optional(*all.most_ns + *its->most_ns) : std::nullopt;
    return true;
  };
  if (!add(by_formula.flop - by_formula.open, by_formula.precisions) || !add(by_formula.open, {}))
    return no_bound();
  all.least_ns = std::max(work.roof.compute_ns,
                          all.least_ns - static_cast<double>(by_formula.perhaps) * slowest_least);
  const bool complete = by_formula.launches >= work.incomplete();
  return bounded(all, Mark::kEstimate | mark_if(!complete, Mark::kAtLeast), complete);
}

Figure utilization_or_formula(const Work& work, const Report& report) {
  return share_of_peak(least_ns_or_formula(work, report), time_of(work));
}

std::optional<AtPeak> model_at_peak(const OperatorReport& place, const Report& report) {
  PrecisionsSaid said;
  return place_at_peak(place, report, said);
}

Figure roofline_of(const Work& work) {
  const Figure least = least_time(work, work.roof.ns), time = time_of(work);
  if (least.known() && time.known()) {
    if (work.roof.no_integer_peak > 0) return Figure::unknown("no peak known of integer work");
    if (work.roof.no_bytes > 0) return Figure::unknown("DRAM bytes not measured");
    if (work.roof.no_bandwidth > 0) return Figure::unknown("no bandwidth known");
  }
  return share_of_peak(least, time);
}

void build_utilization(const UtilizationOptions& options, Report& report) {
  UtilizationReport& out = report.utilization;
  for (const auto& device : out.devices) out.any_peak = out.any_peak || !device.peaks.empty();
  add_times(report);
  const Work step = phases_named(report, {"forward", "loss", "recompute", "backward"});
  const auto add = [&](const char* name, const char* basis, Figure flop, const Work& work) {
    Figure least_ns = flop.known() ? executed_least_ns(work) : flop;
    // Over the wall time of all.
    if (&work == &step && !report.named.whole()) {
      flop = flop.with(Mark::kAtLeast);
      least_ns = least_ns.with(Mark::kAtLeast);
    }
    out.methods.push_back(method(name, basis, std::move(flop), std::move(least_ns), work, report));
  };
  add("executed", "the whole recording", executed(report.total), report.total);
  add_formula(options, report);
  add_theory(options, step, report);
  add("one", "executed forward and backward, batch size 1",
      options.batch_size && *options.batch_size == 1
          ? executed(step)
          : Figure::unknown("needs a recording with --batch-size 1"),
      step);
  add("batch", "executed forward and backward, mean of all batches", executed(step), step);
  add("epoch", "executed, everything", executed(report.total), report.total);
  for (TraceReport& trace : report.traces) trace.hfu = hfu_of(report, trace);
}

}  // namespace flopinj::reduce
