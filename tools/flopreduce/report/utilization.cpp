#include "report/utilization.h"

#include <algorithm>
#include <set>

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

std::string incomplete(const Work& work) {
  std::string why = without_least_time(work);
  return why.empty() && work.time.unknown > 0 ? "GPU time unknown" : why;
}

// Each trace's wall time counts for every device that it launched on.
void add_wall(const Report& report, UtilizationReport& out) {
  if (report.simulated.value_or(false)) {
    out.wall_missing = "simulated GPU time and real wall time cannot be compared";
    return;
  }
  double wall = 0;
  for (const TraceReport& trace : report.traces) {
    if (trace.devices == 0) continue;
    if (!trace.wall_ns) {
      out.wall_missing = "a trace does not say how long it recorded";
      return;
    }
    wall += static_cast<double>(trace.devices) * static_cast<double>(*trace.wall_ns);
  }
  if (wall > 0)
    out.wall_ns = wall;
  else
    out.wall_missing = "no launches";
}

void add_busy(const Report& report, UtilizationReport& out) {
  if (report.time.complete && report.time.busy_ns) {
    out.busy_ns = static_cast<double>(*report.time.busy_ns);
    out.span_ns = *out.busy_ns + static_cast<double>(*report.time.idle_ns);
  } else {
    out.span_missing = "not every launch has a start and an end";
  }
  if (!report.simulated.value_or(false)) return;
  out.span_ns.reset();  // kernels of simulated length, gaps of real length
  out.span_missing = out.wall_missing;
}

// `flop` operations that take the mix of precisions of `mix`, over the time of `timed`. `no_flop`:
// why there are none, where there are none.
UtilizationMethod method(const char* name, std::string basis, std::optional<double> flop,
                         std::string no_flop, const Work& mix, const Work& timed,
                         bool whole_recording, const UtilizationReport& report) {
  UtilizationMethod m;
  m.name = name;
  m.flop_basis = std::move(basis);
  m.flop = flop;
  m.at_least = !mix.flop_complete();
  m.gpu_time_ns = static_cast<double>(timed.time.ns);
  std::string missing = flop ? without_least_time(mix) : std::move(no_flop);
  if (missing.empty() && !flop) missing = "FLOP not known";
  if (missing.empty() && timed.launches == 0) missing = "no launches";
  if (missing.empty() && mix.flop == 0)
    missing = mix.flop_complete() ? "no FLOP executed" : "launches without a FLOP count";
  if (!missing.empty()) {
    m.gpu_time.missing = m.busy.missing = m.span.missing = m.wall.missing = missing;
    return m;
  }
  const double least_ns = *flop / static_cast<double>(mix.flop) * mix.roof.compute_ns;
  m.least_ns = least_ns;
  if (timed.time.unknown > 0)
    m.gpu_time.missing = "GPU time unknown";
  else
    m.gpu_time = attained(least_ns, m.gpu_time_ns);
  if (!whole_recording)
    m.busy.missing = m.span.missing = "known only of the whole recording";
  else if (!report.busy_ns)
    m.busy.missing = "not every launch has a start and an end";
  else
    m.busy = attained(least_ns, *report.busy_ns);
  if (whole_recording && report.span_ns)
    m.span = attained(least_ns, *report.span_ns);
  else if (whole_recording)
    m.span.missing = report.span_missing;
  if (report.wall_ns)
    m.wall = attained(least_ns, *report.wall_ns);
  else
    m.wall.missing = report.wall_missing;
  return m;
}

std::optional<double> executed(const Work& work) {
  if (!work.flop_known() || work.launches == 0) return std::nullopt;
  return static_cast<double>(work.flop);
}

// Nothing for 0: no operator has a formula.
std::optional<double> known(u128 flop) {
  return flop > 0 ? std::optional(static_cast<double>(flop)) : std::nullopt;
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

constexpr const char* kAtLeast = ", at least: launches of other may have run forward";

// What operators with a formula hold of the work of some launches. Summed over places: one place of
// a function may have a formula where another has none.
struct Covered {
  u128 formula = 0;  // of them, as it counts for MFU
  u128 flop = 0;     // executed
  uint64_t unmeasured = 0;
  void add(const OperatorReport& place) {
    if (!place.formula_flop || place.cause.starts_with(kComplexNumbers)) return;
    add_saturating(formula, *place.model_flop);
    add_saturating(flop, place.work.flop);
    add_saturating(unmeasured, place.work.unmeasured);
  }
  bool all_of(const Work& work) const { return flop == work.flop && unmeasured == work.unmeasured; }
};

// "87 %": never 100 of what is not all.
std::string percent(u128 part, u128 whole) {
  const auto share = static_cast<int>(whole == 0 ? 0 : quotient(part, whole) * 100);
  return std::to_string(std::min(share, 99)) + " %";
}

// What of the executed FLOP the operators with a formula hold.
std::string coverage(const Report& report) {
  Covered covered;
  for (const auto& place : report.operators.places) covered.add(place);
  return covered.all_of(report.total) ? "all" : percent(covered.flop, report.total.flop);
}

}  // namespace

