// What `flopreduce TRACE` shows: the answer on one screen.
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "report/named_part.h"
#include "sections/notices.h"
#include "sections/parts/cells.h"
#include "sections/parts/short_name.h"
#include "sections/sections.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

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

ScreenProgram screen_program(const Report& report) {
  if (report.traces.empty()) return {};
  const TraceReport& first = report.traces.front();
  const std::string command = command_of(first.header);
  std::string who = first.name + seconds_text(first);
  if (report.traces.size() > 1) {
    std::set<std::string> hosts;
    for (const TraceReport& t : report.traces) hosts.insert(t.header.hostname());
    const std::string where =
        hosts.size() == 1 ? *hosts.begin() : to_grouped(hosts.size()) + " hosts";
    who = to_grouped(report.traces.size()) + " processes" + (where.empty() ? "" : " on " + where) +
          seconds_text(first);
  }
  who += jobs_text(report);
  constexpr size_t kMostCommand = 60;
  std::map<std::string, size_t> devices;
  for (const DeviceReport& d : report.devices)
    ++devices[d.facts.name().empty() ? kNoDeviceName : d.facts.name()];
  std::string gpus;
  for (const auto& [name, count] : devices)
    gpus += (gpus.empty() ? "" : ", ") + to_grouped(count) + " x " + name;
  return {command.empty() ? "(no command line)" : shorten(printable(command), kMostCommand), who,
          gpus};
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

// " (3 of 21)"
std::string of_all(size_t shown, size_t all) {
  return shown < all ? " (" + to_grouped(shown) + " of " + to_grouped(all) + ")" : "";
}

Section phases_part(const Report& report, size_t most) {
  Table table{"screen_phases",
              {{"phase", "phase"},
               {"flop", "FLOP", Kind::kFlop, Worth::kMain},
               {"flop_share", "share", Kind::kShare, Worth::kMain},
               {"gpu_time_ns", "GPU time", Kind::kNanoseconds, Worth::kMain},
               {"gpu_time_share", "share", Kind::kShare, Worth::kMain},
               {"flop_per_s", "FLOP/s", Kind::kRate},
               {"utilization", "of peak", Kind::kShare}}};
  const auto phases = largest_first(report.phases, [](const auto& p) { return p.work.time.ns; });
  for (size_t i = 0; i < std::min(most, phases.size()); ++i) {
    const PhaseReport& p = *phases[i];
    const Mark mark = phase_mark(p, report);
    table.rows.push_back({p.name, flop_of(p.work).with(mark),
                          flop_share(p.work, whole_of_phase(p, report)).with(mark),
                          gpu_time_of(p.work), time_share(p.work, whole_of_phase(p, report)),
                          dashed(rate_of(p.work).with(mark)),
                          dashed(utilization_of(p.work).with(mark), kAbovePeak)});
  }
  table.brief = true;
  const std::string names = report.named.launches_without > 0 ? names_text(report) : "";
  return {
      "Phases" + of_all(table.rows.size(), phases.size()) + (names.empty() ? "" : ", of " + names),
      {},
      std::move(table),
      {}};
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
  for (size_t i = 0; i < shown; ++i) names.push_back(report.kernels[kernels[i].ids[0]].name);
  names = short_kernel_names(names);
  for (size_t i = 0; i < shown; ++i) {
    const Work& w = kernels[i].work;
    const auto bound = bound_by(
        w, slowest_precision(kernels[i].flop, report.precisions, report.utilization.devices));
    table.rows.push_back({names[i], time_share(w, report.total), flop_share(w, report.total),
                          Figure::exact(w.launches), gpu_time_each(w), dashed(rate_of(w)),
                          dashed(intensity_of(w)), bound ? Cell(*bound) : Cell::none()});
  }
  table.brief = true;
  return {std::string("Kernels by ") + order_words(order) + of_all(shown, kernels.size()),
          {},
          std::move(table),
          {}};
}

Section more_part() {
  return {"",
          {Line("More: --all; --sections lost,roofline,layers,ranges,time; --format html -o FILE",
                Tone::kDim)
               .in_lines(1)},
          std::nullopt,
          {}};
}

}  // namespace

