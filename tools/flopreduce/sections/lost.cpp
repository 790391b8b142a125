// Where the peak went: from 100 % down to MFU, line by line.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "sections/advice.h"
#include "sections/parts/cells.h"
#include "sections/parts/said.h"
#include "sections/sections.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

// For people: without a formula all work that is not done again is in one line.
LostLines lines_for_people(const LostReport& lost, const LostRow& row) {
  return row.first == LostLine::kOtherFlop && !lost.formula
             ? LostLines{LostLine::kPadding, LostLine::kOtherFlop, LostLine::kModel}
             : row.lines();
}
Mark lost_marks(const LostReport& lost, LostLines lines) { return lost.marks.of(lines, lost.ns); }
Mark lost_marks(const LostReport& lost, const LostRow& row) {
  return lost_marks(lost, lines_for_people(lost, row));
}

const std::array<LostRow, kLostRows.size()>& lost_rows(const Report&) { return kLostRows; }

Figure ns_figure(const LostRow& row, const Report& report) {
  const LostReport& lost = report.lost;
  if (!lost.known()) return Figure::unknown(lost.missing);
  if (!lost.tells(row.last)) return Figure::unknown(lost.no_work);
  return lost.sum(row.lines());
}

Columns<LostRow> lost_columns() {
  Columns<LostRow> c;
  c.text("line", "line", &LostRow::key,
         "what device time went to; those without a parent add up to all of it. The last four "
         "are HFU, the line model is MFU");
  c.text(
      "parent", "parent",
      [](const LostRow& row) {
        return row.parent != nullptr ? std::optional(std::string(row.parent)) : std::nullopt;
      },
      "the line that this one is a part of");
  c.figure("ns", "time", Kind::kNanoseconds, ns_figure,
           "device time: of work what its FLOP take at peak, each precision's own");
  c.figure(
      "share", "share", Kind::kShare,
      [](const LostRow& row, const Report& report) {
        return ns_figure(row, report) / Figure::exact(report.lost.capacity_ns);
      },
      "share of wall time x devices; in simulated recordings without a clock, of busy time");
  const auto by_process = [](double std::pair<double, double>::*which) {
    return [which](const LostRow& row, const Report& report) {
      if (!report.lost.known()) return Figure::unknown(report.lost.missing);
      if (!report.lost.tells(row.last)) return Figure::unknown(report.lost.no_work);
      const auto shares = shares_by_process(report.lost, row);
      if (!shares) return Figure::unknown("one process");
      return Figure((*shares).*which, report.lost.marks.of(row.lines(), report.lost.ns));
    };
  };
  c.figure("share_low", "least share", Kind::kShare, by_process(&std::pair<double, double>::first),
           "of the process with the smallest share of its own time");
  c.figure("share_high", "largest share", Kind::kShare,
           by_process(&std::pair<double, double>::second), "of the process with the largest");
  c.figure(
      "left", "left", Kind::kShare,
      [](const LostRow& row, const Report& report) {
        if (!report.lost.known()) return Figure::unknown(report.lost.missing);
        if (report.lost.of_time() && row.last > LostLine::kUncounted)
          return Figure::unknown(report.lost.no_work);
        return report.lost.sum(row.rest()) / Figure::exact(report.lost.capacity_ns);
      },
      "what the lines up to this one leave");
  c.figure(
      "step_ns", "time of a step", Kind::kNanoseconds,
      [](const LostRow& row, const Report& report) {
        if (report.lost.known() && report.lost.device_steps == 0)
          return Figure::unknown("no training steps");
        return ns_figure(row, report) *
               (1 / static_cast<double>(std::max<uint64_t>(1, report.lost.device_steps)));
      },
      "the same for each training step of a device");
  return c;
}

// A line of one part.
struct LostPartLine {
  LostReport::Part part;
  const LostRow* line;
  Figure ns;
};
struct LostStepLine {
  LostReport::Step step;
  const LostRow* line;
  Figure ns;
};
// Calls visit(row, figure) with each line that has some time.
template <typename Visit>
void each_line(const LostReport& lost, const std::string& phase, const LostNs& ns, Visit&& visit) {
  for (const LostRow& row : kLostRows)
    if (row.first == row.last && ns[place_of(row.first)] > 0)
      visit(&row, lost.sum(row.lines(), phase, ns));
}

