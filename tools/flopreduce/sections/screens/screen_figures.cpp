// The figures of the first screen: what was executed, how fast, and what of it was counted.
#include <algorithm>

#include "report/named_part.h"
#include "sections/notices.h"
#include "sections/parts/cells.h"
#include "sections/sections.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

std::string precisions_text(const Report& report) {
  constexpr size_t kShown = 3;
  const std::string of = report.total.flop_complete() ? ", " : "; measured: ";
  std::vector<std::pair<u128, std::string>> used;
  for (size_t i = 0; i < report.precisions.size(); ++i)
    if (report.flop.by_precision[i] > 0)
      used.emplace_back(report.flop.by_precision[i], report.precisions[i]);
  std::ranges::sort(used, std::greater<>());
  if (used.size() == 1) return of + "all " + used[0].second;
  std::string text;
  for (size_t i = 0; i < std::min(kShown, used.size()); ++i)
    text +=
        (i == 0 ? of : ", ") + used[i].second + " " +
        percent_text(static_cast<double>(used[i].first) / static_cast<double>(report.total.flop));
  return text;
}

ShownFigure executed_figure(const Report& report) {
  const Work& total = report.total;
  const Mark more = end_mark(report);
  const std::string launches = marked_text(more, to_grouped(total.launches)) +
                               (total.launches == 1 ? " launch" : " launches");
  if (const Figure flop = flop_or_formula(total); !total.flop_known() && flop.known())
    return {"Executed",
            marked_text(flop.marks() | more, to_human(std::get<u128>(flop.value()), "FLOP")),
            "by operators' formulas: not measured, in " + launches, Tone::kWarn};
  if (!total.flop_known() || (report.partial && total.launches == 0))
    return {"Executed", "-", "not measured, in " + launches, Tone::kWarn};
  if (total.flop == 0 && !total.flop_complete())
    return {"Executed", "-", "no FLOP in the launches with a count; not known, in " + launches,
            Tone::kWarn};
  const Figure flop = flop_of(total);
  const u128 whole = std::get<u128>(flop.value());
  return {"Executed", marked_text(flop.marks() | more, to_human(whole, "FLOP")),
          to_grouped(whole) + " in " + launches + " (one FMA counts " + std::to_string(report.fma) +
              ")" + precisions_text(report)};
}

// Why there is no share of peak over wall time, and what to do.
std::string wall_missing(const UtilizationMethod* m, const Report& report) {
  for (const DevicePeaksReport& d : report.utilization.devices)
    if (!d.error.empty())
      return "no peak of " + (d.name == kNoDeviceName ? d.name : "'" + d.name + "'") +
             " is known: --peak PRECISION=VALUE";
  if (m == nullptr) return "no device is known";
  if (m == report.utilization.mfu() && !m->flop.known())
    return "no operators: " + how_to_name_operators(report) + ", or --formula-flop";
  return m->wall.why();
}

ShownFigure wall_figure(const char* name, const UtilizationMethod* m, const Report& report,
                        std::string definition) {
  if (m == nullptr || !m->wall.known()) return {name, "-", wall_missing(m, report), Tone::kDim};
  return {name, share_text(m->wall), std::move(definition)};
}

std::string mfu_definition(const Report& report) {
  if (const auto* mfu = report.utilization.mfu(); mfu != nullptr && !report.total.flop_known())
    return "FLOP " + mfu->flop_basis;
  const ModelFlop& model = report.operators.model;
  const bool part = !report.utilization.given_formula_ns && model.lacks_some();
  return "FLOP by formula / (wall time x peak)" + (part ? "; " + model_coverage(report) : "");
}

ShownFigure kernel_time_figure(const Report& report) {
  const Work& total = report.total;
  if (!total.time_known()) return {"Kernel time", "-", "not recorded", Tone::kDim};
  const Figure of_peak = utilization_of(total);
  std::string note = "sum of kernels";
  if (of_peak.known()) note += ", at " + share_text(of_peak) + " of peak";
  const TimeReport& time = report.time;
  if (time.wall_ns && *time.wall_ns > 0 && time.busy_ns && !report.clocks_differ())
    note += "; the GPU was busy " +
            percent_text(static_cast<double>(*time.busy_ns) / static_cast<double>(*time.wall_ns)) +
            " of the time";
  return {"Kernel time",
          marked_text(gpu_time_of(total).marks() | end_mark(report), to_human_time(total.time.ns)),
          note};
}

