// Training steps: time, FLOP and launches of each, and utilization once the first ones are over.
#include <algorithm>
#include <span>

#include "sections/parts/cells.h"
#include "sections/parts/said.h"
#include "sections/sections.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

// Of the steps that are not skipped.
struct StepTimes {
  const char* name;
  Spread spread;
};
std::vector<StepTimes> step_times(const Report& report) {
  std::vector<StepTimes> rows;
  const auto add = [&](const char* name, const std::optional<Spread>& spread) {
    if (spread) rows.push_back({name, *spread});
  };
  add("wall time", report.steps.wall_ns);
  add("GPU time, sum of kernels", report.steps.gpu_ns);
  return rows;
}

Columns<StepTimes> step_times_columns() {
  Columns<StepTimes> c;
  const auto spread = [](double Spread::*end) {
    return [end](const StepTimes& times) { return times.spread.of(end); };
  };
  c.text("what", "of a step", &StepTimes::name);
  c.figure("min_ns", "min", Kind::kNanoseconds, spread(&Spread::min));
  c.figure("median_ns", "median", Kind::kNanoseconds, spread(&Spread::median),
           "half of the steps take less; of summaries to within 1 %")
      .main();
  c.figure("mean_ns", "mean", Kind::kNanoseconds, spread(&Spread::mean));
  c.figure("max_ns", "max", Kind::kNanoseconds, spread(&Spread::max));
  return c;
}

Figure of_steps(const std::optional<double>& value, const StepsReport& steps) {
  return Figure::exact(value).with(mark_if(steps.flop_estimated, Mark::kEstimate));
}

// A getter of one end of a spread that may not be known.
auto of_spread(std::optional<Spread> StepsReport::*spread, double Spread::*end) {
  return [spread, end](const StepsReport& steps) {
    const std::optional<Spread>& of = steps.*spread;
    return of ? std::optional(*of.*end) : std::nullopt;
  };
}

Columns<StepsReport> step_summary_columns() {
  Columns<StepsReport> c;
  c.count("count", "steps", &StepsReport::count,
          "steps that ended, of all processes, without those that are skipped");
  c.count("skipped", "skipped", &StepsReport::skipped, "by --skip-steps");
  c.count("processes", "processes", &StepsReport::processes, "processes that have steps");
  c.text("range", "range", or_null(&StepsReport::range),
         "NVTX range around each step, without its number");
  c.exact("launches_min", "fewest launches", Kind::kRatio,
          of_spread(&StepsReport::launches, &Spread::min), "of a step of one process");
  c.exact("launches_mean", "mean", Kind::kRatio, of_spread(&StepsReport::launches, &Spread::mean));
  c.figure("launches_median", "median", Kind::kRatio, [](const StepsReport& steps) {
    return steps.launches ? steps.launches->of(&Spread::median) : Figure();
  });
  c.exact("launches_max", "most launches", Kind::kRatio,
          of_spread(&StepsReport::launches, &Spread::max));
  const auto flop = [](double Spread::*end) {
    return [get = of_spread(&StepsReport::flop, end)](const StepsReport& steps) {
      return of_steps(get(steps), steps);
    };
  };
  c.exact("flop_each", "FLOP of each", Kind::kFlop, &StepsReport::exact_flop,
          "of each step, where all have the same and none is an estimate");
  c.figure("flop_min", "least FLOP", Kind::kFlop, flop(&Spread::min), "of a step of one process");
  c.figure("flop_median", "median", Kind::kFlop, [](const StepsReport& steps) {
    const Mark estimate = mark_if(steps.flop_estimated, Mark::kEstimate);
    return steps.flop ? steps.flop->of(&Spread::median).with(estimate) : Figure();
  });
  c.figure(
      "flop_mean", "mean", Kind::kFlop,
      [](const StepsReport& steps) { return of_steps(steps.mean_flop, steps); },
      "of a step of one process; null where a launch is unmeasured, or not "
      "screened for tensor work");
  c.figure("flop_max", "most FLOP", Kind::kFlop, flop(&Spread::max));
  c.figure(
      "flop_of_all_processes", "FLOP of the job", Kind::kFlop,
      [](const StepsReport& steps) { return of_steps(steps.job_flop, steps); },
      "of one step of each process, together");
  c.figure("hfu", "HFU", Kind::kShare, &StepsReport::hfu,
           "executed FLOP of the steps at peak / their wall time, from the start of the first to "
           "the end of the last, kernels included that run on after their range");
  c.figure("mfu", "MFU", Kind::kShare, &StepsReport::mfu,
           "6 x parameters x tokens, or the FLOP of formulas in the steps, at peak / the same time")
      .range();
  c.figure("tokens_per_s", "tokens/s", Kind::kRatio, &StepsReport::tokens_per_s,
           "of all processes, with --tokens-per-step");
  c.text("missing", "missing", or_null(&StepsReport::missing),
         "why there are no figures of steps, or not all, and what to do");
  return c;
}

