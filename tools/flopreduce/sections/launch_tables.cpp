#include "sections/launch_tables.h"

#include <algorithm>
#include <deque>
#include <unordered_map>

#include "sections/parts/cells.h"
#include "sections/parts/said.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace launches {
namespace {

using namespace by;
using Rows = std::vector<LaunchRow>;

// Most first.
template <auto kOf>
void most(Rows& rows, const Report&) {
  std::ranges::stable_sort(rows, std::greater<>(),
                           [](const LaunchRow& row) { return kOf(row.group.work); });
}
constexpr auto kTime = [](const Work& work) { return work.time.ns; };
constexpr auto kFlop = [](const Work& work) { return work.flop; };
constexpr auto kTimeAndLaunches = [](const Work& work) {
  return std::pair(work.time.ns, work.launches);
};

// Of layers, or operators, that are listed with forward and backward side by side; in that order.
template <auto kPairs, auto kNames>
void as_pairs(Rows& rows, const Report& report) {
  std::unordered_map<std::string_view, size_t> places;
  for (const ForwardBackward& pair : report.operators.*kPairs)
    places.emplace(pair.name, places.size());
  const auto place = [&](const LaunchRow& row) {
    const uint32_t id = row.group.ids[0];
    const auto found = id == kNoIndex ? places.end() : places.find((report.work.*kNames)[id]);
    return found == places.end() ? places.size() : found->second;
  };
  std::erase_if(rows, [&](const LaunchRow& row) { return place(row) == places.size(); });
  std::ranges::stable_sort(rows, {}, place);
}

bool varies(const LaunchRow& row, const Report&) { return row.group.work.varying > 0; }
bool uncounted(const LaunchRow& row, const Report& report) {
  return !report.signatures[row.id(kSignature)].unmeasured_reason.empty();
}
bool of_precision(const LaunchRow& row, const Report&) { return row.id(kFormat) < kMaxPrecisions; }
bool of_integers(const LaunchRow& row, const Report&) { return row.id(kFormat) >= kMaxPrecisions; }

void why(Columns<LaunchRow>& c) {
  c.text("reason", "reason", [](const LaunchRow& row, const Report& report) {
    return report.signatures[row.id(kSignature)].unmeasured_reason;
  });
}
void source(Columns<LaunchRow>& c) {
  c.text("source", "source", [](const LaunchRow& row) {
    return std::string(kIntegerFormats[row.id(kFormat) - kMaxPrecisions]);
  });
}
void phase_of_rule(Columns<LaunchRow>& c) {
  c.text("phase", "phase", [](const LaunchRow& row, const Report& report) {
    return report.rules[row.id(kRule)].phase;
  });
}

void phase_of_part(Columns<LaunchRow>& c) {
  c.text("phase", "phase",
         [](const LaunchRow& row) { return std::string(kPhaseParts[row.id(kPhasePart)].phase); });
}
bool has_part(const LaunchRow& row, const Report&) { return row.id(kPhasePart) != kNoIndex; }

// Of what programs join with rows of single processes: a text where there is none, too.
void path(Columns<LaunchRow>& c) {
  c.text(
      "range", "range",
      [](const LaunchRow& row, const Report& report) {
        return row.name(kRange, report).value_or("");
      },
      "NVTX ranges, outermost first; empty outside all of them");
}
void only_layer(Columns<LaunchRow>& c) {
  c.text(
      "layer", "layer",
      [](const LaunchRow& row, const Report& report) {
        const auto layer = row.group.in_common(kLayer, report);
        return layer ? report.work.layers[*layer] : std::string();
      },
      "empty where it is in none, or in several");
}

void tree(Columns<LaunchRow>& c) {
  const auto of_range = [](auto get) {
    return [get](const LaunchRow& row, const Report& report) {
      return std::invoke(get, report.ranges[row.id(kAnyRange)]);
    };
  };
  c.text("name", "name", of_range(&RangeReport::name));
  c.count("depth", "depth", of_range(&RangeReport::depth), "1: in no other range");
  c.count(
      "place", "place", [](const LaunchRow& row) { return row.id(kAnyRange); },
      "in the tree: before the ranges inside of it, from 0");
}
bool in_range(const LaunchRow& row, const Report&) { return row.id(kAnyRange) != kNoIndex; }

void what(Columns<LaunchRow>& c) {
  c.text(
      "what", "what",
      [](const LaunchRow& row, const Report& report) {
        if (row.has(kPhase)) return "phase " + report.phases[row.id(kPhase)].name;
        return row.has(kKernel) ? report.kernels[row.id(kKernel)].name : std::string("total");
      },
      "total, a phase, or a kernel");
}
void estimated(Columns<LaunchRow>& c) {
  c.count("varying_launches", "launches",
          [](const LaunchRow& row) { return row.group.work.varying; });
}

// clang-format off
constexpr LaunchTable kLaunchTables[] = {
    {.key = "phases", .about = "FLOP and GPU time by phase of training",
     .by = {kPhase},
     .columns = {flop_exact, main<share>, count, gpu_time, for_programs, utilization, details},
     .title = "By phase", .every = true},
    {.key = "phase_precisions", .about = "FLOP of phases by number format",
     .by = {kPhase, kFormat}, .held = false},
    {.key = "phase_parts",
     .about = "launches that are in their phase on less evidence than others",
     .by = {kPhasePart}, .columns = {phase_of_part, flop, count, gpu_time, details},
     .every = true, .only = has_part},
    {.key = "precisions", .about = "FLOP by number format",
     .by = {kFormat}, .columns = {flop_exact, share},
     .title = "By precision", .when_empty = "none counted", .only = of_precision},
    {.key = "integer_operations", .about = "integer operations of the tensor cores",
     .by = {kFormat}, .columns = {source, operations_exact},
     .title = "Integer operations of the tensor cores (no FLOP)", .named = 0, .only = of_integers},
    {.key = "kernels", .about = "kernels by name",
     .by = {kKernel},
     .columns = {main<flop>, main<share>, count, gpu_time, gpu_time_share, durations,
                 detail<note>, for_programs, mangled, parameters, details},
     .title = "Top kernels", .when_empty = "no launches", .long_list = true},
    {.key = "kernel_precisions", .about = "FLOP of kernels by number format",
     .by = {kKernel, kFormat}, .columns = {mangled, name<kFormat>, flop, operations},
     .held = false, .named = 1},
    // Tables for programs have the interval of each sum (details).
    {.key = "estimates", .about = "95 % intervals of estimates",
     .columns = {what, main<flop>, main<interval>, detail<estimated>},
     .title = "Estimates (95 % interval)", .long_list = true,
     .also = {WorkKeys{kPhase}, WorkKeys{kKernel}}, .only = varies},
    {.key = "roofline", .about = "kernels against memory and arithmetic",
     .by = {kKernel},
     .columns = {intensity, rate, detail<bandwidth>, gpu_time, main<bound_by>, detail<nearer_roof>,
                 main<roof_share>, utilization, for_programs, mangled, dram_bytes},
     .title = "Roofline", .long_list = true, .order = most<kTime>},
    {.key = "signatures", .about = "kernels by name and launch shape",
     .by = {kSignature},
     .columns = {kernel, stable_hash, chip, shape, flop, count, gpu_time, reason, readings,
                 details},
     .long_list = true, .named = 0},
    {.key = "unmeasured", .about = "kernels without a FLOP count",
     .by = {kSignature},
     .columns = {kernel, main<count>, detail<count_share>, detail<gpu_time>, gpu_time_share,
                 main<why>, for_programs, stable_hash},
     .title = "Not measured by any process", .long_list = true, .named = 0, .only = uncounted,
     .order = most<kTimeAndLaunches>},
    {.key = "layer_passes", .about = "launches of a layer by direction",
     .by = {kLayerOrRange, kPass}, .columns = {flop, count, gpu_time, details}, .held = false,
     .order = as_pairs<&OperatorsReport::layers, &WorkRows::layers_or_ranges>},
    {.key = "operator_passes", .about = "launches of a forward operator by direction",
     .by = {kOperator, kPass}, .columns = {flop, count, gpu_time, details}, .held = false,
     .order = as_pairs<&OperatorsReport::by_forward, &WorkRows::operators>},
    {.key = "ranges", .about = "NVTX ranges, with what is below them",
     .by = {kAnyRange},
     .columns = {main<flop>, main<share>, count, gpu_time, for_programs, tree, details},
     .title = "Top ranges (inclusive)", .long_list = true, .only = in_range, .order = most<kFlop>},
    {.key = "utilization_ranges", .about = "share of peak by range",
     .by = {kAnyRange},
     .columns = {flop, gpu_time, rate, main<utilization>, main<roof_share>},
     .title = "Percent of peak by range (inclusive)", .long_list = true, .only = in_range,
     .order = most<kTime>},
    {.key = "ranges_exclusive", .about = "launches right in a range, and in none",
     .by = {kRange}, .columns = {flop, count, gpu_time, details}, .every = true, .held = false},
    {.key = "paths", .about = "ranges with the phase and layer of what ran in them",
     .by = {kRange, kRule}, .columns = {path, phase_of_rule, name<kRule>, only_layer, count},
     .named = 0},
    {.key = "stacks", .about = "kernels by range",
     .by = {kRange, kKernel},
     .columns = {flop, count, unmeasured, gpu_time, mangled, phase}},
    // People find the other rules in `flopreduce rules`.
    {.key = "rules_used", .about = "rules that gave launches a phase",
     .by = {kRule},
     .columns = {main<phase_of_rule>, flop, main<share>, detail<count>, gpu_time, details},
     .title = "Phase rules used", .when_empty = "no launches"},
    {.key = "rules", .about = "all rules, in the order in which they are tried",
     .by = {kRule},
     .columns = {main<phase_of_rule>, flop, main<share>, detail<count>, gpu_time, details},
     .every = true},
};
// clang-format on

Columns<LaunchRow> columns_of(const LaunchTable& table) {
  Columns<LaunchRow> c;
  for (size_t i = 0; i < std::min<size_t>(table.named, kMostKeys); ++i)
    if (table.by[i]) add_name(c, *table.by[i]);
  for (const LaunchColumns add : table.columns)
    if (add != nullptr) add(c);
  if (std::ranges::count(table.by, ByKey(kFormat)) > 0 && !c.has(said::kFlop) &&
      !c.has(said::kOperations)) {
    flop(c);
    operations(c);
  }
  c.drop_repeated();
  return c;
}

Rows rows_of(const LaunchTable& table, const Report& report) {
  Rows rows;
  const auto add = [&](const WorkKeys& by) {
    for (WorkGroup& of : group(report, by, table.every)) {
      rows.push_back({&by, std::move(of)});
      if (table.only != nullptr && !table.only(rows.back(), report)) rows.pop_back();
    }
  };
  add(table.by);
  for (const auto& by : table.also)
    if (by) add(*by);
  if (table.order != nullptr) table.order(rows, report);
  return rows;
}

const std::deque<TableSource>& sources() {
  static const std::deque<TableSource> all = [] {
    std::deque<TableSource> made;
    for (const LaunchTable& table : kLaunchTables) made.push_back(source_of(table));
    return made;
  }();
  return all;
}

}  // namespace
}  // namespace launches

