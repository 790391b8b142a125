#include "report/steps.h"

#include <own_steps.h>

#include <algorithm>

#include "report/report.h"
#include "support/median.h"
#include "support/text.h"
#include "tables/totals.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {
namespace {

// Ranges that hold less of the FLOP are no training steps: an optimizer's "step", for instance.
constexpr double kLeastShare = 0.1;

constexpr const char* kOnlySums =
    "needs each step: traces of level launches, or summaries that have all of them";
constexpr const char* kNotSkipped = "needs each step: traces of level launches, and no summaries";
constexpr const char* kNoSteps =
    "no NVTX range marks steps: name one 'step', or record with --step-range NAME";

// Of the steps that are not skipped, by what get() says of them.
template <typename Get>
std::optional<Spread> spread_of(const std::vector<StepsReport::Step>& steps, Get&& get) {
  std::vector<double> values;
  Spread spread;
  for (const StepsReport::Step& step : steps) {
    if (step.skipped) continue;
    const double value = get(step);
    spread.min = values.empty() ? value : std::min(spread.min, value);
    spread.max = values.empty() ? value : std::max(spread.max, value);
    spread.mean += value;
    values.push_back(value);
  }
  if (values.empty()) return std::nullopt;
  spread.mean /= static_cast<double>(values.size());
  spread.median = median(values);
  return spread;
}

// "step" for "step 17": trailing numbers are not of the name.
std::string range_name(const TraceState& trace, const TraceTables& tables) {
  const uint32_t path = trace.steps.sums().path;
  const uint32_t index = trace.paths.get(path);
  if (path == 0 || index == kNoIndex) return "";
  std::string name = tables.range_label(index);
  if (name == kOwnStepWithoutNames) return std::string(kOwnStep);
  const size_t last = name.find_last_not_of(" 0123456789#_-:=/.[]()");
  return last == name.npos ? name : name.substr(0, last + 1);
}

void add_sums(const StepSums& sums, std::optional<Spread>& wall, StepSums& all) {
  StepSums both = all;
  if (both.steps == 0) {
    both = sums;
  } else {
    both.steps += sums.steps;
    add_saturating(both.total_ns, sums.total_ns);
    both.min_ns = std::min(both.min_ns, sums.min_ns);
    both.max_ns = std::max(both.max_ns, sums.max_ns);
    for (const auto& [bucket, count] : sums.buckets) both.buckets[bucket] += count;
  }
  all = std::move(both);
  const bool about = !sums.kernels_timed || (wall && wall->about);
  wall = Spread{static_cast<double>(all.min_ns),
                all.median_ns(),
                static_cast<double>(all.total_ns) / static_cast<double>(all.steps),
                static_cast<double>(all.max_ns),
                true,
                about};
}

// Steps one by one, and from when to when those are that count. `all_ns`: how long all of them
// took, where the spans do not say it.
void list_steps(size_t trace, const StepSpans& spans, uint64_t skip, double devices,
                std::optional<uint64_t> all_ns, StepsReport& out) {
  StepsReport::Window window{0, 0, UINT32_MAX, 0};
  StepWindow kept;
  uint64_t seen = 0;
  for (const auto& [number, span] : spans) {
    const bool skipped = seen++ < skip;
    if (!skipped) {
      window.first = std::min(window.first, number);
      window.last = std::max(window.last, number);
      kept.add(span);
      out.window_about = out.window_about || span.about;
    }
    out.steps.push_back({trace,
                         number,
                         span.times.start_ns,
                         span.times.duration_ns,
                         span.about || skipped,
                         skipped,
                         {}});
  }
  if (kept.length_ns() == 0) return;
  window.from_ns = kept.from_ns;
  window.to_ns = kept.to_ns;
  if (skip > 0) out.windows[trace] = window;
  const auto ns = static_cast<double>(all_ns.value_or(kept.length_ns()));
  out.window_ns = std::max(out.window_ns, ns);
  out.device_window_ns += ns * devices;
}

void add_outliers(StepsReport& out) {
  constexpr size_t kMostOutliers = 1000;
  if (!out.wall_ns) return;
  for (size_t i = 0; i < out.steps.size(); ++i)
    if (!out.steps[i].skipped &&
        static_cast<double>(out.steps[i].wall_ns) > kOutlier * out.wall_ns->median)
      out.outliers.push_back(i);
  std::ranges::stable_sort(out.outliers, std::greater<>(),
                           [&](size_t i) { return out.steps[i].wall_ns; });
  if (out.outliers.size() > kMostOutliers) out.outliers.resize(kMostOutliers);
}

// Of all FLOP that were executed in these steps.
Figure least_time(const StepWork& kept, const Report& report) {
  if (kept.launches == 0) return Figure::unknown("no launches");
  if (kept.unmeasured == kept.launches) return Figure::unknown("FLOP not measured");
  if (kept.no_peak > 0) return Figure::unknown("no peak known");
  return {static_cast<double>(kept.least_fs) / 1e6,
          mark_if(!kept.flop_complete(), Mark::kAtLeast) |
              mark_if(report.total.flop_at_most(), Mark::kAtMost) |
              mark_if(kept.estimated > 0, Mark::kEstimate)};
}

// Of the model's FLOP in these steps: 6ND for each, or by the operators' formulas. Where one number
// is given for the run, they have the part of it that they have of its work.
Figure model_least_time(const UtilizationOptions& options, const StepWork& kept,
                        const Report& report) {
  const UtilizationReport& u = report.utilization;
  if (u.mfu() == nullptr || !u.mfu()->flop.known())
    return Figure::unknown(
        "needs --parameters and --tokens-per-step (6ND), which say it of each step");
  const Figure& all = u.mfu()->least_ns;
  if (!all.known()) return all;
  if (kept.no_peak > 0) return Figure::unknown("no peak known");
  if (options.parameters && options.tokens_per_step && !options.formula_flop) return all;
  if (u.given_formula_ns && kept.unmeasured == kept.launches)
    return Figure::unknown(
        "one formula for the run, and no FLOP counts that it could be shared by");
  const bool shared_out = u.given_formula_ns && !report.total.flop_complete();
  const Figure least(static_cast<double>(kept.model_fs) / 1e6,
                     all.marks() | mark_if(shared_out, Mark::kEstimate));
  if (!all.most() || kept.model_open > 0) return least;
  const double most = u.given_formula_ns ? *least.number() * *all.most() / *all.number()
                                         : static_cast<double>(kept.model_most_fs) / 1e6;
  return least.no_more_than(most);
}

void add_utilization(const UtilizationOptions& options, const StepWork& kept, Report& report) {
  StepsReport& steps = report.steps;
  const Figure time = report.clocks_differ() ? report.utilization.wall_ns  // why not
                                             : Figure(steps.device_window_ns,
                                                      mark_if(steps.window_about, Mark::kEstimate));
  const auto over_time = [&](const Figure& least_ns) {
    return time.known() ? share_of_peak(least_ns, time) : time;
  };
  steps.hfu = over_time(least_time(kept, report));
  steps.mfu = over_time(model_least_time(options, kept, report));
  steps.saved_ns = static_cast<double>(kept.saved_fs) / 1e6;
}

// A first step that executes more than the others, as where libraries try their kernels: what is
// expected of a training does not hold for it. Each process by itself: its steps come together.
void judge_without_warm_up(Report& report) {
  constexpr double kAsOthers = 1 + kRatioTolerance;
  const std::vector<StepsReport::Step>& steps = report.steps.steps;
  double most = 0;
  for (size_t i = 0; i < steps.size();) {
    std::vector<double> others;
    size_t next = i + 1;
    for (; next < steps.size() && steps[next].trace == steps[i].trace; ++next)
      others.push_back(static_cast<double>(steps[next].work.flop));
    if (!others.empty() && !steps[i].skipped && steps[i].work.unmeasured == 0)
      if (const double each = median(others); each > 0)
        most = std::max(most, static_cast<double>(steps[i].work.flop) / each);
    i = next;
  }
  if (most > kAsOthers && report.ratio.verdict == RatioVerdict::kOutside)
    report.ratio.leave_undecided("the first step executed " +
                                 std::to_string(static_cast<int>(100 * (most - 1))) +
                                 " % more FLOP than a later one (autotuning?): --skip-steps 1");
}

// Where nothing is said of steps, for the same reason nothing of their shares of peak.
void set_missing(StepsReport& steps, std::string why) {
  steps.missing = why;
  steps.hfu = steps.mfu = Figure::unknown(std::move(why));
}

// Of single steps in a summary, without what they did for the model. Steps repeat what they launch.
class WorkInSummary {
 public:
  WorkInSummary(const SummarySteps& steps, size_t trace, const StepLaunchOf& each) {
    for (const auto& kind : steps.kinds) {
      StepWork& work = kinds_.emplace_back();
      for (const auto& launches : kind)
        work.add_launches(launches.count, each(trace, launches.device, launches.signature));
    }
  }
  StepWork of(const SingleStep& step) const {
    StepWork work = step.kind != 0 ? kinds_[step.kind - 1] : StepWork();
    work.launches = step.launches;
    work.gpu_ns = step.gpu.gpu_ns;
    work.untimed = step.gpu.untimed;
    return work;
  }