Columns<StepsReport::Step> slow_step_columns() {
  using Step = StepsReport::Step;
  Columns<Step> c;
  c.text(said::kProcess, of_trace(&TraceReport::name));
  c.count("number", "step", &Step::number);
  c.figure("wall_ns", "wall time", Kind::kNanoseconds, &Step::wall);
  return c;
}

Columns<StepsReport::Step> step_columns() {
  using Step = StepsReport::Step;
  Columns<Step> c;
  c.text(said::kProcess, of_trace(&TraceReport::name));
  c.text(said::kSession, of_trace(session_of));
  c.count(said::kRank, of_trace(&TraceReport::rank));
  c.text(said::kHost, of_trace([](const TraceReport& t) { return t.header.hostname(); }));
  c.count("number", "step", &Step::number);
  c.text("range", "range",
         [](const Step& step, const Report& report) { return report.steps.ranges[step.trace]; });
  c.flag("skipped", "skipped", &Step::skipped, "by --skip-steps");
  c.count("begin_ns", "began", &Step::begin_ns, "by the host's clock, CLOCK_REALTIME");
  c.figure("wall_ns", "wall time", Kind::kNanoseconds, &Step::wall,
           "of the step's range, and of kernels that ran on after it, less those of the step "
           "before");
  c.figure(said::kGpuTime, [](const Step& step) {
    const bool none =
        step.skipped || (step.work.launches > 0 && step.gpu.untimed >= step.work.launches);
    return none ? Figure()
                : Figure(u128{step.gpu.gpu_ns}, mark_if(step.gpu.untimed > 0, Mark::kAtLeast));
  });
  c.figure("busy_ns", "busy", Kind::kNanoseconds,
           exactly(through(&Step::gpu, &StepGpuTime::busy_ns)),
           "time in which some kernel of the step ran");
  c.count(said::kLaunches, [](const Step& step) {
    return step.skipped ? std::nullopt : std::optional(step.work.launches);
  });
  c.figure(said::kFlop, [](const Step& step) {
    const bool measured = step.work_known && step.work.unmeasured == 0;
    return measured ? Figure(step.work.flop, mark_if(step.work.unscreened > 0, Mark::kAtLeast) |
                                                 mark_if(step.work.estimated > 0, Mark::kEstimate))
                    : Figure();
  });
  c.figure(
      said::kEnergy.key, said::kEnergy.heading, said::kEnergy.kind,
      [](const Step& step) {
        return step.millijoules
                   ? Figure(static_cast<double>(*step.millijoules) / 1e3, Mark::kEstimate)
                   : Figure();
      },
      "joules that the process's GPUs took in the step; null where less than 90 % of them are "
      "between readings of NVML's energy counter, which come once a second");
  c.count("every", "one of", &Step::every, "so many steps this one was kept of");
  return c;
}

void each_step(const Report& report, const std::function<void(const StepsReport::Step&)>& visit) {
  for (const StepsReport::Step& step : report.steps.steps) visit(step);
}

const TableSource kStepTimes("steps", "wall time and GPU time of a training step",
                             step_times_columns, step_times);
const TableSource kStepSummary("step_summary",
                               "training steps as a whole: count, FLOP, HFU and MFU",
                               step_summary_columns,
                               [](const Report& report) { return std::span(&report.steps, 1); });