template <typename Row>
void add_lost_line(Columns<Row>& c) {
  c.text(
      "line", "line", [](const Row& row) { return row.line->key; }, "as in lost");
  c.figure("ns", "time", Kind::kNanoseconds, &Row::ns, "lines add up to those of lost");
}
// Which device, of which process.
template <typename Row, typename F>
void add_lost_device(Columns<Row>& c, F of) {
  c.count(said::kProcessNumber, [of](const Row& row) { return std::invoke(of, row).trace; });
  c.count(said::kRank, [of](const Row& row, const Report& report) {
    return report.traces[std::invoke(of, row).trace].rank();
  });
  c.count(said::kOrdinal, [of](const Row& row) {
    const uint32_t id = std::invoke(of, row).device;
    return id > 0 ? std::optional(id - 1) : std::nullopt;
  });
}

Columns<LostPartLine> lost_part_columns() {
  Columns<LostPartLine> c;
  add_lost_device(c, &LostPartLine::part);
  c.text(
      "phase", "phase", [](const LostPartLine& row) { return text_or_null(row.part.phase); },
      "phase of the kernels; idle time has the phase of the kernel after it");
  c.text("layer", "layer", [](const LostPartLine& row) { return text_or_null(row.part.layer); });
  add_lost_line(c);
  return c;
}

Columns<LostStepLine> lost_step_columns() {
  Columns<LostStepLine> c;
  add_lost_device(c, &LostStepLine::step);
  c.count(
      "step", "step", [](const LostStepLine& row) { return row.step.first; },
      "number of the step, 0 before all of them; idle time before its first kernel is in it");
  c.count(
      "steps", "steps", [](const LostStepLine& row) { return row.step.steps; },
      "that are one row, where a recording has many");
  add_lost_line(c);
  return c;
}

// Phases without their layers.
struct LostPhaseLine {
  std::string phase;
  const LostRow* line;
  Figure ns;
};
std::vector<LostPhaseLine> lost_phase_lines(const Report& report) {
  std::vector<LostPhaseLine> lines;
  for (const auto& of : ns_by_phase(report.lost))
    each_line(report.lost, of.first, of.second, [&](const LostRow* row, Figure figure) {
      lines.push_back({of.first, row, std::move(figure)});
    });
  return lines;
}
Columns<LostPhaseLine> lost_phase_columns() {
  Columns<LostPhaseLine> c;
  c.text("phase", "phase", or_null(&LostPhaseLine::phase),
         "phase of the kernels; idle time has the phase of the kernel after it");
  add_lost_line(c);
  return c;
}

// Products in fp32 may be near to their peak, and far from the one that others have.
std::string fp32_note(const Report& report) {
  const LostReport& lost = report.lost;
  constexpr double kMatters = 0.05;
  if (lost.share(lost.fp32_ns) < kMatters) return "";
  for (const DevicePeaksReport& device : report.utilization.devices)
    for (const PeakUsed& peak : device.peaks)
      if (peak.precision == "fp32" && peak.per_second > 0 && device.bf16.value_or(0) > 0)
        return "fp32 products: " + lost_share_words(lost, lost.fp32_ns) +
               " % of the device time, at fp32's peak; bf16 has " +
               fixed(*device.bf16 / peak.per_second, 1) + " times that peak.";
  return "";
}

// What kernels without a FLOP count take at peak, by their operators' formulas.
Figure uncounted_at_peak(const Report& report) {
  const ByFormula& by_formula = report.total.by_formula;
  if (!report.lost.known() || by_formula.launches == 0) return {};
  Work uncounted;
  uncounted.launches = uncounted.unmeasured = report.total.incomplete();
  uncounted.by_formula = by_formula;
  return least_ns_or_formula(uncounted, report);
}

std::string by_formula_note(const Report& report) {
  const Figure share =
      share_of_peak(uncounted_at_peak(report), Figure::exact(report.lost.capacity_ns));
  if (!share.known()) return "";
  return "Of kernels without a FLOP count, by their operators' formulas, " + share_text(share) +
         " of the device time is work at peak.";
}

