#include "sections/screens/explanation.h"

#include <algorithm>
#include <span>

#include "sections/launch_tables.h"
#include "sections/notices.h"
#include "sections/parts/work_columns.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

bool of_one_precision(const Explanation& e) { return e.kind == FigureKind::kPrecision; }

Columns<Explanation> explained_columns() {
  const auto work = through(&Explanation::part, &Report::total);
  Columns<Explanation> c;
  c.text(
      "kind", "kind", [](const Explanation& e) { return word(e.kind); },
      "total, ratio, utilization, precision, phase, layer, operator, kernel or range");
  c.text("name", "name", &Explanation::name);
  add_work(c, work);
  return c;
}

// Work at one peak, or against all of a device's.
struct AtPeak {
  const DevicePeaksReport& device;
  std::string of;
  Figure flop = {}, bytes = {}, per_second = {}, least_ns = {}, utilization = {}, roof_share = {};
  std::string source = {};
};

AtPeak precision_at_peak(const DevicePeaksReport& device, const std::string& precision,
                         const Figure& flop) {
  AtPeak row{device, precision, flop};
  row.per_second = Figure::unknown("no peak known: --peak " + precision + "=VALUE");
  for (const PeakUsed& used : device.peaks)
    if (used.precision == precision) {
      row.per_second = Figure::exact(used.peak.per_second);
      row.least_ns = flop * (1e9 / used.per_second);
      row.source = used.peak.source;
    }
  return row;
}

// By the longer of arithmetic and memory, launch by launch. Without a peak of all that ran the
// least time would be too short.
AtPeak all_at_peaks(const DevicePeaksReport& device, const Work& work) {
  const bool unknown = work.roof.no_peak > 0 || work.roof.no_integer_peak > 0;
  return {.device = device,
          .of = "all",
          .flop = flop_of(work),
          .least_ns =
              unknown ? Figure::unknown("no peak known") : Figure(work.roof.ns, missing_mark(work)),
          .utilization = utilization_of(work),
          .roof_share = roofline_of(work)};
}

void add_at_peaks(const Explanation& e, const DevicePeaksReport& device,
                  std::vector<AtPeak>& rows) {
  const auto groups = group(e.part, {by::kChip});
  const auto found = std::ranges::find(groups, device.chip, [](const auto& g) { return g.ids[0]; });
  const WorkGroup of = found == groups.end() ? WorkGroup() : *found;
  const Work& work = of.work;
  for (size_t i = 0; i < e.part.precisions.size(); ++i)
    if (of.flop.by_precision[i] > 0)
      rows.push_back(precision_at_peak(device, e.part.precisions[i],
                                       {of.flop.by_precision[i], missing_mark(work)}));
  AtPeak all = all_at_peaks(device, work);
  if (of_one_precision(e)) {
    all.utilization = all.roof_share =
        Figure::unknown("launches of several precisions have one time");
    all.least_ns = {};
  } else {
    const Roof& roof = work.roof;
    if (roof.integer_ns > 0)
      rows.push_back({.device = device,
                      .of = "integer tensor work, no FLOP",
                      .least_ns = Figure::exact(roof.integer_ns)});
    if (device.memory && roof.dram_bytes > 0)
      rows.push_back({.device = device,
                      .of = "memory",
                      .bytes = Figure::exact(roof.dram_bytes),
                      .per_second = Figure::exact(device.memory->per_second),
                      .least_ns = Figure::exact(roof.memory_ns),
                      .source = device.memory->source});
  }
  rows.push_back(std::move(all));
}

std::vector<AtPeak> at_peaks(const Explanation& e) {
  std::vector<AtPeak> rows;
  for (const DevicePeaksReport& device : e.part.utilization.devices) add_at_peaks(e, device, rows);
  return rows;
}

