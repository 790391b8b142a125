// What `flopreduce TRACE` shows: the answer on one screen.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sections/notices.h"
#include "sections/parts/cells.h"
#include "sections/parts/peak_cells.h"
#include "sections/parts/short_name.h"
#include "sections/sections.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

constexpr size_t kMostLines = 30;
constexpr size_t kMostPhases = 6;
constexpr size_t kFewestKernels = 3, kUsualKernels = 5;

// "  HFU                 41 %   executed FLOP / (wall time x peak)"
Line line_of(ScreenFigure figure) {
  constexpr size_t kName = 15, kValue = 13;
  std::string label = "  " + std::string(figure.name);
  label.resize(std::max(label.size() + 1, kName + 2), ' ');
  const size_t pad = kValue - std::min(kValue, display_width(figure.value));
  Line line(std::move(label));
  line.then(std::move(figure.value), figure.tone);
  if (!figure.note.empty()) line.then(std::string(pad + 2, ' ') + std::move(figure.note));
  return line;
}

std::string command_of(const trace::Header& header) {
  std::string text;
  for (const std::string& word : header.command_line()) {
    // A path says no more than its last part does.
    const size_t slash = text.empty() ? word.rfind('/') : word.npos;
    text += (text.empty() ? "" : " ") + (slash == word.npos ? word : word.substr(slash + 1));
  }
  return text;
}

std::string seconds_text(const TraceReport& t) {
  return t.wall_ns ? ", " + to_human_time(*t.wall_ns) : "";
}

}  // namespace

std::vector<Line> screen_program(const Report& report) {
  std::vector<Line> lines;
  if (report.traces.empty()) return lines;
  const TraceReport& first = report.traces.front();
  const std::string command = command_of(first.header);
  std::string who = first.name + seconds_text(first);
  if (report.traces.size() > 1) {
    std::set<std::string> hosts;
    for (const TraceReport& t : report.traces) hosts.insert(t.header.hostname());
    who = to_grouped(report.traces.size()) + " processes on " +
          (hosts.size() == 1 ? *hosts.begin() : to_grouped(hosts.size()) + " hosts") +
          seconds_text(first);
  }
  constexpr size_t kMostCommand = 60;
  lines.push_back(
      Line(command.empty() ? "(no command line)" : shorten(printable(command), kMostCommand),
           Tone::kTitle)
          .then("   " + who));
  std::map<std::string, size_t> devices;
  for (const DeviceReport& d : report.devices) ++devices[d.facts.name()];
  std::string gpus;
  for (const auto& [name, count] : devices)
    gpus += (gpus.empty() ? "" : ", ") + to_grouped(count) + " x " + name;
  if (!gpus.empty()) lines.push_back({gpus, Tone::kDim});
  return lines;
}