TableSource source_of(const LaunchTable& table) {
  TableSource source(
      table.key, table.about, [table] { return launches::columns_of(table); },
      [table](const Report& report) { return launches::rows_of(table, report); });
  source.titled(table.title).when_empty(table.when_empty);
  if (table.long_list) source.long_list();
  return table.held ? source : source.not_held();
}

std::vector<const TableSource*> launch_tables() {
  std::vector<const TableSource*> all;
  for (const TableSource& source : launches::sources()) all.push_back(&source);
  return all;
}

std::vector<std::string> tables_of_durations() {
  std::vector<std::string> keys;
  for (const TableSource* table : launch_tables()) {
    const auto columns = table->columns();
    if (std::ranges::count(columns, std::string_view(launches::kMedian), &Column::key) > 0)
      keys.emplace_back(table->key());
  }
  return keys;
}

const TableSource& launch_table(std::string_view key) {
  return *std::ranges::find(launches::sources(), key,
                            [](const TableSource& s) { return std::string_view(s.key()); });
}

const Subject kRanges = {{&launch_table("ranges"), &launch_table("ranges_exclusive")}};
const Subject kStacks = {{&launch_table("stacks")}};
const Subject kPhaseRules = {{&launch_table("rules_used"), &launch_table("rules")}};
const Subject kEstimates = {{&launch_table("estimates")}};
const Subject kPrecisions = {{&launch_table("precisions")}};
const Subject kIntegerOperations = {{&launch_table("integer_operations")}};

}  // namespace flopinj::reduce