 private:
  std::vector<StepWork> kinds_;  // SummarySteps::kinds
};

std::map<uint32_t, StepWork> work_in_summary(const SummarySteps& steps, size_t trace,
                                             const StepLaunchOf& each) {
  const WorkInSummary all(steps, trace, each);
  std::map<uint32_t, StepWork> work;
  for (const SingleStep& step : steps.steps) work.emplace(step.number, all.of(step));
  return work;
}

}  // namespace

void StepWork::add_launches(uint64_t count, const StepLaunch& each) {
  launches += count;
  if (!each.flop_known) {
    unmeasured += count;
    return;
  }
  if (each.unscreened) unscreened += count;
  if (each.estimated) estimated += count;
  if (!each.peak_known) no_peak += count;
  add_saturating(flop, each.flop * count);
  add_saturating(least_fs, each.least_fs * count);
}

void StepWork::add_untimed(uint64_t count, const StepLaunch& each) {
  if (each.time_known) {
    add_saturating(gpu_ns, each.mean_ns * count);
    by_mean += count;
  } else {
    untimed += count;
  }
}

void StepWork::add(const StepWork& o) {
  launches += o.launches;
  unmeasured += o.unmeasured;
  unscreened += o.unscreened;
  estimated += o.estimated;
  no_peak += o.no_peak;
  untimed += o.untimed;
  by_mean += o.by_mean;
  add_saturating(flop, o.flop);
  add_saturating(least_fs, o.least_fs);
  add_saturating(gpu_ns, o.gpu_ns);
  add_saturating(model_fs, o.model_fs);
  add_saturating(model_most_fs, o.model_most_fs);
  add_saturating(model_open, o.model_open);
  add_saturating(saved_fs, o.saved_fs);
}

