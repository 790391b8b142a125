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
std::optional<Spread> spread_of(const PackedRows<StepsReport::Step>& steps, Get&& get) {
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

// The slowest of those that took over kOutlier medians.
void add_outliers(StepsReport& out) {
  constexpr size_t kMostOutliers = 1000;
  if (!out.wall_ns) return;
  std::vector<StepsReport::Step>& slow = out.outliers;
  const auto keep_slowest = [&] {
    std::ranges::stable_sort(slow, std::greater<>(), &StepsReport::Step::wall_ns);
    if (slow.size() > kMostOutliers) slow.resize(kMostOutliers);
  };
  for (const StepsReport::Step& step : out.steps) {
    if (step.skipped || static_cast<double>(step.wall_ns) <= kOutlier * out.wall_ns->median)
      continue;
    slow.push_back(step);
    if (slow.size() >= 2 * kMostOutliers) keep_slowest();
  }
  keep_slowest();
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
  double most = 0;
  std::optional<StepsReport::Step> first;  // of the process at hand
  std::vector<double> others;
  const auto end_process = [&] {
    if (first && !first->skipped && first->work.unmeasured == 0 && !others.empty())
      if (const double each = median(others); each > 0)
        most = std::max(most, static_cast<double>(first->work.flop) / each);
    first.reset();
    others.clear();
  };
  for (const StepsReport::Step& step : report.steps.steps) {
    if (first && first->trace != step.trace) end_process();
    if (first)
      others.push_back(static_cast<double>(step.work.flop));
    else
      first = step;
  }
  end_process();
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

// By the host's clock; nothing without a header.
std::optional<uint64_t> realtime_of(const TraceState& trace, uint64_t trace_ns) {
  const auto& h = trace.header;
  if (!trace.has_header || h.clock_realtime_ns() == 0) return std::nullopt;
  return h.clock_realtime_ns() + (trace_ns - h.clock_trace_ns());
}

// What is in a map, or a value that says nothing.
template <typename Value>
Value found_in(const std::map<uint32_t, Value>& all, uint32_t number) {
  const auto found = all.find(number);
  return found == all.end() ? Value() : found->second;
}

// When the steps of a trace ran, which has each of them. `kernels`: of their launches.
StepSpans spans_in(const TraceState& trace, const StepKernels& kernels, const Report& report) {
  const auto& steps = trace.steps.steps();
  return report.clocks_differ() ? spans_of(steps) : spans_of(steps, kernels);
}

// Puts the steps of one process into the report, and from when to when those are that count.
class StepLister {
 public:
  StepLister(const TraceTables& tables, size_t trace, uint64_t skip, StepsReport& out)
      : state_(tables.traces[trace]), trace_(trace), skip_(skip), out_(out) {}

  // In their order. `step` says what is known of it beside its times.
  void add(uint32_t number, const StepSpan& span, StepsReport::Step step) {
    step.trace = trace_;
    step.number = number;
    step.start_ns = span.times.start_ns;
    step.wall_ns = span.times.duration_ns;
    step.begin_ns = realtime_of(state_, step.start_ns);
    step.skipped = seen_++ < skip_;
    step.about = span.about || step.skipped;
    step.work_known = step.work_known && !step.skipped;
    if (!step.skipped) {
      window_.first = std::min(window_.first, number);
      window_.last = std::max(window_.last, number);
      kept_.add(span);
      about_ = about_ || span.about;
      work_.add(step.work);
      ++count_;
    }
    out_.steps.push_back(step);
  }
  // Of the steps that are not skipped.
  const StepWork& work() const { return work_; }
  uint64_t count() const { return count_; }
  // `all_ns`: how long all of them took, where the spans do not say it.
  void end(double devices, std::optional<uint64_t> all_ns) {
    out_.window_about = out_.window_about || about_;
    if (kept_.length_ns() == 0) return;
    window_.from_ns = kept_.from_ns;
    window_.to_ns = kept_.to_ns;
    if (skip_ > 0) out_.windows[trace_] = window_;
    const auto ns = static_cast<double>(all_ns.value_or(kept_.length_ns()));
    out_.window_ns = std::max(out_.window_ns, ns);
    out_.device_window_ns += ns * devices;
  }

 private:
  const TraceState& state_;
  const size_t trace_;
  const uint64_t skip_;
  StepsReport& out_;
  uint64_t seen_ = 0, count_ = 0;
  StepsReport::Window window_{0, 0, UINT32_MAX, 0};
  StepWindow kept_;
  StepWork work_;
  bool about_ = false;
};

void list_in_trace(const TraceState& trace, const StepSpans& spans, const StepsRead& read, size_t t,
                   StepLister& lister) {
  for (const auto& [number, span] : spans) {
    StepsReport::Step step;
    step.work = found_in(read.work[t], number);
    if (!read.times.empty()) step.gpu = found_in(read.times[t], number);
    step.millijoules = trace.energy_readings.between(span.times.start_ns,
                                                     span.times.start_ns + span.times.duration_ns);
    lister.add(number, span, std::move(step));
  }
}

void list_in_summary(const TraceState& trace, size_t t, const StepLaunchOf& each,
                     StepLister& lister) {
  const SummarySteps& kept = trace.steps.in_summary();
  const WorkInSummary works(kept, t, each);
  for (const SingleStep& one : kept.steps) {
    StepsReport::Step step;
    step.every = kept.every;
    step.gpu = one.gpu;
    step.millijoules = one.millijoules;
    step.work_known = one.kind != 0 || one.launches == 0;
    step.work = works.of(one);
    StepSpan span = span_of(one.times);
    span.about =
        !trace.steps.sums().kernels_timed;  // which of them are about right it does not say
    lister.add(one.number, span, std::move(step));
  }
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

void add_step_work(const TraceTables& tables, const UtilizationOptions& options, StepsRead read,
                   const StepLaunchOf& each, bool list_all, Report& report) {
  StepsReport& out = report.steps;
  if (out.processes == 0) return;
  StepWork everything;
  for (const auto& steps : read.work)
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
  StepWork kept;
  std::vector<StepWork> of_trace(tables.traces.size());
  std::vector<uint64_t> steps_of_trace(tables.traces.size());
  StepSums sums;
  if (list_all) out.ranges.resize(tables.traces.size());
  for (size_t t = 0; t < tables.traces.size(); ++t) {
    const TraceState& trace = tables.traces[t];
    const StepTable& table = trace.steps;
    const bool in_trace = !table.steps().empty();
    const StepSpans spans = spans_in(trace, read.kernels[t], report);
    if (!out.single && table.any())
      add_sums(in_trace ? sums_of(spans) : table.sums(), out.wall_ns, sums);
    if (list_all && table.any()) out.ranges[t] = range_name(trace, tables);
    StepLister lister(tables, t, in_trace ? options.skip_steps : 0, out);
    if (out.single || list_all) {
      if (in_trace)
        list_in_trace(trace, spans, read, t, lister);
      else
        list_in_summary(trace, t, each, lister);
    }
    if (out.single) {
      lister.end(static_cast<double>(report.traces[t].devices),
                 in_trace ? std::nullopt : std::optional(table.sums().window_ns));
      steps_of_trace[t] = lister.count();
    } else {
      steps_of_trace[t] = table.sums().steps;
    }
    // A summary has the work of all steps together, with what they did for the model.
    if (out.single && in_trace)
      of_trace[t] = lister.work();
    else
      for (const auto& [number, one] : read.work[t]) of_trace[t].add(one);
    kept.add(of_trace[t]);
    read.work[t].clear();  // a job may have very many ranks
  }
  out.steps.shrink_to_fit();
  for (auto& [trace, window] : out.windows)
    window.skipped_until_ns = read.kernels[trace].skipped_until();
  if (out.single) {
    const auto get_wall = [](const auto& step) { return static_cast<double>(step.wall_ns); };
    out.wall_ns = spread_of(out.steps, get_wall);
    if (out.wall_ns) out.wall_ns->about = out.window_about;
    add_outliers(out);
  } else if (!out.missing.empty()) {
    return;
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
  bool all_timed = true, all_alike = true;
  std::optional<u128> first;  // FLOP, of those that are not skipped
  for (const StepsReport::Step& step : out.steps) {
    all_timed = all_timed && step.work.untimed == 0;
    if (step.skipped) continue;
    if (!first) first = step.work.flop;
    all_alike = all_alike && step.work.flop == *first;
  }
  if (out.mean_gpu_ns.known() && all_timed) {
    out.gpu_ns =
        spread_of(out.steps, [](const auto& s) { return static_cast<double>(s.work.gpu_ns); });
    out.gpu_ns->about = kept.by_mean > 0;
  }
  if (out.mean_flop) {
    out.flop = spread_of(out.steps, [](const auto& s) { return static_cast<double>(s.work.flop); });
    if (!out.flop_estimated && all_alike) out.exact_flop = first;
  }
  add_utilization(options, kept, report);
  if (options.tokens_per_step && out.window_ns > 0)
    out.tokens_per_s = {
        *options.tokens_per_step * static_cast<double>(out.per_process) / out.window_ns * 1e9,
        mark_if(out.window_about, Mark::kEstimate)};
}

}  // namespace flopinj::reduce