// What shares are of, and what else is known of all lines.
std::vector<const LostReport*> lost_wholes(const Report& report) { return {&report.lost}; }
using LostWhole = const LostReport*;
Columns<LostWhole> lost_whole_columns() {
  Columns<LostWhole> c;
  const auto ns = [](uint64_t LostReport::*of) {
    return [of](LostWhole lost) { return lost->known() ? Figure::exact(lost->*of) : Figure(); };
  };
  c.figure("capacity_ns", "capacity", Kind::kNanoseconds, ns(&LostReport::capacity_ns),
           "wall time of processes, once for each of their devices");
  c.flag(
      "busy_time", "of busy time", [](LostWhole lost) { return lost->of_busy_time; },
      "it is the time in which some kernel ran instead: simulated, and without a clock");
  c.figure("hidden_communication_ns", "hidden communication", Kind::kNanoseconds,
           ns(&LostReport::hidden_ns), "communication while other kernels ran: it costs nothing");
  const auto of_work = [](uint64_t LostReport::*of, Mark LostReport::*marks) {
    return [of, marks](LostWhole lost) {
      if (!lost->known()) return Figure();
      return lost->of_time() ? Figure::unknown(lost->no_work)
                             : Figure(u128{lost->*of}, lost->*marks);
    };
  };
  c.figure("saved_ns", "saved", Kind::kNanoseconds,
           of_work(&LostReport::saved_ns, &LostReport::saved_marks),
           "of the model's FLOP by formula, at peak: what operators did without");
  c.figure(
       "uncounted_formula_ns", "by formula", Kind::kNanoseconds,
       [](LostWhole, const Report& report) { return uncounted_at_peak(report); },
       "of line uncounted, what the FLOP of its operators' formulas take at peak")
      .range();
  c.count(
      "skipped_steps", "skipped steps", [](LostWhole lost) { return lost->skipped_steps; },
      "of each process (--skip-steps): in no line, as is all time outside of steps");
  c.figure("fp32_products_ns", "fp32 products", Kind::kNanoseconds,
           of_work(&LostReport::fp32_ns, &LostReport::fp32_marks),
           "of the work, at the peak of fp32: products outside of the tensor cores");
  c.text(
      "missing", "missing",
      [](LostWhole lost) { return text_or_null(lost->known() ? lost->no_work : lost->missing); },
      "why there are no lines, or none of work");
  return c;
}

const TableSource kLostTable("lost", "where the peak went: from all device time at peak to MFU",
                             lost_columns, lost_rows);
const TableSource kLostWhole("lost_capacity", "what the shares of lost are of", lost_whole_columns,
                             lost_wholes);
Columns<Advice> advice_columns() {
  Columns<Advice> c;
  c.text("line", "line", &Advice::line,
         "of lost; precision: products in a slower format than the device has");
  c.text("advice", "advice", &Advice::words, "what is known of it, and what helps");
  c.figure("gain_ns", "gain", Kind::kNanoseconds, &Advice::gain_ns,
           "device time that it would give back at the most; gains do not add up");
  c.figure(
      "gain_share", "of the time", Kind::kShare,
      [](const Advice& row, const Report& report) { return row.share(report.lost); },
      "share of all device time");
  c.text(
      "condition", "said where", [](const Advice& row) { return row.condition; },
      "when it is said, and what the gain is");
  c.text(
      "page", "page", [](const Advice& row) { return row.page; }, "of the documentation");
  return c;
}
const TableSource kAdvice("advice", "what could be done about where the peak went, and its gain",
                          advice_columns, advice);

Columns<LostReport::HostTime> lost_host_columns() {
  Columns<LostReport::HostTime> c;
  c.text("range", "range", or_null(&LostReport::HostTime::range),
         "that the launching thread was in; null: in none");
  c.exact("ns", "time", Kind::kNanoseconds, &LostReport::HostTime::ns,
          "of idle_host_late, in pauses of a thread from about 100 us on");
  return c;
}

const TableSource kLostHost("lost_host", "where the host was while it was late", lost_host_columns,
                            [](const Report& report) { return report.lost.host; });
const TableSource kLostPhases("lost_phases", "where the peak went by phase", lost_phase_columns,
                              lost_phase_lines);