Columns<AtPeak> at_peak_columns() {
  const auto clock = [](double DevicePeaksReport::*mhz) {
    return unless_zero([mhz](const AtPeak& p) { return p.device.*mhz; });
  };
  Columns<AtPeak> c;
  c.text("device", "device", [](const AtPeak& p) { return p.device.name; });
  c.text(
       "row", "row", [](const AtPeak& p) { return text_or_null(p.device.row); },
       "of the table of peaks")
      .detail();
  c.text(
       "of", "of", &AtPeak::of,
       "a precision, memory or integer work; all: by the longer of the two roofs, launch by launch")
      .main();
  c.figure("flop", "FLOP", Kind::kFlop, &AtPeak::flop);
  c.figure("bytes", "bytes", Kind::kBytes, &AtPeak::bytes);
  c.figure("per_second", "peak", Kind::kRatio, &AtPeak::per_second,
           "operations a second, a fused multiply-add as two whatever --fma says; or bytes")
      .detail();
  c.exact("clock_mhz", "MHz", Kind::kRatio, clock(&DevicePeaksReport::clock_mhz),
          "clock that the row's peaks are of")
      .detail();
  c.exact("tensor_clock_mhz", "tensor MHz", Kind::kRatio,
          clock(&DevicePeaksReport::tensor_clock_mhz), "the same of tensor cores")
      .detail();
  c.figure("least_ns", "least", Kind::kNanoseconds, &AtPeak::least_ns, "least time at that peak")
      .main();
  c.figure("utilization", "of peak", Kind::kShare, &AtPeak::utilization).main();
  c.figure("roof_share", "of roof", Kind::kShare, &AtPeak::roof_share).main();
  c.text("source", "source", or_null(&AtPeak::source)).detail();
  return c;
}

TableSource at_peaks_of(const Explanation& e) {
  return {"explained_peaks", "the figure against its devices' peaks", at_peak_columns,
          [&](const Report&) { return at_peaks(e); }};
}

// A table of the report, with these columns of it for people, between spaces. Where there is little
// room those further to the right go first. One that is named twice has its exact look beside it.
Section shown(const char* title, const char* key, std::string_view columns, const Report& report) {
  const Table all = report_table(report, key);
  Table table{key, {}, {}, true};
  std::vector<size_t> places;
  for (size_t from = 0, end = 0; from < columns.size(); from = end + 1) {
    end = std::min(columns.find(' ', from), columns.size());
    const size_t place = *all.place_of(columns.substr(from, end - from));
    Column column = all.columns[place];
    column.worth = places.size() < 2 ? Worth::kMain : Worth::kUsual;
    if (!places.empty() && places.back() == place) {
      column.kind = Kind::kExactFlop;
      column.heading = "exact";
    }
    places.push_back(place);
    table.columns.push_back(column);
  }
  all.for_each_row([&](const TableRow& row) {
    TableRow& cells = table.rows.emplace_back();
    for (const size_t place : places)
      cells.push_back(all.columns[place].kind == Kind::kFlop ? row[place] : dashed(row[place]));
  });
  if (table.rows.empty()) return {};
  return {title, {}, std::move(table), {}};
}

// With its rows, which outlive the launches that they are of.
Table held(Table table) {
  if (!table.each) return table;
  table.each([&](const TableRow& row) { table.rows.push_back(row); });
  table.each = {};
  return table;
}

// The figure's launches by other keys.
constexpr LaunchTable kExplained[] = {
    {.key = "explained_layers",
     .about = "the figure's launches by layer",
     .by = {by::kLayer},
     .columns = {launches::flop, launches::count, launches::gpu_time, launches::details},
     .title = "Layers",
     .long_list = true},
    {.key = "explained_operators",
     .about = "the figure's launches by operator and direction",
     .by = {by::kOperator, by::kPass},
     .columns = {launches::flop, launches::count, launches::gpu_time, launches::details},
     .title = "Operators",
     .long_list = true},
};

// Empty where no launch has the first key.
Section section_of(const LaunchTable& table, const Report& part) {
  const auto groups = group(part, table.by);
  const bool any =
      std::ranges::any_of(groups, [](const WorkGroup& of) { return of.ids[0] != kNoIndex; });
  return any ? source_of(table).section(part) : Section{};
}

// A metric that counted nothing is not listed.
Section samples_section(const Report& part) {
  Section s = shown(
      "Samples", "samples",
      "precision metric counted flop flop weight_numerator weight_denominator samples stable_hash "
      "mean min max standard_deviation instructions_none instructions_one instructions_all",
      part);
  if (!s.table) return s;
  const size_t counted = *s.table->place_of("counted");
  const size_t zeros = std::erase_if(
      s.table->rows, [&](const TableRow& row) { return figure_of(row[counted]).number() == 0.0; });
  if (zeros > 0) s.below.emplace_back("  " + to_grouped(zeros) + " metrics counted 0", Tone::kDim);
  return s;
}