const TableSource kSlowSteps("slow_steps",
                             "steps that took over 1.5 times the median, the slowest first",
                             slow_step_columns,
                             [](const Report& report) { return std::span(report.steps.outliers); });
const TableSource kStepList =
    TableSource::pass_on("step_list", "each training step, by process", step_columns, each_step)
        .of_facts();

std::string flop_words(const StepsReport& steps) {
  const std::string mark = steps.flop_estimated ? "~ " : "";
  if (steps.exact_flop)
    return to_human(*steps.exact_flop, "FLOP") + ", " + to_grouped(*steps.exact_flop) + " each";
  if (!steps.mean_flop && steps.unmeasured > 0)
    return "-, " + to_grouped(steps.unmeasured) + " launches are unmeasured";
  if (!steps.mean_flop && steps.unscreened > 0)
    return "-, " + to_grouped(steps.unscreened) + " launches were not screened for tensor work";
  if (!steps.mean_flop) return "-, no launches";
  std::string text = mark + to_human(static_cast<u128>(*steps.mean_flop), "FLOP") + " on average";
  if (steps.flop)
    text += ", " + to_human(static_cast<u128>(steps.flop->min), "FLOP") + " to " +
            to_human(static_cast<u128>(steps.flop->max), "FLOP");
  return text;
}

std::string count_words(const StepsReport& steps) {
  std::string text = to_grouped(steps.count) + (steps.count == 1 ? " step" : " steps");
  if (!steps.range.empty()) text += " (range '" + printable(cut(steps.range, 60)) + "')";
  if (steps.processes > 1) text += " of " + to_grouped(steps.processes) + " processes";
  if (steps.skipped > 0) text += ", after " + to_grouped(steps.skipped) + " that are skipped";
  return text;
}

Section steps_section(const Report& report) {
  const StepsReport& steps = report.steps;
  if (steps.processes == 0) return {};
  Section out{"Training steps", {}, std::nullopt, {}};
  out.above.emplace_back("  " + count_words(steps) + "; FLOP of a step: " + flop_words(steps));
  if (steps.processes > 1 && steps.job_flop)
    out.above.emplace_back("  One step of all processes: " +
                           to_human(static_cast<u128>(*steps.job_flop), "FLOP"));
  const auto say = [&](const char* name, const Figure& share, const char* definition) {
    out.above.push_back(Line(name).then(share_or_why(share), Tone::kTitle));
    if (share.known()) out.above.back().then(definition);
  };
  if (steps.single) {
    say("  HFU of these steps  ", steps.hfu, "   executed FLOP / (their wall time x peak)");
    say("  MFU of these steps  ", steps.mfu, "   FLOP by formula / (the same)");
  }
  if (steps.tokens_per_s.known()) out.above.emplace_back("  " + tokens_words(steps));
  if (steps.wall_ns && steps.wall_ns->about)
    out.above.emplace_back(
        "  Wall times are about right: they are of ranges, kernels run on after these, and not "
        "all kernels have times.",
        Tone::kDim);
  if (!steps.missing.empty()) out.above.emplace_back("  " + steps.missing, Tone::kWarn);
  out.table = kStepTimes.for_people(report);
  constexpr size_t kShown = 5;
  for (size_t i = 0; i < std::min(kShown, steps.outliers.size()); ++i) {
    const StepsReport::Step& step = steps.outliers[i];
    std::string text = "  Slow: step " + to_grouped(step.number);
    if (steps.processes > 1) text += " of " + printable(report.traces[step.trace].name);
    out.below.emplace_back(text + ", " + to_human_time(step.wall_ns) + ", " +
                           fixed(static_cast<double>(step.wall_ns) / steps.wall_ns->median, 1) +
                           " times the median");
  }
  if (steps.outliers.size() > kShown)
    out.below.emplace_back("  " + to_grouped(steps.outliers.size() - kShown) +
                           " more steps took over " + fixed(kOutlier, 1) + " times the median.");
  return out;
}

}  // namespace

const Subject kSteps = {{&kStepTimes, &kStepSummary, &kSlowSteps, &kStepList}, steps_section};

}  // namespace flopinj::reduce
