// Training steps: time, FLOP and launches of each, and utilization once the first ones are over.
#include <algorithm>

#include "sections/parts/cells.h"
#include "sections/parts/peak_cells.h"
#include "sections/parts/records.h"
#include "sections/sections.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

void add_row(Table& table, const char* name, const std::optional<Spread>& spread) {
  if (!spread) return;
  const Mark of_median = spread->median_approximate ? Mark::kEstimate : Mark::kNone;
  table.rows.push_back({name, Cell(spread->min), Cell(spread->median, of_median),
                        Cell(spread->mean), Cell(spread->max)});
}

Table times_table(const StepsReport& steps) {
  Table table{"steps",
              {{"what", "of a step"},
               {"min_ns", "min", Kind::kNanoseconds},
               {"median_ns", "median", Kind::kNanoseconds, Worth::kMain},
               {"mean_ns", "mean", Kind::kNanoseconds},
               {"max_ns", "max", Kind::kNanoseconds}}};
  add_row(table, "wall time", steps.wall_ns);
  add_row(table, "GPU time, sum of kernels", steps.gpu_ns);
  return table;
}

std::string flop_words(const StepsReport& steps) {
  const std::string mark = steps.flop_estimated ? "~ " : "";
  if (steps.exact_flop)
    return to_human(*steps.exact_flop, "FLOP") + ", " + to_grouped(*steps.exact_flop) + " each";
  if (!steps.mean_flop)
    return steps.unmeasured > 0 ? "-, " + to_grouped(steps.unmeasured) + " launches are unmeasured"
                                : std::string("-, no launches");
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
    out.above.push_back(Line(name).then(
        share.known() ? share_text(share) + definition : "-  " + share.why(), Tone::kTitle));
  };
  if (steps.single) {
    say("  HFU of these steps  ", steps.hfu, "   executed FLOP / (their wall time x peak)");
    say("  MFU of these steps  ", steps.mfu, "   6 x parameters x tokens / (the same)");
  }
  if (steps.tokens_per_s)
    out.above.emplace_back("  " + to_grouped(static_cast<u128>(*steps.tokens_per_s)) + " tokens/s");
  if (!steps.missing.empty()) out.above.emplace_back("  " + steps.missing, Tone::kWarn);
  out.table = times_table(steps);
  constexpr size_t kShown = 5;
  for (size_t i = 0; i < std::min(kShown, steps.outliers.size()); ++i) {
    const StepsReport::Step& step = steps.steps[steps.outliers[i]];
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

TableRow step_row(const Report& report, const StepsReport::Listed& step) {
  const TraceReport& trace = report.traces[step.trace];
  const StepWork& work = step.work;
  const StepGpuTime& gpu = step.gpu;
  const bool timed = gpu.untimed < work.launches || work.launches == 0;
  const bool measured = step.work_known && work.unmeasured == 0;
  return {
      trace.name,
      session_cell(trace),
      rank_cell(trace),
      trace.header.hostname(),
      uint64_t{step.number},
      report.steps.ranges[step.trace],
      uint64_t{step.skipped ? 1U : 0U},
      step.begin_ns ? Cell(*step.begin_ns) : Cell::none(),
      step.wall_ns,
      timed ? Cell(gpu.gpu_ns, gpu.untimed > 0 ? Mark::kAtLeast : Mark::kNone) : Cell::none(),
      gpu.busy_ns ? Cell(*gpu.busy_ns) : Cell::none(),
      work.launches,
      measured ? Cell(work.flop, work.estimated > 0 ? Mark::kEstimate : Mark::kNone) : Cell::none(),
      uint64_t{step.every}};
}

// Each step, for programs.
std::vector<Table> step_tables(const Report& report) {
  if (report.steps.listed.empty()) return {};
  Table table{"step_list",
              {{"process", "process"},
               {"session", "session"},
               {"rank", "rank", Kind::kCount},
               {"hostname", "host"},
               {"number", "step", Kind::kCount},
               {"range", "range"},
               {"skipped", "skipped", Kind::kCount},
               {"begin_ns", "began", Kind::kCount},
               {"wall_ns", "wall time", Kind::kNanoseconds},
               {"gpu_time_ns", "GPU time", Kind::kNanoseconds},
               {"busy_ns", "busy", Kind::kNanoseconds},
               {"launches", "launches", Kind::kCount},
               {"flop", "FLOP", Kind::kFlop},
               {"every", "one of", Kind::kCount}}};
  table.each = [&report](const auto& visit) {
    for (const StepsReport::Listed& step : report.steps.listed) visit(step_row(report, step));
  };
  return {std::move(table)};
}

void spread_object(Fields& f, const char* key, const std::optional<Spread>& spread,
                   const char* about) {
  f.object_if(spread.has_value(), key, about, [&](Fields& object) {
    object.part("spread", [&](Fields& part) {
      const Spread of = spread.value_or(Spread{});
      part("min", of.min);
      part("median", of.median);
      part("mean", of.mean);
      part("max", of.max);
      part("median_approximate", of.median_approximate, "to within 1 %: of sums of steps");
    });
  });
}

void steps_fields(Fields& to, const Report& report) {
  const StepsReport& steps = report.steps;
  to.object(
      "steps",
      "training steps: NVTX ranges around each of them. Spreads are of the steps that are not "
      "skipped; null where the traces do not have each step, or not what its launches did",
      [&](Fields& f) {
        f("count", steps.count, "that ended, of all processes, without those that are skipped");
        f("skipped", steps.skipped, "by --skip-steps");
        f("processes", uint64_t{steps.processes}, "that have steps");
        f("range", text_or_null(steps.range), "the name of the range, without its number");
        spread_object(f, "wall_ns", steps.wall_ns,
                      "of the range, on the program's thread; its median is step_time");
        spread_object(f, "gpu_time_ns", steps.gpu_ns, "sum of the times of a step's kernels");
        spread_object(f, "launches", steps.launches, "");
        f("flop_mean", steps.mean_flop,
          "of a step of one process; null where a launch is unmeasured");
        f.flop("flop_each", steps.exact_flop,
               "of each step, where all have the same and none is an estimate");
        spread_object(f, "flop", steps.flop, "of a step of one process");
        f("flop_of_all_processes", steps.job_flop, "of one step of each process, together");
        attained_object(f, "hfu", steps.hfu,
                        "executed FLOP of the steps at peak / their wall time, from the start of "
                        "the first to the end of the last");
        attained_object(f, "mfu", steps.mfu, "6 x parameters x tokens at peak / the same time");
        f("tokens_per_s", steps.tokens_per_s, "of all processes, with --tokens-per-step");
        f.list("outliers", steps.outliers,
               "steps that took over 1.5 times the median, the slowest first",
               [&](Fields& one, size_t i) {
                 const StepsReport::Step step =
                     i < steps.steps.size() ? steps.steps[i] : StepsReport::Step{};
                 one("process", i < steps.steps.size() ? report.traces[step.trace].name : "");
                 one("number", uint64_t{step.number});
                 one.ns("wall_ns", step.wall_ns);
               });
        f("missing", text_or_null(steps.missing),
          "why there are no figures of steps, or not all, and what to do");
      });
}

}  // namespace

const Subject kSteps = {steps_section, steps_fields, step_tables};

}  // namespace flopinj::reduce