void count_steps(const TraceTables& tables, const UtilizationOptions& options, Report& report) {
  StepsReport& out = report.steps;
  out.tokens = options.tokens_per_step;
  const uint64_t skipped = skipped_steps(tables, options.skip_steps);
  bool all_single = true;
  for (size_t t = 0; t < tables.traces.size(); ++t) {
    const StepTable& table = tables.traces[t].steps;
    if (!table.any()) continue;
    ++out.processes;
    if (out.range.empty()) out.range = range_name(tables.traces[t], tables);
    out.per_process =
        std::max(out.per_process, table.sums().steps - std::min(table.sums().steps, skipped));
    all_single = all_single &&
                 (!table.steps().empty() || (table.all_in_summary() && options.skip_steps == 0));
    out.count += table.sums().steps;
  }
  if (out.processes == 0) return set_missing(out, kNoSteps);
  out.marked = true;
  out.single = all_single;
  if (!all_single) {
    out.hfu = out.mfu = Figure::unknown(kOnlySums);
    if (options.skip_steps > 0) set_missing(out, kNotSkipped);
    return;
  }
  for (const TraceState& trace : tables.traces)
    out.skipped += std::min<uint64_t>(trace.steps.steps().size(), options.skip_steps);
  out.count -= out.skipped;
  if (out.count == 0)
    set_missing(out, "--skip-steps " + std::to_string(options.skip_steps) + " leaves no step");
}

uint64_t skipped_steps(const TraceTables& tables, uint64_t wanted) {
  const bool any = std::ranges::any_of(
      tables.traces, [](const TraceState& trace) { return trace.skipped_steps.any(); });
  return any ? wanted : 0;
}

void skip_steps(uint64_t count, TraceTables& tables) {
  const bool sums = std::ranges::any_of(tables.traces, [](const TraceState& trace) {
    return trace.steps.any() && trace.steps.steps().empty();
  });
  if (count == 0 || sums) return;
  for (TraceState& trace : tables.traces) {
    const auto& steps = trace.steps.steps();
    if (steps.empty()) continue;
    if (steps.size() <= count) {
      trace.skipped_steps = {UINT32_MAX, UINT64_MAX};
      continue;
    }
    const auto& [number, times] = *std::next(steps.begin(), static_cast<std::ptrdiff_t>(count));
    // Times of kernels may be by another clock.
    const bool one_clock = !trace.header.simulated() || trace.header.simulated_clock();
    trace.skipped_steps = {number, one_clock ? times.start_ns : 0};
  }
}

