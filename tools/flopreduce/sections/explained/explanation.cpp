#include "sections/explained/explanation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <span>

#include "sections/notices.h"
#include "sections/parts/cells.h"
#include "sections/parts/work_columns.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

std::string shape_of(const SignatureReport& s) {
  const auto dims = [](const std::array<uint32_t, 3>& d) {
    return std::to_string(d[0]) + "x" + std::to_string(d[1]) + "x" + std::to_string(d[2]);
  };
  std::string text = "grid " + dims(s.grid) + " block " + dims(s.block);
  if (s.cluster[0] != 0) text += " cluster " + dims(s.cluster);
  if (s.dynamic_shared_bytes != 0)
    text += " shared " + std::to_string(s.dynamic_shared_bytes) + " B";
  return text;
}

// A whole number to its last digit, so that people can work it out again.
std::string number(double value) {
  constexpr double kMostWhole = 9007199254740992;  // 2^53
  if (value >= 0 && value <= kMostWhole && value == std::floor(value))
    return to_grouped(static_cast<uint64_t>(value));
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.10g", value);
  return text.data();
}

// "1 sample", "1,234 samples".
std::string counted(uint64_t n, const std::string& one, const std::string& many = {}) {
  return to_grouped(n) + " " + (n == 1 ? one : many.empty() ? one + "s" : many);
}

std::string interval_text(const Work& work, uint64_t mixed_estimates = 0) {
  if (mixed_estimates > 0)
    return "an estimate; intervals are of all precisions together, not of one";
  if (work.varying == 0 && work.agreeing > 0)
    return "extrapolated from samples that agree: at least " +
           counted(work.fewest_windows, "window") + " of each kernel";
  if (work.varying == 0)
    return work.doubtful > 0 ? "of launches that were all measured"
                             : "exact: every launch was measured";
  const auto interval = work.interval();
  if (!interval && work.uncertainty.elsewhere_launches() > 0)
    return "an estimate; no interval, for kernels also ran where nothing was sampled";
  if (!interval) return "an estimate; too few samples for an interval";
  return "an estimate; 95 % interval " + to_grouped(interval->low) + " to " +
         to_grouped(interval->high);
}

std::string flop_text(const Work& work) {
  const Figure flop = flop_of(work);
  return flop.known() ? marked_text(flop.marks(), to_grouped(work.flop) + " FLOP") : flop.why();
}

bool is_precision(const Explanation& e) { return e.kind == FigureKind::kPrecision; }

Section head(const Report& report, const Explanation& e) {
  Section s;
  if (e.kind == FigureKind::kBackwardForward)
    s.above.emplace_back("ratio: FLOP of backward / FLOP of forward", Tone::kTitle);
  else if (e.kind == FigureKind::kShareOfPeak)
    s.above.emplace_back("utilization: the least time that peaks allow / the time taken",
                         Tone::kTitle);
  else
    s.above.push_back(
        Line(std::string(word(e.kind)) + " " + (e.name == word(e.kind) ? "" : e.name + " ") + "= ")
            .then(flop_text(e.work), Tone::kTitle)
            .then(" in " + to_grouped(e.work.launches) + " launches"));
  if (report.simulated.value_or(false))
    s.above.emplace_back("SIMULATED: recorded on simgpu; no number here was read on hardware.",
                         Tone::kWarn);
  s.above.emplace_back("One fused multiply-add counts " + std::to_string(report.fma) + ".");
  if (e.work.flop_known())
    s.above.emplace_back("The figure is " + interval_text(e.work, e.mixed_estimates) + ".");
  if (e.work.doubtful > 0)
    s.above.emplace_back("At most " + to_grouped(e.work.doubtful) +
                         " of it are of instructions that only load constants or move values.");
  if (e.work.left_out > 0)
    s.above.emplace_back(to_grouped(e.work.left_out) +
                         " FLOP are left out: instructions that were counted compute less.");
  if (e.work.unmeasured > 0)
    s.above.emplace_back(
        to_grouped(e.work.unmeasured) + " launches have no count and are not in it.", Tone::kWarn);
  return s;
}