Attained attained(double least_ns, double time_ns) {
  Attained out;
  if (time_ns <= 0)
    out.missing = "no GPU time";
  else if (least_ns > time_ns)
    out.above_peak = true, out.missing = "above peak";
  else
    out.share = least_ns / time_ns;
  return out;
}

Attained utilization_of(const Work& work) {
  if (auto why = incomplete(work); !why.empty()) return {std::nullopt, std::move(why)};
  return attained(work.roof.compute_ns, static_cast<double>(work.time.ns));
}

Attained roofline_of(const Work& work) {
  if (auto why = incomplete(work); !why.empty()) return {std::nullopt, std::move(why)};
  if (work.roof.no_integer_peak > 0) return {std::nullopt, "no peak known of integer work"};
  if (work.roof.no_bytes > 0) return {std::nullopt, "DRAM bytes not measured"};
  if (work.roof.no_bandwidth > 0) return {std::nullopt, "no bandwidth known"};
  return attained(work.roof.ns, static_cast<double>(work.time.ns));
}

void build_utilization(const UtilizationOptions& options, Report& report) {
  UtilizationReport& out = report.utilization;
  for (const auto& device : out.devices) out.any_peak = out.any_peak || !device.peaks.empty();
  add_wall(report, out);
  add_busy(report, out);
  const Work forward = phases_named(report, {"forward"});
  const Work step = phases_named(report, {"forward", "loss", "recompute", "backward"});
  const auto add = [&](const char* name, std::string from, std::optional<double> flop,
                       const Work& mix, const Work& timed) {
    std::string no_flop = std::string_view(name) == "formula"
                              ? "no operator with a formula is named (PyTorch: "
                                "emit_nvtx(record_shapes=True)), and no --formula-flop is given"
                              : without_least_time(mix);
    out.methods.push_back(method(name, std::move(from), flop, std::move(no_flop), mix, timed,
                                 &timed == &report.total, out));
  };
  add("executed", "the whole recording", executed(report.total), report.total, report.total);
  // What the user says goes before what the operators' names say.
  const auto six_nd = flop_by_6nd(options, report);
  const auto given = options.formula_flop ? options.formula_flop : six_nd;
  const auto formula = given ? given : known(report.operators.formula_flop);
  std::string basis = "by operators' formulas";
  if (options.formula_flop)
    basis = "by formula as given";
  else if (six_nd)
    basis = "6 x parameters x tokens of " + std::to_string(report.steps.per_process) + " steps";
  else if (formula && report.total.flop > 0)
    basis += ", " + coverage(report) + " covered";
  const bool at_most = formula && !given && report.operators.formula_at_most;
  if (at_most) basis += ", at most: not every gradient is known";
  add("formula", std::move(basis), formula, report.total, report.total);
  out.methods.back().at_most = at_most;
  Covered covered;
  for (const auto& place : report.operators.places)
    if (place.phase == "forward") covered.add(place);
  auto theory = options.forward_flop;
  std::string forward_basis = "by formula";
  // A part says nothing of the whole.
  if (!theory && covered.all_of(forward)) theory = known(covered.formula);
  if (!theory) {
    theory = executed(forward);
    forward_basis = "as executed";
    if (covered.formula > 0)
      forward_basis += " (formulas cover " + percent(covered.flop, forward.flop) + ")";
  }
  if (theory) *theory *= 3;
  const bool at_least =
      !options.forward_flop && (report.unclear.flop > 0 || !report.unclear.flop_complete());
  if (at_least) forward_basis += kAtLeast;
  add("theory", "3 x forward " + forward_basis + ", forward and backward time", theory, forward,
      step);
  if (at_least && theory) out.methods.back().at_least = true;
  const bool single = options.batch_size && *options.batch_size == 1;
  add("one", "executed forward and backward, batch size 1",
      single ? executed(step) : std::optional<double>(), step, step);
  if (!single)
    for (UtilizationMethod& one = out.methods.back();
         Attained * a : {&one.gpu_time, &one.busy, &one.span, &one.wall})
      a->missing = "needs a recording with --batch-size 1";
  add("batch", "executed forward and backward, mean of all batches", executed(step), step, step);
  add("epoch", "executed, everything", executed(report.total), report.total, report.total);
}

}  // namespace flopinj::reduce
