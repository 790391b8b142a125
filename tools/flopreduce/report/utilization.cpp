#include "report/utilization.h"

#include <algorithm>

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
// not known whole, or not at all, the fastest peak gives a lower bound.
Figure least_time_of(const Figure& flop, const Work& mix, const Report& report) {
  if (!flop.known()) return flop;
  const Figure whole = executed_least_ns(mix);
  if (!whole.known() && mix.flop_known()) return whole;
  if (mix.flop_complete())
    return (flop * (*whole.number() / static_cast<double>(mix.flop))).with(whole.marks());
  const auto fastest = fastest_per_ns(report);
  return fastest ? (flop * (1 / *fastest)).with(Mark::kAtLeast) : no_bound();
}

// `flop` operations that take `least_ns` at peak, over the time of `timed`.
UtilizationMethod method(const char* name, std::string basis, Figure flop, Figure least_ns,
                         const Work& timed, const Report& report) {
  const UtilizationReport& of = report.utilization;
  const bool whole = &timed == &report.total;
  UtilizationMethod m{name, std::move(basis), std::move(flop), std::move(least_ns), {}, {}, {}, {},
                      {}};
  if (timed.time.ns > 0) m.gpu_time_ns = gpu_time_of(timed);
  m.gpu_time = share_of_peak(m.least_ns, time_of(timed));
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

// What the FLOP of operators' formulas take at peak.
Figure formula_least_ns(const Report& report) {
  const Figure whole = executed_least_ns(report.total);
  if (!whole.known() && report.total.flop_known()) return whole;
  double ns = 0;
  Work executed;  // by these operators: it has the precisions that their FLOP are dealt out to
  for (const OperatorReport& place : report.operators.places) {
    if (!place.of_model) continue;
    const auto its = model_least_ns(place, report);
    if (!its) return no_bound();
    ns += *its;
    executed.add(place.work);
  }
  const Mark marks = report.operators.model.marks();
  if (!report.total.flop_known())
    return {ns, Mark::kAtLeast | mark_if(has(marks, Mark::kEstimate), Mark::kEstimate)};
  return {ns * report.named.scale, marks | flop_mark(executed) | report.named.mark()};
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

// What the user says goes before what the operators' names say.
void add_formula(const UtilizationOptions& options, Report& report) {
  const OperatorsReport& operators = report.operators;
  Figure flop = Figure::unknown(
      "no operator with a formula is named (PyTorch: flopinj run --torch), and no --formula-flop "
      "is given");
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
    basis += ", " + (report.total.flop_known() ? operators.model.coverage() : covered_time(report));
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
  Figure least_ns =
      given || !flop.known() ? least_time_of(flop, report.total, report) : formula_least_ns(report);
  if (flop.known() && !report.total.flop_known())
    basis += "; at the fastest peak, since no counter says in which precision";
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
    least_ns = least_time_of(flop, forward, report);
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
  if (!options.forward_flop && (report.unclear.flop > 0 || !report.unclear.flop_complete())) {
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
  return {share, least_ns.marks() | of_time};
}

bool above_peak(const Figure& share) { return !share.known() && share.why() == kAbovePeak; }

bool UtilizationMethod::above_peak() const {
  const auto above = [](const Figure& share) { return reduce::above_peak(share); };
  return above(gpu_time) || above(busy) || above(span) || above(wall);
}

Figure utilization_of(const Work& work) {
  return share_of_peak(least_time(work, work.roof.compute_ns), time_of(work));
}

std::optional<double> model_least_ns(const OperatorReport& place, const Report& report) {
  // What perhaps was not needed is in no lower bound, which is all that there is without counts.
  if (!report.total.flop_known() && has(place.model.marks(), Mark::kAtMost)) return 0;
  const double flop = *place.model.flop().number();
  const Work& mix = place.work.flop > 0 ? place.work : report.total;
  if (place.work.flop_complete() && mix.flop_complete())
    return flop * mix.roof.compute_ns / static_cast<double>(std::max<u128>(1, mix.flop));
  const auto fastest = fastest_per_ns(report);
  return fastest ? std::optional(flop / *fastest) : std::nullopt;
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