Section sum_section(const Explanation& e) {
  Table table{"signatures",
              {{"kernel", "kernel"},
               {"shape", "shape", Kind::kText, Worth::kDetail},
               {"launches", "launches", Kind::kCount, Worth::kMain},
               {"flop_per_launch", "each", Kind::kExactFlop},
               {"flop", "FLOP", Kind::kFlop, Worth::kMain},
               {"flop_exact", "exact", Kind::kExactFlop},
               {"from", "from"}}};
  table.long_list = true;
  for (const Contribution& c : e.contributions) {
    const SignatureReport& s = *c.signature;
    const Mark estimate = mark_if(s.flop_mean.has_value(), Mark::kEstimate);
    Figure each = Figure::exact(s.flop_per_launch);
    if (s.flop_mean) each = {static_cast<u128>(*s.flop_mean + 0.5), estimate};
    if (is_precision(e) && c.work.flop_known() && c.work.launches > 0)
      each = {c.work.flop / c.work.launches, estimate};
    const std::string from =
        !s.unmeasured_reason.empty() ? s.unmeasured_reason
        : s.rounded                  ? "rounded by the counter"
        : s.varying      ? counted(s.samples, "sample") + " in " + counted(s.windows, "window")
        : s.samples == 1 ? "1 sample"
                         : counted(s.samples, "sample") + ", all equal";
    const std::string in_graphs =
        s.unmeasured_reason.empty() && s.graph_samples > 0
            ? "; " + (s.graph_samples == s.samples ? "all" : to_grouped(s.graph_samples)) +
                  " in graphs"
            : "";
    table.rows.push_back({s.kernel, shape_of(s), Figure::exact(c.work.launches), each,
                          flop_cell(c.work), exact_cell(c.work), from + in_graphs});
  }
  return {"Sum over signatures", {}, std::move(table), {}};
}

// Why the launches are of their phase.
Section rules_section(const Report& report, const Explanation& e) {
  Section section{"Phase rules used", {}, std::nullopt, {}};
  bool other = false;
  for (const ByRule& by : e.rules) {
    section.above.emplace_back("  " + by.rule->phase + ": " +
                               counted(by.work.launches, "launch", "launches") + ", " +
                               flop_text(by.work) + ": " + by.rule->rule);
    other = other || by.rule->phase == "forward" || by.rule->phase == "other";
  }
  if (other) section.below = unclear_lines(report);
  return section;
}

// How much of a metric's instructions is arithmetic, as far as the kernel's code shows.
std::string code_text(const MetricReport& m) {
  const InstructionCounts& i = m.instructions;
  if (m.least == m.numerator && m.full == m.numerator) return {};
  if (i.none + i.one == 0)
    return "code not read: as little as 0 where it loads constants, moves or converts values";
  std::string text;
  const auto add = [&](uint64_t n, const char* what) {
    if (n > 0) text += (text.empty() ? "" : ", ") + to_grouped(n) + what;
  };
  add(i.none, " without arithmetic");
  add(i.one, " of one operation");
  add(i.all, " of all it can");
  return "in the code: " + text +
         (m.least < m.numerator ? "; how often each ran is not known" : "");
}

// counted x weight = FLOP. Names of metrics differ in a letter in the middle, so none is shortened.
void add_metric(std::vector<Line>& lines, const MetricReport& m, uint64_t launches) {
  const std::string sample = m.min == m.max
                                 ? number(m.mean) + " in each of "
                                 : "mean " + number(m.mean) + " (" + number(m.min) + " to " +
                                       number(m.max) + ", deviation " + number(m.spread) + ") of ";
  const std::string weight =
      std::to_string(m.numerator) +
      (m.denominator > 1 ? "/" + std::to_string(m.denominator) : std::string());
  lines.emplace_back("  " + m.metric);
  lines.emplace_back("      " + sample + counted(m.samples, "sample") + "; " +
                     to_grouped(m.counted) + " in " + counted(launches, "launch", "launches") +
                     "; x " + weight + " = " + to_grouped(m.flop) + " of " + m.precision);
  if (const std::string code = code_text(m); !code.empty()) lines.emplace_back("      " + code);
}

// The derivation of one signature.
Section signature_section(const Explanation& e, const Contribution& c) {
  const SignatureReport& s = *c.signature;
  Section section;
  section.title = s.kernel + "  " + shape_of(s);
  section.above.emplace_back("  on " + s.chip + ", signature " + hash_text(s.stable_hash) +
                             ", parameters " + s.parameters);
  std::string ranges;
  for (const auto& range : c.ranges) ranges += (ranges.empty() ? "" : ", ") + range;
  if (c.ranges_left_out > 0) ranges += " and " + std::to_string(c.ranges_left_out) + " more";
  section.above.emplace_back("  in " + ranges);
  if (!s.unmeasured_reason.empty()) {
    section.above.emplace_back(
        "  not measured: " + s.unmeasured_reason + ": " + reason_words(s.unmeasured_reason),
        Tone::kWarn);
    return section;
  }
  size_t zeros = 0;
  for (const MetricReport& m : s.metrics) {
    if (is_precision(e) && m.precision != e.name) continue;
    if (m.counted == 0)
      ++zeros;
    else
      add_metric(section.above, m, s.work.launches);
  }
  if (zeros > 0) section.above.emplace_back("  " + counted(zeros, "metric") + " counted 0");
  if (s.metrics.empty()) section.above.emplace_back("  no metric counts work here: 0 FLOP");
  if (s.rounded)
    section.above.emplace_back(
        "  Samples agree, but were rounded by the counter (no whole numbers below 2^53): " +
        number(s.flop_mean.value_or(0)) + " FLOP a launch.");
  else if (s.varying)
    section.above.emplace_back(
        "  Samples disagree: each window stands for the launches nearest to "
        "it. " +
        number(s.flop_mean.value_or(0)) + " FLOP a launch, spread " +
        (s.flop_spread ? number(*s.flop_spread) : "unknown") +
        (is_precision(e) ? ", of all precisions; all " : "; all ") + to_grouped(s.work.launches) +
        " launches: " + interval_text(s.work) + ".");
  else
    section.above.emplace_back("  Samples agree: all " + to_grouped(s.work.launches) +
                               " launches are counted with their value.");
  if (c.work.launches != s.work.launches)
    section.above.emplace_back("  Of these, " + to_grouped(c.work.launches) +
                               " launches are asked for: " + flop_text(c.work) + ", " +
                               interval_text(c.work, e.mixed_estimates) + ".");
  return section;
}

