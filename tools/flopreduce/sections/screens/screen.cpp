// What `flopreduce TRACE` shows: the answer on one screen.
#include <algorithm>
#include <map>
#include <set>

#include "sections/notices.h"
#include "sections/parts/cells.h"
#include "sections/parts/short_name.h"
#include "sections/sections.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

constexpr size_t kMostLines = 30;
constexpr size_t kMostPhases = 6;
constexpr size_t kFewestKernels = 3, kUsualKernels = 5;

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
  return t.wall_ns() ? ", " + to_human_time(*t.wall_ns()) : "";
}

// ", job 4711"; empty where no recording says its job.
std::string jobs_text(const Report& report) {
  std::set<std::string> jobs;
  for (const TraceReport& t : report.traces)
    if (!t.header.job_id().empty()) jobs.insert(t.header.job_id());
  if (jobs.empty()) return "";
  if (jobs.size() > 1) return ", " + to_grouped(jobs.size()) + " jobs";
  return ", job " + printable(cut(*jobs.begin(), 40));
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
  who += jobs_text(report);
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
  add_origin(report, lines);
  return lines;
}

namespace {

void add_above_peak(const Report& report, std::vector<Line>& lines) {
  const auto above = [](const UtilizationMethod& m) { return m.above_peak(); };
  if (std::ranges::any_of(report.utilization.methods, above))
    lines.emplace_back(
        "The run is above the devices' peak: its FLOP, its time or the peak is wrong (--peak gives "
        "another).",
        Tone::kBad);
}

Figure time_share(const Work& part, const Work& whole) {
  if (!part.time_known() || !whole.time_known()) return {};
  return share_figure(part.time.ns, whole.time.ns);
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
  const auto phases = largest_first(report.phases, [](const auto& p) { return p.work.time.ns; });
  for (size_t i = 0; i < std::min(kMostPhases, phases.size()); ++i) {
    const PhaseReport& p = *phases[i];
    const Mark mark = phase_mark(p, report);
    table.rows.push_back({p.name, flop_of(p.work).with(mark),
                          flop_share(p.work, report.total).with(mark), gpu_time_of(p.work),
                          time_share(p.work, report.total), dashed(rate_of(p.work).with(mark)),
                          dashed(utilization_of(p.work).with(mark), kAbovePeak)});
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
    const auto bound = bound_by(w, kernels[i]->slowest_precision);
    table.rows.push_back({names[i], time_share(w, report.total), flop_share(w, report.total),
                          Figure::exact(w.launches),
                          timed > 0 ? Figure(w.time.ns / timed, gpu_time_of(w).marks()) : Figure(),
                          dashed(rate_of(w)), dashed(intensity_of(w)),
                          bound ? Cell(*bound) : Cell::none()});
  }
  const std::string count =
      shown < kernels.size() ? " (" + to_grouped(shown) + " of " + to_grouped(kernels.size()) + ")"
                             : "";
  return {std::string("Kernels by ") + order_words(order) + count, {}, std::move(table), {}};
}

Section more_part() {
  return {"",
          {{"More: --all; --sections lost,roofline,layers,ranges,time; --format html -o FILE",
            Tone::kDim}},
          std::nullopt,
          {}};
}

}  // namespace

std::vector<const KernelReport*> kernels_by(const Report& report, KernelOrder order) {
  const auto by = [&](auto of) { return largest_first(report.kernels, of); };
  using Kernel = const KernelReport&;
  switch (order) {
    case KernelOrder::kFlop:
      return by([](Kernel k) { return k.work.flop; });
    case KernelOrder::kLaunches:
      return by([](Kernel k) { return k.work.launches; });
    case KernelOrder::kEach:
      return by([](Kernel k) {
        return k.work.time.ns / std::max<uint64_t>(1, k.work.launches - k.work.time.unknown);
      });
    case KernelOrder::kName: {
      auto kernels = by([](Kernel) { return 0; });
      std::ranges::stable_sort(kernels, {}, &KernelReport::name);
      return kernels;
    }
    case KernelOrder::kTime:
      break;
  }
  return by([](Kernel k) { return k.work.time.ns; });
}

const char* order_words(KernelOrder order) {
  constexpr std::array kWords = {"GPU time", "FLOP", "launches", "GPU time of a launch", "name"};
  return kWords[static_cast<size_t>(order)];
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
  head.figures = screen_figures(report);
  const auto lost = lost_figures(report);
  head.figures.insert(head.figures.begin() + 2, lost.begin(), lost.end());
  Section phases = phases_part(report);
  // What the titles, headings and blank lines of three parts take, and the line at the end.
  const size_t used =
      head.above.size() + head.figures.size() + phases.table->rows.size() + phases.below.size() + 8;
  const size_t room = kMostLines > used ? kMostLines - used : 0;
  const size_t most = kernels.value_or(std::clamp(room, kFewestKernels, kUsualKernels));
  Section table = kernels_part(report, most, order);
  return {std::move(head), std::move(phases), std::move(table), more_part()};
}

}  // namespace flopinj::reduce