std::vector<StepSpans> step_spans(const TraceTables& tables,
                                  const std::vector<StepKernels>& kernels, const Report& report) {
  std::vector<StepSpans> spans;
  for (size_t t = 0; t < tables.traces.size(); ++t) {
    const StepTable& table = tables.traces[t].steps;
    spans.push_back(table.all_in_summary()   ? spans_of(table.in_summary())
                    : report.clocks_differ() ? spans_of(table.steps())
                                             : spans_of(table.steps(), kernels[t]));
    if (table.all_in_summary())  // which of them are about right it does not say
      for (auto& [number, span] : spans.back()) span.about = !table.sums().kernels_timed;
  }
  return spans;
}

void add_step_work(const TraceTables& tables, const UtilizationOptions& options,
                   const std::vector<std::map<uint32_t, StepWork>>& work,
                   const std::vector<StepSpans>& spans, const StepLaunchOf& each, Report& report) {
  StepsReport& out = report.steps;
  if (out.processes == 0) return;
  if (out.single) {
    for (size_t t = 0; t < spans.size(); ++t) {
      const StepTable& table = tables.traces[t].steps;
      list_steps(t, spans[t], options.skip_steps, static_cast<double>(report.traces[t].devices),
                 table.all_in_summary() ? std::optional(table.sums().window_ns) : std::nullopt,
                 out);
    }
    const auto get_wall = [](const auto& step) { return static_cast<double>(step.wall_ns); };
    out.wall_ns = spread_of(out.steps, get_wall);
    if (out.wall_ns) out.wall_ns->about = out.window_about;
    add_outliers(out);
  } else {
    StepSums sums;
    for (size_t t = 0; t < spans.size(); ++t)
      if (const StepTable& table = tables.traces[t].steps; table.any())
        add_sums(table.steps().empty() ? table.sums() : sums_of(spans[t]), out.wall_ns, sums);
  }
  StepWork everything;
  for (const auto& steps : work)
    for (const auto& [number, one] : steps) everything.add(one);
  if (report.total.flop > 0 &&
      static_cast<double>(everything.flop) < kLeastShare * static_cast<double>(report.total.flop)) {
    const std::string range = printable(cut(out.range, 60));
    out = {};
    out.marked = true;
    return set_missing(out, "ranges '" + range +
                                "' hold less than 10 % of the FLOP, so they are not taken for "
                                "training steps: record with --step-range NAME");
  }
  StepWork kept = everything;
  std::vector<StepWork> of_trace(tables.traces.size());
  std::vector<uint64_t> steps_of_trace(tables.traces.size());
  if (out.single) {
    kept = {};
    size_t at = 0;
    for (size_t t = 0; t < work.size(); ++t) {
      const StepTable& table = tables.traces[t].steps;
      const bool summed = table.all_in_summary();
      const auto in_summary =
          summed ? work_in_summary(table.in_summary(), t, each) : std::map<uint32_t, StepWork>();
      const auto& of = summed ? in_summary : work[t];
      for (; at < out.steps.size() && out.steps[at].trace == t; ++at) {
        StepsReport::Step& step = out.steps[at];
        if (const auto found = of.find(step.number); found != of.end()) step.work = found->second;
        if (step.skipped) continue;
        if (!summed) of_trace[t].add(step.work);
        ++steps_of_trace[t];
      }
      for (const auto& [number, one] : work[t])
        if (summed) of_trace[t].add(one);
      kept.add(of_trace[t]);
    }
  } else {
    if (!out.missing.empty()) return;
    for (size_t t = 0; t < work.size(); ++t) {
      for (const auto& [number, one] : work[t]) of_trace[t].add(one);
      steps_of_trace[t] = tables.traces[t].steps.sums().steps;
    }
  }
  if (out.count == 0) return;
  const auto count = static_cast<double>(out.count);
  if (kept.flop_complete() && kept.launches > 0) {
    out.mean_flop = static_cast<double>(kept.flop) / count;
    out.job_flop = 0;
    for (size_t t = 0; t < of_trace.size(); ++t)
      if (steps_of_trace[t] > 0)
        *out.job_flop +=
            static_cast<double>(of_trace[t].flop) / static_cast<double>(steps_of_trace[t]);
  }
  if (out.single) judge_without_warm_up(report);
  out.flop_estimated = kept.estimated > 0;
  out.unmeasured = kept.unmeasured;
  out.unscreened = kept.unscreened;
  if (kept.untimed == 0 && kept.launches > 0)
    out.mean_gpu_ns = {static_cast<double>(kept.gpu_ns) / count,
                       mark_if(kept.by_mean > 0, Mark::kEstimate)};
  if (!out.single) return;
  const auto get_launches = [](const auto& s) { return static_cast<double>(s.work.launches); };
  out.launches = spread_of(out.steps, get_launches);
  // A summary does not say which launches of a step are without their time.
  const auto has_times = [](const auto& s) { return s.work.untimed == 0; };
  if (out.mean_gpu_ns.known() && std::ranges::all_of(out.steps, has_times)) {
    out.gpu_ns =
        spread_of(out.steps, [](const auto& s) { return static_cast<double>(s.work.gpu_ns); });
    out.gpu_ns->about = kept.by_mean > 0;
  }
  if (out.mean_flop) {
    out.flop = spread_of(out.steps, [](const auto& s) { return static_cast<double>(s.work.flop); });
    const auto first = std::ranges::find(out.steps, false, &StepsReport::Step::skipped);
    if (!out.flop_estimated && std::ranges::all_of(out.steps, [&](const auto& s) {
          return s.skipped || s.work.flop == first->work.flop;
        }))
      out.exact_flop = first->work.flop;
  }
  add_utilization(options, kept, report);
  if (options.tokens_per_step && out.window_ns > 0)
    out.tokens_per_s = {
        *options.tokens_per_step * static_cast<double>(out.per_process) / out.window_ns * 1e9,
        mark_if(out.window_about, Mark::kEstimate)};
}