namespace {

void add_above_peak(const Report& report, std::vector<Line>& lines) {
  const auto above = [](const UtilizationMethod& m) {
    return m.gpu_time.above_peak || m.busy.above_peak || m.span.above_peak || m.wall.above_peak;
  };
  if (std::ranges::any_of(report.utilization.methods, above))
    lines.emplace_back(
        "The run is above the devices' peak: its FLOP, its time or the peak is wrong (--peak gives "
        "another).",
        Tone::kBad);
}

std::string precisions_text(const Report& report) {
  constexpr size_t kShown = 3;
  std::vector<std::pair<u128, std::string>> used;
  for (size_t i = 0; i < report.precisions.size(); ++i)
    if (report.flop.by_precision[i] > 0)
      used.emplace_back(report.flop.by_precision[i], report.precisions[i]);
  std::ranges::sort(used, std::greater<>());
  if (used.size() == 1) return ", all " + used[0].second;
  std::string text;
  for (size_t i = 0; i < std::min(kShown, used.size()); ++i)
    text +=
        ", " + used[i].second + " " +
        percent_text(static_cast<double>(used[i].first) / static_cast<double>(report.total.flop));
  return text;
}

std::string marked_text(Mark mark, const std::string& value) {
  const std::string text = marks_text(mark);
  return text.empty() ? value : text + " " + value;
}

ScreenFigure executed_figure(const Report& report) {
  const Work& total = report.total;
  const std::string launches =
      to_grouped(total.launches) + (total.launches == 1 ? " launch" : " launches");
  if (!total.flop_known() || (report.partial && total.launches == 0))
    return {"Executed", "-", "not measured, in " + launches, Tone::kWarn};
  if (total.flop == 0 && !total.flop_complete())
    return {"Executed", "-", "no FLOP in the launches with a count; not known, in " + launches,
            Tone::kWarn};
  return {"Executed", marked_text(flop_mark(total), to_human(total.flop, "FLOP")),
          to_grouped(total.flop) + " in " + launches + " (one FMA counts " +
              std::to_string(report.fma) + ")" + precisions_text(report)};
}

std::string marked_share(const Attained& attained, Mark mark) {
  return marked_text(mark, percent_text(*attained.share));
}

// Why there is no share of peak over wall time, and what to do.
std::string wall_missing(const UtilizationMethod* m, const Report& report) {
  for (const DevicePeaksReport& d : report.utilization.devices)
    if (!d.error.empty()) return "no peak of '" + d.name + "' is known: --peak PRECISION=VALUE";
  if (m == nullptr) return "no device is known";
  if (m == report.utilization.mfu() && !m->flop)
    return "no operators: emit_nvtx(record_shapes=True) or --formula-flop";
  return m->wall.missing;
}

ScreenFigure wall_figure(const char* name, const UtilizationMethod* m, const Report& report,
                         const char* definition) {
  if (m == nullptr || !m->wall.share) return {name, "-", wall_missing(m, report), Tone::kDim};
  Mark mark = share_mark(report.total);
  if (m->at_least) mark = mark | Mark::kAtLeast;
  if (m->at_most) mark = mark | Mark::kAtMost;
  return {name, marked_share(m->wall, mark), definition};
}

ScreenFigure kernel_time_figure(const Report& report) {
  const Work& total = report.total;
  if (!total.time_known()) return {"Kernel time", "-", "not recorded", Tone::kDim};
  const Attained of_peak = utilization_of(total);
  std::string note = "sum of kernels";
  if (of_peak.share) note += ", at " + marked_share(of_peak, share_mark(total)) + " of peak";
  const TimeReport& time = report.time;
  if (time.wall_ns && *time.wall_ns > 0 && time.busy_ns && !report.simulated.value_or(false))
    note += "; the GPU was busy " +
            percent_text(static_cast<double>(*time.busy_ns) / static_cast<double>(*time.wall_ns)) +
            " of the time";
  return {"Kernel time", marked_text(time_cell(total).marks, to_human_time(total.time.ns)), note};
}

// "inside the expected 1.69 to 2.00"
std::string verdict_words(const RatioReport& r) {
  std::string range = "expected " + fixed(r.expected->least, 2);
  if (!r.expected->certain()) range += " to " + fixed(r.expected->most, 2);
  switch (r.verdict) {
    case RatioVerdict::kInside:
      return (r.expected->certain() ? "as " : "inside the ") + range;
    case RatioVerdict::kOutside:
      return "OUTSIDE the " + range;
    case RatioVerdict::kUndecided:
      return range + ", not decided";
    case RatioVerdict::kNone:
      break;
  }
  return range;
}

ScreenFigure ratio_figure(const Report& report) {
  const RatioReport& r = report.ratio;
  if (notice_of_no_counts(report)) return {"Backward/fwd", "-", "FLOP not measured", Tone::kDim};
  if (!r.ratio) return {"Backward/fwd", "-", ratio_missing(report), Tone::kDim};
  std::string note;
  if (r.matrix_ratio) note = "matrix work " + fixed(*r.matrix_ratio, 3);
  if (r.matrix_ratio && r.expected) note += ", " + verdict_words(r);
  const bool at_most = report.unclear.flop > 0 || !report.unclear.flop_complete();
  return {"Backward/fwd",
          std::string(at_most ? "<= " : "") + (r.estimated ? "~ " : "") + fixed(*r.ratio, 3), note,
          r.verdict == RatioVerdict::kOutside ? Tone::kWarn : Tone::kTitle};
}

ScreenFigure coverage_figure(const Report& report) {
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

ScreenFigure cost_figure(const Report& report) {
  const TimeReport& time = report.time;
  if (!time.own_ns) return {"Profiler cost", "-", "not recorded", Tone::kDim};
  const std::string value = to_human_time(*time.own_ns);
  std::string note;
  if (time.own_wall_ns && *time.own_wall_ns > 0)
    note =
        percent_text(static_cast<double>(*time.own_ns) / static_cast<double>(*time.own_wall_ns)) +
        " of wall; ";
  double measuring = 0, allowed = 0;
  bool limited = true, any = false;
  for (const TraceReport& t : report.traces) {
    if (!t.has_overhead || !t.header.measures()) continue;
    any = true;
    measuring += static_cast<double>(t.overhead.window_ns());
    limited = limited && t.header.budget_percent() > 0;
    const double wall_s = static_cast<double>(t.wall_ns.value_or(0)) / 1e9;
    allowed += t.header.budget_percent() / 100 * std::max(wall_s, kBurstSeconds) * 1e9;
  }
  if (!any) return {"Profiler cost", value, note + "no counters were read"};
  const auto text = [](double ns) { return to_human_time(static_cast<u128>(ns)); };
  return {"Profiler cost", value,
          note + text(measuring) + " reading counters" +
              (limited ? ", of " + text(allowed) + " allowed" : ", without limit")};
}

// Nothing where no range marks steps.
void add_steps(const Report& report, std::vector<ScreenFigure>& figures) {
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
  note += " (" + time(wall.min) + " to " + time(wall.max) + ")";
  if (steps.mean_flop)
    note += std::string(steps.flop_estimated ? ", ~ " : ", ") +
            to_human(static_cast<u128>(*steps.mean_flop), "FLOP");
  if (steps.mean_gpu_ns) note += ", kernels " + time(*steps.mean_gpu_ns);
  if (steps.tokens_per_s)
    note += ", " + to_grouped(static_cast<u128>(*steps.tokens_per_s)) + " tokens/s";
  figures.push_back({"Per step", (wall.median_approximate ? "~ " : "") + time(wall.median), note});
  if (steps.skipped > 0 && steps.hfu.share)
    figures.push_back({"HFU, steady", percent_text(*steps.hfu.share),
                       "of these " + to_grouped(steps.count) + " steps and their wall time"});
}

// Of at most so many numbers, since the screen has a limit.
void add_numbers(const Report& report, std::vector<ScreenFigure>& figures) {
  constexpr size_t kMostNumbers = 2;
  for (size_t i = 0; i < std::min(kMostNumbers, report.numbers.size()); ++i) {
    const NumberReport& number = report.numbers[i];
    const std::string name = printable(cut(number.name, 40));
    std::string value = "-";
    if (number.flop_each)
      value = marked_text(flop_mark(report.total),
                          to_human(static_cast<u128>(*number.flop_each), "FLOP"));
    std::string note = "executed FLOP / " + to_grouped(number.total) + " " + name;
    if (number.processes < report.traces.size())
      note += ", given by " + to_grouped(number.processes) + " of " +
              to_grouped(report.traces.size()) + " processes";
    figures.push_back({i == 0 ? "FLOP each" : "", value, note});
  }
}

}  // namespace

std::vector<ScreenFigure> screen_figures(const Report& report) {
  const UtilizationReport& u = report.utilization;
  std::vector<ScreenFigure> figures = {
      executed_figure(report),
      wall_figure("HFU", u.hfu(), report, "executed FLOP / (wall time x peak)"),
      wall_figure("MFU", u.mfu(), report, "FLOP by formula / (wall time x peak)"),
      kernel_time_figure(report),
      ratio_figure(report),
      coverage_figure(report),
      cost_figure(report)};
  std::vector<ScreenFigure> steps;
  add_steps(report, steps);
  add_numbers(report, steps);
  figures.insert(figures.begin() + 1, steps.begin(), steps.end());
  if (const std::string cause = unmeasured_cause(report);
      !cause.empty() && !notice_of_no_counts(report))
    figures.insert(figures.end() - 1, ScreenFigure{"", "", "unmeasured: " + cause});
  return figures;
}

namespace {

Cell time_share_cell(const Work& part, const Work& whole) {
  if (!part.time_known() || !whole.time_known() || whole.time.ns == 0) return Cell::none();
  return share_cell(part.time.ns, whole.time.ns);
}

Section phases_part(const Report& report) {
  Table table{"screen_phases",
              {{"phase", "phase"},
               {"flop", "FLOP", Kind::kFlop, Worth::kMain},
               {"flop_share", "share", Kind::kShare, Worth::kMain},
               {"gpu_time_ns", "GPU time", Kind::kNanoseconds, Worth::kMain},
               {"gpu_time_share", "share", Kind::kShare, Worth::kMain},
               {"flop_per_s", "FLOP/s", Kind::kRate},
               {"utilization", "of peak", Kind::kShare}}};
  std::vector<const PhaseReport*> phases;
  for (const PhaseReport& p : report.phases) phases.push_back(&p);
  std::ranges::stable_sort(
      phases, [](const auto* a, const auto* b) { return a->work.time.ns > b->work.time.ns; });
  for (size_t i = 0; i < std::min(kMostPhases, phases.size()); ++i) {
    const PhaseReport& p = *phases[i];
    const Mark mark = phase_mark(p.name, report);
    table.rows.push_back({p.name, marked(flop_cell(p.work), mark),
                          marked(flop_share_cell(p.work, report.total), mark), time_cell(p.work),
                          time_share_cell(p.work, report.total), marked(rate_cell(p.work), mark),
                          marked(share_cell(utilization_of(p.work), p.work), mark)});
  }
  Section out{"Phases", {}, std::move(table), {}};
  if (phases.size() > kMostPhases)
    out.below.push_back({"  and " + to_grouped(phases.size() - kMostPhases) + " more", Tone::kDim});
  return out;
}

Section kernels_part(const Report& report, size_t most, KernelOrder order) {
  const auto kernels = kernels_by(report, order);
  const size_t shown = std::min(most, kernels.size());
  Table table{"screen_kernels",
              {{"kernel", "kernel"},
               {"gpu_time_share", "GPU time", Kind::kShare, Worth::kMain},
               {"flop_share", "FLOP", Kind::kShare, Worth::kMain},
               {"launches", "launches", Kind::kCount},
               {"each_ns", "each", Kind::kNanoseconds},
               {"flop_per_s", "FLOP/s", Kind::kRate},
               {"flop_per_byte", "FLOP/B", Kind::kRatio, Worth::kDetail},
               {"bound_by", "limit", Kind::kText, Worth::kMain}}};
  std::vector<std::string> names;
  for (size_t i = 0; i < shown; ++i) names.push_back(kernels[i]->name);
  names = short_kernel_names(names);
  for (size_t i = 0; i < shown; ++i) {
    const Work& w = kernels[i]->work;
    const uint64_t timed = w.launches - w.time.unknown;
    const std::string bound = bound_by(w, kernels[i]->slowest_precision);
    table.rows.push_back(
        {names[i], time_share_cell(w, report.total), flop_share_cell(w, report.total), w.launches,
         timed > 0 ? Cell(w.time.ns / timed, time_cell(w).marks) : Cell::none(), rate_cell(w),
         intensity_cell(w), bound.empty() ? Cell::none() : Cell(bound)});
  }
  const std::string count =
      shown < kernels.size() ? " (" + to_grouped(shown) + " of " + to_grouped(kernels.size()) + ")"
                             : "";
  return {std::string("Kernels by ") + order_words(order) + count, {}, std::move(table), {}};
}

Section more_part() {
  return {"",
          {{"More: --all; --sections roofline,layers,ranges,ledger,time; --format html -o FILE",
            Tone::kDim}},
          std::nullopt,
          {}};
}

}  // namespace

std::vector<const KernelReport*> kernels_by(const Report& report, KernelOrder order) {
  std::vector<const KernelReport*> kernels;
  for (const KernelReport& k : report.kernels) kernels.push_back(&k);
  const auto each = [](const KernelReport& k) {
    return k.work.time.ns / std::max<uint64_t>(1, k.work.launches - k.work.time.unknown);
  };
  std::ranges::stable_sort(kernels, [&](const auto* a, const auto* b) {
    switch (order) {
      case KernelOrder::kFlop:
        return a->work.flop > b->work.flop;
      case KernelOrder::kLaunches:
        return a->work.launches > b->work.launches;
      case KernelOrder::kEach:
        return each(*a) > each(*b);
      case KernelOrder::kName:
        return a->name < b->name;
      case KernelOrder::kTime:
        break;
    }
    return a->work.time.ns > b->work.time.ns;
  });
  return kernels;
}

const char* order_words(KernelOrder order) {
  switch (order) {
    case KernelOrder::kFlop:
      return "FLOP";
    case KernelOrder::kLaunches:
      return "launches";
    case KernelOrder::kEach:
      return "GPU time of a launch";
    case KernelOrder::kName:
      return "name";
    case KernelOrder::kTime:
      break;
  }
  return "GPU time";
}

std::vector<Line> screen_warnings(const Report& report) {
  std::vector<Line> lines;
  add_warnings(report, lines);
  add_above_peak(report, lines);
  if (const uint64_t untimed = report.total.time.unknown; untimed > 0)
    lines.emplace_back(to_grouped(untimed) + " of " + to_grouped(report.total.launches) +
                           " launches have no time: see --sections diagnostics",
                       Tone::kWarn);
  return lines;
}

std::vector<Section> screen(const Report& report, std::optional<size_t> kernels,
                            KernelOrder order) {
  Section head{"", screen_warnings(report), std::nullopt, {}};
  for (Line& line : screen_program(report)) head.above.push_back(std::move(line));
  head.above.emplace_back("");
  for (ScreenFigure& figure : screen_figures(report))
    head.above.push_back(line_of(std::move(figure)));
  Section phases = phases_part(report);
  // What the titles, headings and blank lines of three parts take, and the line at the end.
  const size_t used = head.above.size() + phases.table->rows.size() + phases.below.size() + 8;
  const size_t room = kMostLines > used ? kMostLines - used : 0;
  const size_t most = kernels.value_or(std::clamp(room, kFewestKernels, kUsualKernels));
  Section table = kernels_part(report, most, order);
  return {std::move(head), std::move(phases), std::move(table), more_part()};
}

}  // namespace flopinj::reduce