std::vector<WorkGroup> kernels_by(const Report& report, KernelOrder order) {
  std::vector<WorkGroup> kernels = group(report, {by::kKernel});
  const auto sort = [&](auto of) { std::ranges::stable_sort(kernels, std::greater<>(), of); };
  using Kernel = const WorkGroup&;
  switch (order) {
    case KernelOrder::kFlop:
      sort([](Kernel k) { return k.work.flop; });
      break;
    case KernelOrder::kLaunches:
      sort([](Kernel k) { return k.work.launches; });
      break;
    case KernelOrder::kEach:
      sort([](Kernel k) {
        return k.work.time.ns / std::max<uint64_t>(1, k.work.launches - k.work.time.unknown);
      });
      break;
    case KernelOrder::kName:
      std::ranges::stable_sort(kernels, {}, [&](Kernel k) -> const std::string& {
        return report.kernels[k.ids[0]].name;
      });
      break;
    case KernelOrder::kTime:
      sort([](Kernel k) { return k.work.time.ns; });
      break;
  }
  return kernels;
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

namespace {

// Rows of tables, and lines of a figure's note: 0 for any.
struct ScreenRoom {
  size_t phases, kernels, note;
};

// What gives way in turn.
constexpr ScreenRoom kRooms[] = {{6, 5, 0}, {6, 4, 0}, {6, 3, 0}, {6, 5, 1}, {6, 4, 1}, {6, 3, 1},
                                 {5, 3, 1}, {4, 3, 1}, {4, 2, 1}, {3, 2, 1}, {3, 1, 1}, {2, 1, 1}};
constexpr size_t kMostLines = 30;

// The first that fits; the last one may not. More kernels, where the user wants them, take no room
// of others.
std::pair<ScreenRoom, bool> fitting_room(const Report& report, const Section& head,
                                         const std::vector<Line>& notes,
                                         std::optional<size_t> most_kernels,
                                         const std::function<size_t(const Line&)>& lines_of) {
  size_t fixed = 2 * 3 + 2;  // titles and headings of tables, the last line; a gap before each
  for (const auto* lines : {&head.above, &head.below})
    for (const Line& line : *lines) fixed += lines_of(line);
  for (const ShownFigure& figure : head.figures) fixed += lines_of(figure_line(figure));
  size_t whole = 0;
  for (const Line& note : notes) whole += lines_of(note);
  const auto lines = [&](const ScreenRoom& room) {
    return fixed + (room.note > 0 ? notes.size() * room.note : whole) +
           std::min(room.phases, report.phases.size()) +
           std::min({room.kernels, most_kernels.value_or(room.kernels), report.kernels.size()});
  };
  ScreenRoom room =
      *std::ranges::find_if(std::begin(kRooms), std::end(kRooms) - 1,
                            [&](const ScreenRoom& some) { return lines(some) <= kMostLines; });
  const bool fits = lines(room) <= kMostLines;
  room.kernels = most_kernels.value_or(room.kernels);
  return {room, fits};
}

}  // namespace

// The answer is among the first twelve lines of a terminal of 60 columns: what is above it is
// short, and other warnings are below the figures. Where nothing was measured, why not is the
// answer.
std::vector<Section> screen(const Report& report, KernelOrder order,
                            std::optional<size_t> most_kernels,
                            const std::function<size_t(const Line&)>& lines_of) {
  constexpr size_t kWarningsAbove = 2, kLinesOfOne = 2;
  const bool unmeasured = notice_of_no_counts(report);
  Section head;
  for (Line& line : screen_warnings(report)) {
    const bool above = head.above.size() < kWarningsAbove;
    if (above && !unmeasured) line.in_lines(kLinesOfOne);
    (above ? head.above : head.below).push_back(std::move(line));
  }
  const auto [command, where, gpus] = screen_program(report);
  head.above.push_back(Line(command, Tone::kTitle).in_lines(1));
  head.above.push_back(Line(where).then(gpus.empty() ? "" : ", " + gpus, Tone::kDim).in_lines(1));
  head.above.emplace_back("");
  // Shares of peak, what was lost of it and what to do have room of their own. Of all else, lines
  // are cut where the screen is full.
  head.figures = screen_figures(report);
  std::vector<ShownFigure> others(head.figures.begin() + 2, head.figures.end());
  head.figures.resize(2);
  for (ShownFigure& figure : head.figures) figure.most = figure.value == "-" ? 2 : 1;
  for (const ShownFigure& figure : lost_figures(report)) {
    head.figures.push_back(figure);
    if (figure.most == 0) head.figures.back().most = 3;
  }
  std::vector<Line> origin;
  add_origin(report, origin);
  std::vector<Line> notes = origin;
  for (const ShownFigure& figure : others) notes.push_back(figure_line(figure));
  auto [room, fits] = fitting_room(report, head, notes, most_kernels, lines_of);
  // What else could be done has a line where there is one.
  if (!fits && head.figures.size() == 5) {
    head.figures.pop_back();
    room = fitting_room(report, head, notes, most_kernels, lines_of).first;
  }
  for (ShownFigure& figure : others) {
    figure.most = room.note;
    head.figures.push_back(std::move(figure));
  }
  for (Line& line : origin) head.below.push_back(std::move(line.in_lines(room.note)));
  return {std::move(head), phases_part(report, room.phases),
          kernels_part(report, room.kernels, order), more_part()};
}

}  // namespace flopinj::reduce