// "inside the expected 1.69 to 2.00", "undecided: expected ~1.96, both gradients are assumed"
std::string verdict_words(const RatioReport& r) {
  if (!r.expected) return "undecided: " + r.undecided;
  std::string range =
      std::string("expected ") + (r.expected->estimated() ? "~" : "") + fixed(r.expected->least, 2);
  if (!r.expected->certain()) range += " to " + fixed(r.expected->most, 2);
  switch (r.verdict) {
    case RatioVerdict::kInside:
      return (r.expected->certain() ? "as " : "inside the ") + range;
    case RatioVerdict::kOutside:
      return "OUTSIDE the " + range;
    case RatioVerdict::kUndecided:
      return "undecided: " + range + ", " + r.undecided;
    case RatioVerdict::kNone:
      break;
  }
  return range;
}

ShownFigure ratio_figure(const Report& report) {
  const RatioReport& r = report.ratio;
  if (notice_of_no_counts(report)) return {"Backward/fwd", "-", "FLOP not measured", Tone::kDim};
  if (!r.ratio.known()) return {"Backward/fwd", "-", ratio_missing(report), Tone::kDim};
  std::string note;
  if (const auto matrix = r.matrix_ratio.number()) note = "matrix work " + ratio_text(*matrix);
  if (r.verdict != RatioVerdict::kNone) note += ", " + verdict_words(r);
  if (const std::string names = names_text(report); !names.empty()) note += ", of " + names;
  return {"Backward/fwd", marked_text(r.ratio.marks(), ratio_text(*r.ratio.number())), note,
          r.verdict == RatioVerdict::kOutside ? Tone::kWarn : Tone::kTitle};
}

ShownFigure coverage_figure(const Report& report) {
  const LedgerLine& l = report.ledger.total;
  if (l.launches == 0) return {"Coverage", "-", "no launches", Tone::kDim};
  const uint64_t counted = l.measured + l.extrapolated;
  std::string note = to_grouped(l.measured) + " measured, " + to_grouped(l.extrapolated) +
                     " extrapolated, " + to_grouped(l.unmeasured) + " unmeasured, " +
                     to_grouped(l.dropped) + " dropped";
  return {"Coverage", percent_text(static_cast<double>(counted) / static_cast<double>(l.launches)),
          note, counted < l.launches ? Tone::kWarn : Tone::kTitle};
}

// What reading counters may cost at the start: this long a recording's budget (README, --budget).
constexpr double kBurstSeconds = 200;

ShownFigure cost_figure(const Report& report) {
  const TimeReport& time = report.time;
  if (!time.own_ns) return {"Profiler cost", "-", "not recorded", Tone::kDim};
  const std::string value = to_human_time(*time.own_ns);
  std::string note;
  if (time.own_wall_ns && *time.own_wall_ns > 0)
    note =
        percent_text(static_cast<double>(*time.own_ns) / static_cast<double>(*time.own_wall_ns)) +
        (report.simulated_clock ? " of the " + to_human_time(*time.own_wall_ns) + " of simulating"
                                : " of wall");
  double measuring = 0, allowed = 0;
  bool limited = true, any = false;
  for (const TraceReport& t : report.traces) {
    if (!t.has_overhead || !t.header.measures()) continue;
    any = true;
    measuring += static_cast<double>(t.overhead.window_ns());
    limited = limited && t.header.budget_percent() > 0;
    const double wall_s = static_cast<double>(t.real_wall_ns().value_or(0)) / 1e9;
    allowed += t.header.budget_percent() / 100 * std::max(wall_s, kBurstSeconds) * 1e9;
  }
  if (report.simulated_clock && any && measuring == 0)  // reading takes no simulated time
    return {"Profiler cost", value, note};
  if (!note.empty()) note += "; ";
  if (!any) return {"Profiler cost", value, note + "no counters were read"};
  const auto text = [](double ns) { return to_human_time(static_cast<u128>(ns)); };
  return {"Profiler cost", value,
          note + text(measuring) + " reading counters" +
              (limited ? ", of " + text(allowed) + " allowed" : ", without limit")};
}