Section measured_ledger_section(const Report& report) {
  const LedgerLine& l = report.ledger.total;
  return {"Ledger",
          {Line("  " + to_grouped(l.launches) + " launches made = " + to_grouped(l.measured) +
                " measured + " + to_grouped(l.extrapolated) + " extrapolated + " +
                to_grouped(l.unmeasured) + " unmeasured + " + to_grouped(l.dropped) + " dropped")},
          std::nullopt,
          {}};
}

}  // namespace

std::vector<Section> explanation_sections(const Report& report, const Explanation& e, size_t top) {
  std::vector<Section> sections{head(report, e)};
  const auto append = [&](std::vector<Section> more) {
    for (auto& section : more) sections.push_back(std::move(section));
  };
  if (e.kind == FigureKind::kBackwardForward) append(explained_ratio(report));
  if (e.kind == FigureKind::kShareOfPeak) append(explained_utilization(report));
  sections.push_back(sum_section(e));
  if (!e.rules.empty()) sections.push_back(rules_section(report, e));
  for (size_t i = 0; i < std::min(top, e.contributions.size()); ++i)
    sections.push_back(signature_section(e, e.contributions[i]));
  append(explained_peaks(report, e));
  sections.push_back(measured_ledger_section(report));
  return sections;
}

namespace {

Columns<Explanation> explained_columns() {
  Columns<Explanation> c;
  c.text(
      "kind", "kind", [](const Explanation& e) { return word(e.kind); },
      "total, ratio, utilization, precision, phase, layer, operator, kernel or range");
  c.text("name", "name", &Explanation::name);
  add_flop(c, &Explanation::work);
  add_launches(c, &Explanation::work);
  add_gpu_time(c, &Explanation::work);
  add_work_details(c, &Explanation::work);
  return c;
}

// A report of the launches that belong to the figure.
Report part_of(const Report& report, const Explanation& e) {
  Report part;
  part.precisions = report.precisions;
  part.total = e.work;
  for (const Contribution& c : e.contributions) {
    part.signatures.push_back(*c.signature);
    part.signatures.back().work = c.work;
  }
  for (const ByRule& by : e.rules) part.rules.push_back({by.rule->rule, by.rule->phase, by.work});
  return part;
}

// Intervals are of all precisions together, not of one.
void leave_out_intervals(Table& table) {
  for (size_t c = 0; c < table.columns.size(); ++c)
    if (const std::string_view key = table.columns[c].key; key == "flop_low" || key == "flop_high")
      for (TableRow& row : table.rows) row[c] = Cell::none();
}

}  // namespace

std::vector<Table> explanation_tables(const Report& report, const Explanation& e) {
  const TableSource explained("explained", "the figure that was asked for", explained_columns,
                              [&](const Report&) { return std::span(&e, 1); });
  const Report part = part_of(report, e);
  std::vector<Table> tables{explained.for_programs(part)};
  const auto append = [&](const Subject& subject, const Report& of) {
    for (Table& table : subject_tables(subject, of)) tables.push_back(std::move(table));
  };
  append(kSignatures, part);
  append(kPhaseRules, part);
  tables.push_back(explained_peaks_table(report, e));
  if (e.kind == FigureKind::kBackwardForward) {
    for (Section& section : explained_ratio(report))
      if (section.table) tables.push_back(std::move(*section.table));
    append(kRatio, report);
  }
  if (e.kind == FigureKind::kShareOfPeak) append(kUtilization, report);
  if (e.mixed_estimates > 0) std::ranges::for_each(tables, leave_out_intervals);
  return tables;
}

}  // namespace flopinj::reduce