void each_lost_part(const Report& report, const std::function<void(const LostPartLine&)>& visit) {
  for (const LostReport::Part& part : report.lost.parts)
    each_line(report.lost, part.phase, part.ns, [&](const LostRow* row, Figure ns) {
      visit({part, row, std::move(ns)});
    });
}
void each_lost_step(const Report& report, const std::function<void(const LostStepLine&)>& visit) {
  for (const LostReport::Step& step : report.lost.steps)
    for (const LostRow& row : kLostRows)
      if (row.first == row.last && step.ns[place_of(row.first)] > 0)
        visit({step, &row, report.lost.marks.sum(row.lines(), step.ns)});
}
const TableSource kLostParts =
    TableSource::pass_on("lost_parts", "where the peak went by device, phase and layer",
                         lost_part_columns, each_lost_part)
        .of_facts();
const TableSource kLostSteps =
    TableSource::pass_on("lost_steps", "where the peak went by device and training step",
                         lost_step_columns, each_lost_step)
        .of_facts();

// Shares as people add them up: "left" is rounded, a share is the difference of two of them.
class PrintedShares {
 public:
  explicit PrintedShares(const LostReport& lost) : lost_(lost) {}
  // In tenths of a percent.
  int64_t take(uint64_t ns) {
    ns_ += ns;
    const int64_t before = left_;
    left_ = std::llround(1000 * (1 - lost_.share(ns_)));
    return before - left_;
  }
  static std::string text(int64_t tenths) {
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
  }
  std::string left() const { return text(left_); }

 private:
  const LostReport& lost_;
  uint64_t ns_ = 0;
  int64_t left_ = 1000;
};

// "long gaps 10.5, between steps 5.7": the parts that matter, largest first.
std::string lost_parts_note(const LostReport& lost, const LostRow& group) {
  std::vector<const LostRow*> parts;
  for (const LostRow& row : kLostRows)
    if (row.parent != nullptr && std::string_view(row.parent) == group.key &&
        lost.share(ns_of(lost.ns, row)) >= 0.001)
      parts.push_back(&row);
  std::ranges::stable_sort(parts, std::greater<>(),
                           [&](const LostRow* row) { return ns_of(lost.ns, *row); });
  constexpr size_t kShown = 2;
  std::string note;
  for (size_t i = 0; i < std::min(kShown, parts.size()); ++i)
    note +=
        (note.empty() ? "" : ", ") + std::string(parts[i]->words) + " " +
        marked_text(lost_marks(lost, *parts[i]), lost_share_words(lost, ns_of(lost.ns, *parts[i])));
  return note;
}

// "= HFU 54.4 %", as the first screen has it.
std::string total_note(const char* name, const UtilizationMethod* method, const LostReport& lost) {
  if (lost.skipped_steps > 0) return std::string("= ") + name + " of these steps";
  if (method == nullptr || !method->wall.known()) return "";
  return std::string("= ") + name + " " + share_text(method->wall);
}

std::string lost_note(const LostRow& row, const Report& report) {
  const LostReport& lost = report.lost;
  switch (row.last) {
    case LostLine::kCommunication:
      return lost.hidden_ns > 0 ? lost_share_words(lost, lost.hidden_ns) + " more is hidden" : "";
    case LostLine::kUncounted:
      return lost.no_work;
    case LostLine::kInteger:
      return "OP, which are no FLOP";
    case LostLine::kProfiler:
      return lost.of_time() ? "" : total_note("HFU", report.utilization.hfu(), lost);
    case LostLine::kRecompute:
      return "takes " + lost_share_words(lost, lost_phase_ns(lost, "recompute")) + " of the time";
    case LostLine::kPadding:
      return lost.given_formula ? "and other work in phases of the model" : "";
    case LostLine::kModel:
      return total_note("MFU", report.utilization.mfu(), lost) +
             (lost.saved_ns > 0 ? ", " + lost_share_words(lost, lost.saved_ns) + " of it saved"
                                : "");
    default:
      return lost_parts_note(lost, row);
  }
}