// Nothing where no range marks steps.
void add_steps(const Report& report, std::vector<ShownFigure>& figures) {
  const StepsReport& steps = report.steps;
  if (!steps.wall_ns) {
    if (!steps.missing.empty() && steps.marked)
      figures.push_back({"Per step", "-", steps.missing, Tone::kDim});
    return;
  }
  const Spread& wall = *steps.wall_ns;
  const auto time = [](double ns) { return to_human_time(static_cast<u128>(ns)); };
  std::string note = "median of " + to_grouped(steps.count);
  if (steps.skipped > 0) note += " after " + to_grouped(steps.skipped);
  note += " (" + time(wall.min) + " to " + time(wall.max) + (wall.about ? ", by ranges" : "") + ")";
  if (steps.mean_flop)
    note += std::string(steps.flop_estimated ? ", ~ " : ", ") +
            to_human(static_cast<u128>(*steps.mean_flop), "FLOP");
  if (const Figure& gpu = steps.mean_gpu_ns; gpu.known())
    note += ", kernels " + marked_text(gpu.marks(), time(*gpu.number()));
  if (steps.tokens_per_s.known()) note += ", " + tokens_words(steps);
  if (const Figure each = steps.flop_per_token(); each.known())
    note += ", " + marked_text(each.marks(), to_human(static_cast<u128>(*each.number()), "FLOP")) +
            "/token";
  figures.push_back(
      {"Per step", marked_text(wall.of(&Spread::median).marks(), time(wall.median)), note});
  if (steps.skipped > 0 && steps.hfu.known())
    figures.push_back({"HFU, steady", share_text(steps.hfu),
                       "of these " + to_grouped(steps.count) + " steps and their wall time"});
}

// Of at most so many numbers, since the screen has a limit.
void add_numbers(const Report& report, std::vector<ShownFigure>& figures) {
  constexpr size_t kMostNumbers = 2;
  for (size_t i = 0; i < std::min(kMostNumbers, report.numbers.size()); ++i) {
    const NumberReport& number = report.numbers[i];
    const std::string name = printable(cut(number.name, 40));
    std::string value = "-";
    if (number.flop_each)
      value = marked_text(flop_mark(report.total),
                          to_human(static_cast<u128>(*number.flop_each), "FLOP"));
    std::string note = "executed FLOP / " + to_grouped(number.total) + " " + name;
    if (!number.flop_each)
      note += number.total == 0          ? ": not one"
              : report.steps.skipped > 0 ? ": they are of the skipped steps, too"
                                         : ": FLOP not measured";
    if (number.processes < report.traces.size())
      note += ", given by " + to_grouped(number.processes) + " of " +
              to_grouped(report.traces.size()) + " processes";
    figures.push_back({i == 0 ? "FLOP each" : "", value, note});
  }
}

}  // namespace

std::vector<ShownFigure> screen_figures(const Report& report) {
  const UtilizationReport& u = report.utilization;
  std::vector<ShownFigure> figures = {
      wall_figure("HFU", u.hfu(), report, "executed FLOP / (wall time x peak)"),
      wall_figure("MFU", u.mfu(), report, mfu_definition(report)),
      executed_figure(report),
      kernel_time_figure(report),
      ratio_figure(report),
      coverage_figure(report),
      cost_figure(report)};
  std::vector<ShownFigure> steps;
  add_steps(report, steps);
  add_numbers(report, steps);
  figures.insert(figures.begin() + 3, steps.begin(), steps.end());
  if (const std::string cause = unmeasured_cause(report);
      !cause.empty() && !notice_of_no_counts(report))
    figures.insert(figures.end() - 1, ShownFigure{"", "", "unmeasured: " + cause});
  if (report.total.unscreened > 0)
    figures.insert(figures.end() - 1,
                   ShownFigure{"", "",
                               "of " + to_grouped(report.total.unscreened) +
                                   " launches only instructions: tensor work was not looked for",
                               Tone::kWarn});
  return figures;
}

}  // namespace flopinj::reduce