Section rules_section(const Report& report, const Report& part) {
  Section s = shown("Phase rules used", "rules_used", "rule phase launches flop flop", part);
  const auto may_be_forward = [](const RuleReport& rule) {
    return rule.phase == "forward" || rule.phase == "other";
  };
  if (std::ranges::any_of(part.rules, may_be_forward)) s.below = unclear_lines(report);
  return s;
}

// What makes each side, and what is expected.
void add_ratio(const Report& report, std::vector<Section>& sections) {
  sections.push_back(kRatio.section(report));
  sections.push_back(
      shown("Sides", "phases", "phase flop flop matrix_flop matrix_flop launches", report));
  for (const auto& [side, title] :
       {std::pair("backward", "Kernels of backward"), std::pair("forward", "Kernels of forward")})
    sections.push_back(shown(title, "kernels", "kernel flop flop matrix_flop launches",
                             explain(report, {FigureKind::kPhase, side}).part));
  sections.push_back(kOperatorWork.section(report));
  sections.push_back(shown("Layers of the forward pass", "first_layers",
                           "layer forward_matrix_flop forward_matrix_flop first", report));
}

void add_utilization(const Report& report, std::vector<Section>& sections) {
  sections.push_back(kUtilization.section(report));
  sections.push_back(shown("Least time at peak, and the time taken", "utilization",
                           "name least_ns gpu_time_ns wall_device_ns basis", report));
  sections.push_back(kBusyTime.section(report));
}

}  // namespace

std::vector<Section> explanation_sections(const Report& report, const Explanation& e,
                                          const AlsoTables& also) {
  const Report& part = e.part;
  Section head;
  const std::string kind = word(e.kind);
  head.above.emplace_back(e.name == kind ? kind : kind + " " + e.name, Tone::kTitle);
  add_warnings(report, head.above);
  add_total(part, head.above);
  if (e.mixed_estimates > 0)
    head.above.emplace_back("  No interval: intervals are of all precisions together.");
  std::vector<Section> sections{std::move(head)};
  if (e.kind == FigureKind::kBackwardForward) add_ratio(report, sections);
  if (e.kind == FigureKind::kShareOfPeak) add_utilization(report, sections);
  sections.push_back(
      shown("Signatures: kernels by launch shape and parameters", "signatures",
            "kernel launches flop flop flop_per_launch samples unmeasured_reason grid block "
            "stable_hash flop_mean flop_standard_deviation windows varying rounded graph_samples "
            "cluster dynamic_shared_bytes parameters chip",
            part));
  sections.push_back(samples_section(part));
  for (const LaunchTable& table : kExplained) sections.push_back(section_of(table, part));
  sections.push_back(shown("Ranges", "stacks", "range kernel flop flop launches phase", part));
  sections.push_back(rules_section(report, part));
  sections.push_back(
      {"Against the peaks", kUtilization.section(part).above, at_peaks_of(e).for_people(part), {}});
  for (const std::string& key : also) {
    const TableSource& source = launch_table(key);
    Table table = held(source.for_people(part));
    if (!table.rows.empty())
      sections.push_back({key + ": " + source.about(), {}, std::move(table), {}});
  }
  sections.push_back(shown("Ledger of the whole run", "ledger",
                           "device launches measured extrapolated unmeasured dropped", report));
  std::erase_if(sections, [](const Section& section) { return section.empty(); });
  return sections;
}

std::vector<Table> explanation_tables(const Report& report, const Explanation& e,
                                      const AlsoTables& also) {
  const TableSource explained("explained", "the figure that was asked for", explained_columns,
                              [&](const Report&) { return std::span(&e, 1); });
  std::vector<Table> tables{explained.for_programs(e.part)};
  const auto append = [&](const Subject& subject, const Report& of) {
    for (Table& table : subject_tables(subject, of)) tables.push_back(std::move(table));
  };
  append(kSignatures, e.part);
  for (const LaunchTable& table : kExplained)
    tables.push_back(source_of(table).for_programs(e.part));
  append(kStacks, e.part);
  append(kPhaseRules, e.part);
  tables.push_back(at_peaks_of(e).for_programs(e.part));
  if (e.kind == FigureKind::kBackwardForward)
    for (const Subject* subject : {&kRatio, &kPhases, &kOperatorWork}) append(*subject, report);
  if (e.kind == FigureKind::kShareOfPeak) append(kUtilization, report);
  for (const std::string& key : also)
    if (std::ranges::none_of(tables, [&](const Table& table) { return key == table.key; }))
      tables.push_back(held(launch_table(key).for_programs(e.part)));
  return tables;
}

}  // namespace flopinj::reduce