// "3.1 to 9.4", where processes differ.
std::string by_process_words(const LostReport& lost, const LostRow& row) {
  const auto shares = shares_by_process(lost, row);
  if (!shares) return "";
  const std::string least = fixed(100 * shares->first, 1), most = fixed(100 * shares->second, 1);
  return least == most ? "" : least + " to " + most;
}

// Whether people see the row.
bool lost_shown(const LostRow& row, const LostReport& lost) {
  if (row.parent != nullptr) return false;
  if (row.last == LostLine::kModel) return lost.formula;
  return (row.last == LostLine::kProfiler && !lost.of_time()) || ns_of(lost.ns, row) > 0;
}

// The last one that they see.
LostLine last_shown(const LostReport& lost) {
  if (lost.of_time())
    return lost.at(LostLine::kProfiler) > 0 ? LostLine::kProfiler : LostLine::kUncounted;
  return lost.formula ? LostLine::kModel : LostLine::kOtherFlop;
}

// ", without the first 5 steps"
std::string without_steps(const LostReport& lost) {
  if (lost.skipped_steps == 0) return "";
  return ", without the first " +
         (lost.skipped_steps == 1 ? "step" : to_grouped(lost.skipped_steps) + " steps");
}

Section lost_section(const Report& report) {
  const LostReport& lost = report.lost;
  if (report.total.launches == 0) return {};
  Section out{"Where the peak went", {}, std::nullopt, {}};
  if (!lost.known()) {
    out.above.emplace_back("  not known: " + lost.missing, Tone::kDim);
    return out;
  }
  if (lost.of_time()) out.title = "Where the time went";
  out.title += ", of " + to_human_time(lost.capacity_ns) + " of " +
               (lost.of_busy_time ? "busy time" : "device time") + without_steps(lost);
  Table table{"lost_shares",
              {{"line", ""},
               {"share", "share", Kind::kText, Worth::kMain},
               {"left", "left", Kind::kText, Worth::kMain},
               {"note", "", Kind::kText, Worth::kUsual, "", false, true}}};
  const bool differ = std::ranges::any_of(kLostRows, [&](const LostRow& row) {
    return row.parent == nullptr && !by_process_words(lost, row).empty();
  });
  if (differ) table.columns.insert(table.columns.end() - 1, {"by_process", "by process"});
  PrintedShares printed(lost);
  for (const LostRow& row : kLostRows) {
    if (row.parent != nullptr) continue;
    const uint64_t ns = ns_of(lost.ns, row);
    const int64_t tenths = printed.take(ns);
    if (!lost_shown(row, lost)) continue;
    const std::string share = tenths == 0 && ns > 0 ? "<0.1 %" : PrintedShares::text(tenths);
    const bool last = row.last == last_shown(lost);
    table.rows.push_back(
        {words_of(row, lost), marked_text(lost_marks(lost, row), share),
         last ? std::string() : marked_text(lost_marks(lost, row.rest()), printed.left())});
    if (differ) table.rows.back().emplace_back(by_process_words(lost, row));
    table.rows.back().emplace_back(lost_note(row, report));
  }
  out.table = std::move(table);
  if (lost.of_time())
    out.below.emplace_back(
        std::string(report.total.flop_known() ? "  Without a peak" : "  Without FLOP counts") +
        " nothing is known of what kernels lose below peak, to padding, and to "
        "work that is done twice.");
  const std::vector<Advice> to_do = advice(report);
  const bool of_precision = std::ranges::count(to_do, "precision", &Advice::line) > 0;
  for (std::string note :
       {by_formula_note(report), of_precision ? std::string() : fp32_note(report)})
    if (!note.empty()) out.below.emplace_back("  " + std::move(note));
  for (const Advice& one : to_do) out.below.emplace_back("  " + one.sentence(lost));
  return out;
}

