#include "sections/launch_tables.h"

#include <algorithm>
#include <deque>

#include "sections/parts/work_columns.h"
#include "sections/sections.h"

namespace flopinj::reduce {

namespace launches {
namespace {

constexpr auto kWork = [](const LaunchRow& row) -> const Work& { return row.group.work; };

void main_share(Columns<LaunchRow>& c) {
  add_flop_share(c, kWork);
  c.main();
}
void count_as_detail(Columns<LaunchRow>& c) {
  add_launches(c, kWork);
  c.detail();
}
void unmeasured(Columns<LaunchRow>& c) {
  c.count(said::kUnmeasured, [](const LaunchRow& row) { return row.group.work.unmeasured; });
}
void phase_of_rule(Columns<LaunchRow>& c) {
  c.text("phase", "phase", [](const LaunchRow& row, const Report& report) {
     return report.rules[row.id(WorkKey::kRule)].phase;
   }).main();
}
void phase_of_all(Columns<LaunchRow>& c) {
  c.text(
      "phase", "phase",
      [](const LaunchRow& row, const Report& report) {
        const auto& phase = row.group.phase;
        return phase ? std::optional(report.phases[*phase].name) : std::nullopt;
      },
      "null where the launches are of several");
}
void mangled(Columns<LaunchRow>& c) {
  c.text(said::kMangled, [](const LaunchRow& row, const Report& report) {
    return report.kernels[row.id(WorkKey::kKernel)].mangled;
  });
}

}  // namespace

void flop(Columns<LaunchRow>& c) { add_flop(c, kWork); }
void share(Columns<LaunchRow>& c) { add_flop_share(c, kWork); }
void count(Columns<LaunchRow>& c) { add_launches(c, kWork); }
void gpu_time(Columns<LaunchRow>& c) { add_gpu_time(c, kWork); }
void rates(Columns<LaunchRow>& c) {
  add_rate(c, kWork);
  add_share_of_peak(c, kWork);
  add_share_of_roof(c, kWork);
}
void details(Columns<LaunchRow>& c) { add_work_details(c, kWork); }

namespace {

using enum WorkKey;

// clang-format off
constexpr LaunchTable kLaunchTables[] = {
    {.key = "phase_precisions", .about = "FLOP of phases by number format",
     .by = {kPhase, kFormat}, .held = false},
    {.key = "kernel_precisions", .about = "FLOP of kernels by number format",
     .by = {kKernel, kFormat}, .columns = {mangled}, .held = false},
    {.key = "ranges_exclusive", .about = "launches right in a range, and in none",
     .by = {kRange}, .columns = {flop, count, gpu_time, details}, .every = true, .held = false},
    {.key = "stacks", .about = "kernels by range",
     .by = {kRange, kKernel},
     .columns = {flop, count, unmeasured, gpu_time, mangled, phase_of_all}},
    // People find the other rules in `flopreduce rules`.
    {.key = "rules_used", .about = "rules that gave launches a phase",
     .by = {kRule},
     .columns = {phase_of_rule, flop, main_share, count_as_detail, gpu_time, details},
     .title = "Phase rules used", .when_empty = "no launches"},
    {.key = "rules", .about = "all rules, in the order in which they are tried",
     .by = {kRule},
     .columns = {phase_of_rule, flop, main_share, count_as_detail, gpu_time, details},
     .every = true},
};
// clang-format on

// What a key's column is called, and the name of one of its ids.
struct KeyColumn {
  WorkKey key;
  Column column;
  std::string (*name)(const Report&, uint32_t id);
};
const KeyColumn kKeyColumns[] = {
    {kKernel,
     {"kernel", "kernel"},
     [](const Report& report, uint32_t id) { return report.kernels[id].name; }},
    {kSignature, said::kStableHash,
     [](const Report& report, uint32_t id) {
       return hash_text(report.signatures[id].stable_hash);
     }},
    {kChip, {"chip", "chip"}, [](const Report& report, uint32_t id) { return report.chips[id]; }},
    {kPhase,
     {"phase", "phase"},
     [](const Report& report, uint32_t id) { return report.phases[id].name; }},
    {kRule,
     {"rule", "rule"},
     [](const Report& report, uint32_t id) { return report.rules[id].rule; }},
    {kRange,
     {"range", "range", Kind::kText, Worth::kUsual, "null: in no range"},
     [](const Report& report, uint32_t id) { return report.ranges[id].path; }},
    {kOutermostRange,
     {"outermost_range", "outermost range", Kind::kText, Worth::kUsual, "null: in no range"},
     [](const Report& report, uint32_t id) { return report.ranges[id].path; }},
    {kLayer,
     {"layer", "layer", Kind::kText, Worth::kUsual, "null: in no layer"},
     [](const Report& report, uint32_t id) { return report.work.layers[id]; }},
    {kOperator,
     {"operator", "operator", Kind::kText, Worth::kUsual,
      "the function that forward called, or the autograd node where it is not known; null: none"},
     [](const Report& report, uint32_t id) { return report.work.operators[id]; }},
    {kPass,
     {"pass", "pass", Kind::kText, Worth::kUsual, "forward, backward or recompute; null: none"},
     [](const Report&, uint32_t id) { return std::string(kPasses[id]); }},
};

void add_key(Columns<LaunchRow>& c, WorkKey key) {
  const KeyColumn& of = *std::ranges::find(kKeyColumns, key, &KeyColumn::key);
  c.text(of.column, [&of](const LaunchRow& row, const Report& report) {
    const uint32_t id = row.id(of.key);
    return id == kNoIndex ? std::nullopt : std::optional(of.name(report, id));
  });
}

bool by_format(const LaunchTable& table) {
  return std::ranges::count(table.by, std::optional(kFormat)) > 0;
}

Columns<LaunchRow> columns_of(const LaunchTable& table) {
  Columns<LaunchRow> c;
  for (const auto& key : table.by)
    if (key && *key != kFormat) add_key(c, *key);
  for (const LaunchColumns add : table.columns)
    if (add != nullptr) add(c);
  if (!by_format(table)) return c;
  c.text("precision", "precision", [](const LaunchRow& row) { return row.format->format; });
  c.figure(said::kFlop, [](const LaunchRow& row) { return row.format->flop; });
  c.figure(said::kOperations, [](const LaunchRow& row) { return row.format->operations; });
  return c;
}

std::vector<LaunchRow> rows_of(const LaunchTable& table, const Report& report) {
  std::vector<LaunchRow> rows;
  for (WorkGroup& of : group(report, table.by, table.every)) {
    if (!by_format(table)) {
      rows.push_back({table.by, std::move(of), {}});
      continue;
    }
    for (OneFormat& format : by_format(report, of.flop, of.work))
      rows.push_back({table.by, of, std::move(format)});
  }
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

uint32_t LaunchRow::id(WorkKey key) const {
  const auto place = std::ranges::find(keys, std::optional(key)) - keys.begin();
  return group.ids[static_cast<size_t>(place)];
}

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

const TableSource& launch_table(std::string_view key) {
  return *std::ranges::find(launches::sources(), key,
                            [](const TableSource& s) { return std::string_view(s.key()); });
}

const Subject kStacks = {{&launch_table("stacks")}};
const Subject kPhaseRules = {{&launch_table("rules_used"), &launch_table("rules")}};

}  // namespace flopinj::reduce