namespace {

// By the host's clock; nothing without a header.
std::optional<uint64_t> realtime_of(const TraceState& trace, uint64_t trace_ns) {
  const auto& h = trace.header;
  if (!trace.has_header || h.clock_realtime_ns() == 0) return std::nullopt;
  return h.clock_realtime_ns() + (trace_ns - h.clock_trace_ns());
}

StepsReport::Listed listed_step(const TraceState& trace, size_t index, uint32_t number,
                                const StepTimes& times, bool skipped) {
  StepsReport::Listed step;
  step.trace = index;
  step.number = number;
  step.start_ns = times.start_ns;
  step.wall_ns = times.duration_ns;
  step.skipped = skipped;
  step.begin_ns = realtime_of(trace, times.start_ns);
  return step;
}

}  // namespace

void list_single_steps(const TraceTables& tables, const Totals& totals, uint64_t skip,
                       const std::vector<std::map<uint32_t, StepWork>>& work,
                       const std::vector<StepSpans>& spans, const StepLaunchOf& each,
                       Report& report) {
  StepsReport& out = report.steps;
  out.ranges.resize(tables.traces.size());
  for (size_t t = 0; t < tables.traces.size(); ++t) {
    const TraceState& trace = tables.traces[t];
    if (trace.steps.any()) out.ranges[t] = range_name(trace, tables);
    uint64_t seen = 0;
    const bool in_trace = !trace.steps.steps().empty();
    for (const auto& [number, span] : in_trace ? spans[t] : StepSpans()) {
      const StepTimes& times = span.times;
      StepsReport::Listed step = listed_step(trace, t, number, times, seen++ < skip);
      step.about = span.about || step.skipped;
      step.work_known = !step.skipped;
      if (const auto found = work[t].find(number); found != work[t].end())
        step.work = found->second;
      const auto& gpu = totals.step_times[t];
      if (const auto found = gpu.find(number); found != gpu.end()) step.gpu = found->second;
      step.millijoules =
          trace.energy_readings.between(times.start_ns, times.start_ns + times.duration_ns);
      out.listed.push_back(step);
    }
    if (in_trace) continue;
    const SummarySteps& kept = trace.steps.in_summary();
    const WorkInSummary works(kept, t, each);
    for (const SingleStep& one : kept.steps) {
      StepsReport::Listed step = listed_step(trace, t, one.number, one.times, false);
      step.about = !trace.steps.sums().kernels_timed;
      step.every = kept.every;
      step.gpu = one.gpu;
      step.millijoules = one.millijoules;
      step.work_known = one.kind != 0 || one.launches == 0;
      step.work = works.of(one);
      out.listed.push_back(step);
    }
  }
}

}  // namespace flopinj::reduce