// "recomputation 13.7 %, others 2.9 %"
std::string largest_lost_words(const LostReport& lost,
                               std::vector<std::pair<int64_t, const LostRow*>> lines) {
  constexpr size_t kShown = 4;
  std::ranges::stable_sort(lines, std::greater<>(), &decltype(lines)::value_type::first);
  const size_t shown = lines.size() > kShown + 1 ? kShown : lines.size();
  std::string words;
  int64_t others = 0;
  LostLines other_lines;
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto& [tenths, row] = lines[i];
    if (i >= shown) {
      others += tenths;
      other_lines = other_lines | row->lines();
    } else
      words += (words.empty() ? "" : ", ") + std::string(row->words) + " " +
               marked_text(lost_marks(lost, *row), PrintedShares::text(tenths));
  }
  return words + (others > 0 ? ", others " + marked_text(lost_marks(lost, other_lines),
                                                         PrintedShares::text(others))
                             : "");
}

// A line of the ledger by phase and layer, all devices together.
struct LostShare {
  std::string phase, layer;
  Figure ns, of;
};
std::vector<LostShare> shares_of(const LostRow& row, const Report& report) {
  std::map<std::pair<std::string, std::string>, LostNs> sums;
  for (const auto& part : report.lost.parts)
    if (ns_of(part.ns, row) > 0) {
      LostNs& sum = sums[{part.phase, part.layer}];
      for (size_t line = 0; line < kLostLines; ++line) sum[line] += part.ns[line];
    }
  std::vector<LostShare> shares;
  for (const auto& [place, ns] : sums)
    shares.push_back({place.first, place.second, report.lost.sum(row.lines(), place.first, ns),
                      report.lost.sum(row.lines())});
  std::ranges::stable_sort(shares, std::greater<>(),
                           [](const LostShare& share) { return *share.ns.number(); });
  return shares;
}
Columns<LostShare> lost_share_columns() {
  Columns<LostShare> c;
  c.text("phase", "phase", or_null(&LostShare::phase),
         "phase of the kernels; idle time has the phase of the kernel after it");
  c.text("layer", "layer", or_null(&LostShare::layer));
  c.figure("ns", "time", Kind::kNanoseconds, &LostShare::ns, "they add up to the line's");
  c.figure(
      "line_share", "of the line", Kind::kShare,
      [](const LostShare& share) { return share.ns / share.of; }, "share of the line's time");
  return c;
}

// The line, and what it is made of.
std::vector<LostRow> with_parts(const LostRow& row) {
  std::vector<LostRow> rows;
  for (const LostRow& one : kLostRows)
    if (std::string_view(one.key) == row.key ||
        (one.parent != nullptr && std::string_view(one.parent) == row.key))
      rows.push_back(one);
  return rows;
}
TableSource lost_line(const LostRow& row) {
  return {"lost", "a line of where the peak went, and its parts", lost_columns,
          [row](const Report&) { return with_parts(row); }};
}
TableSource lost_places(const LostRow& row) {
  return {"lost_places", "a line of where the peak went, by phase and layer", lost_share_columns,
          [row](const Report& report) { return shares_of(row, report); }};
}

// For people.
Table lost_line_table(const LostRow& row, const Report& report) {
  const LostReport& lost = report.lost;
  const bool steps = lost.device_steps > 0;
  Table table{"lost_line",
              {{"line", ""},
               {"time", "time", Kind::kText, Worth::kMain},
               {"share", "share", Kind::kText, Worth::kMain}}};
  if (steps) table.columns.push_back({"step", "of a step", Kind::kText, Worth::kMain});
  if (!by_process_words(lost, row).empty())
    table.columns.push_back({"by_process", "by process", Kind::kText, Worth::kMain});
  const size_t columns = table.columns.size();
  table.columns.push_back({"meaning", "", Kind::kText, Worth::kUsual, "", false, true});
  for (const LostRow& one : with_parts(row)) {
    const uint64_t ns = ns_of(lost.ns, one);
    if (one.parent != nullptr && one.key != std::string_view(row.key) && ns == 0) continue;
    const Mark marks = lost_marks(lost, one);
    TableRow cells = {words_of(one, lost), marked_text(marks, to_human_time(ns)),
                      marked_text(marks, lost_share_words(lost, ns) + " %")};
    if (steps) cells.emplace_back(marked_text(marks, to_human_time(ns / lost.device_steps)));
    if (cells.size() < columns) cells.emplace_back(by_process_words(lost, one));
    cells.emplace_back(one.key == std::string_view(row.key) ? std::string() : one.meaning);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace

std::vector<Section> lost_line_sections(const LostRow& row, const Report& report) {
  const LostReport& lost = report.lost;
  std::vector<Section> sections(1);
  add_warnings(report, sections[0].above);
  sections[0].above.emplace_back(std::string("Where the peak went: ") + words_of(row, lost),
                                 Tone::kTitle);
  sections[0].above.emplace_back(std::string("  ") + row.meaning);
  if (!lost.known()) {
    sections[0].above.emplace_back("  not known: " + lost.missing, Tone::kDim);
    return sections;
  }
  if (!lost.tells(row.last)) {
    sections[0].above.emplace_back("  not known: " + lost.no_work, Tone::kDim);
    return sections;
  }
  if (row.last == LostLine::kOtherFlop && !lost.formula)
    sections[0].above.emplace_back(
        "  No formula is known: this is all work that is not done again.");
  sections[0].table = lost_line_table(row, report);
  const bool of_group = row.parent == nullptr && row.last == LostLine::kIdleShortGaps;
  // Times of a simulated GPU are no reason to change a program.
  if (ns_of(lost.ns, row) > 0 && !of_group && !report.simulated.value_or(true))
    if (std::string advice = advice_on(row, report); !advice.empty())
      sections[0].below.emplace_back("  " + std::move(advice));
  Section places = {"By phase and layer", {}, lost_places(row).for_people(report), {}};
  if (places.table && !places.table->rows.empty()) sections.push_back(std::move(places));
  if (row.last == LostLine::kIdleHostLate && !lost.host.empty())
    sections.push_back({"Where the host was meanwhile", {}, kLostHost.for_people(report), {}});
  return sections;
}

std::vector<Table> lost_line_tables(const LostRow& row, const Report& report) {
  return {lost_line(row).for_programs(report), lost_places(row).for_programs(report)};
}

std::vector<ShownFigure> lost_figures(const Report& report) {
  const LostReport& lost = report.lost;
  const UtilizationReport& u = report.utilization;
  const bool of_time = lost.known() && lost.of_time();
  if (of_time ? lost.of_busy_time : u.hfu() == nullptr || !u.hfu()->wall.known()) return {};
  const char* const name = of_time ? "Time lost" : "Peak lost";
  if (!lost.known()) return {{name, "-", lost.missing, Tone::kDim}};
  // Of time alone, idle time is all that there is to say: by its causes.
  const auto in_turn = [&](const LostRow& row) {
    const bool idle = row.last < LostLine::kCommunication;
    return of_time && idle ? row.first == row.last : row.parent == nullptr;
  };
  std::vector<std::pair<int64_t, const LostRow*>> lines;
  PrintedShares printed(lost);
  int64_t all = 0;
  for (const LostRow& row : kLostRows) {
    const bool work = row.first >= LostLine::kRecompute;
    if (!in_turn(row) || (work && !lost.formula) || row.first == LostLine::kModel) continue;
    const int64_t tenths = printed.take(ns_of(lost.ns, row));
    if (of_time && row.last == LostLine::kUncounted) continue;
    if (tenths > 0) lines.emplace_back(tenths, &row);
    all += tenths;
  }
  const Mark marks =
      of_time ? lost_marks(lost, LostLines::range(0, kLostLines).without({LostLine::kUncounted}))
              : inverse((lost.formula ? u.mfu() : u.hfu())->wall.marks());
  std::vector<ShownFigure> figures{
      {name, marked_text(marks, PrintedShares::text(all)),
       largest_lost_words(lost, std::move(lines)) + without_steps(lost)}};
  const std::vector<Advice> to_do = advice(report);
  if (!to_do.empty()) figures.push_back({"", "", to_do.front().sentence(lost)});
  std::string others;
  for (size_t i = 1; i < to_do.size(); ++i)
    others += (i == 1 ? "also " : ", ") + share_text(to_do[i].share(lost)) + " " + to_do[i].subject;
  if (!others.empty()) figures.push_back({"", "", others + " (--sections lost)", Tone::kTitle, 1});
  return figures;
}

const Subject kLost = {
    {&kLostTable, &kAdvice, &kLostWhole, &kLostHost, &kLostPhases, &kLostParts, &kLostSteps},
    lost_section};

}  // namespace flopinj::reduce
