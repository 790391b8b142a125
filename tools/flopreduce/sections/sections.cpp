#include "sections/sections.h"

#include <algorithm>
#include <deque>
#include <iterator>

#include "phases/phases.h"
#include "sections/launch_tables.h"

namespace flopinj::reduce {

namespace {

struct Named {
  const char* key;  // of its section; null where people see none
  const Subject* subject;
};
// In the order in which people read them.
constexpr Named kNamed[] = {{nullptr, &kScreen},
                            {"total", &kHead},
                            {nullptr, &kFigureRow},
                            {"phases", &kPhases},
                            {"precisions", &kPrecisions},
                            {"integer_operations", &kIntegerOperations},
                            {"ratio", &kRatio},
                            {"utilization", &kUtilization},
                            {"lost", &kLost},
                            {"copies", &kCopies},
                            {"steps", &kSteps},
                            {"numbers", &kNumbers},
                            {"layers", &kLayers},
                            {"operator_work", &kOperatorWork},
                            {"operators", &kOperators},
                            {"kernels", &kKernels},
                            {"estimates", &kEstimates},
                            {"roofline", &kRoofline},
                            {"machine_code", &kMachineCode},
                            {nullptr, &kSignatures},
                            {"ranges", &kRanges},
                            {"range_utilization", &kPeakByRange},
                            {nullptr, &kStacks},
                            {nullptr, &kFacts},
                            {"rules", &kPhaseRules},
                            {"ledger", &kLedger},
                            {"measuring", &kMeasuring},
                            {"coverage", &kCoverage},
                            {"time", &kBusyTime},
                            {"idle", &kIdleGaps},
                            {"rank_spread", &kRankSpread},
                            {"ranks", &kRanks},
                            {"communication", &kRankCommunication},
                            {"collectives", &kCollectives},
                            {"processes", &kProcesses},
                            {"diagnostics", &kDiagnostics},
                            {"damage", &kDamage},
                            {nullptr, &kGates}};

// With tables of launches that no subject has, each a section of its own where it has a title.
std::vector<Named> with_other_launch_tables() {
  std::vector<Named> all(std::begin(kNamed), std::end(kNamed));
  static std::deque<Subject> others;
  for (const TableSource* table : launch_tables()) {
    const bool taken = std::ranges::any_of(kNamed, [&](const Named& named) {
      return std::ranges::count(named.subject->sources, table) > 0;
    });
    if (taken) continue;
    const char* const key = table->has_title() ? table->key() : nullptr;
    all.insert(all.end() - 1, {key, &others.emplace_back(Subject{{table}})});
  }
  return all;
}
const std::vector<Named>& all_named() {
  static const std::vector<Named> all = with_other_launch_tables();
  return all;
}

// A section that has nothing to say to people; programs may be told more.
std::string silence_of(const Named& named, const Report& report) {
  std::string keys;
  for (const Table& table : subject_tables(*named.subject, report))
    if (!table.rows.empty()) keys += (keys.empty() ? "" : ",") + std::string(table.key);
  return std::string(named.key) +
         (keys.empty() ? ": nothing in these traces"
                       : ": nothing to say; its rows: --format json --table " + keys);
}

}  // namespace

std::vector<std::string> section_keys() {
  std::vector<std::string> keys;
  for (const Named& named : all_named())
    if (named.key != nullptr) keys.emplace_back(named.key);
  return keys;
}

std::vector<Section> report_sections(const Report& report) {
  std::vector<Section> sections;
  for (const Named& named : all_named()) {
    if (named.key == nullptr) continue;
    Section section = named.subject->section(report);
    section.key = named.key;
    if (!section.empty()) sections.push_back(std::move(section));
  }
  return sections;
}

std::vector<Section> chosen_sections(const Report& report, const std::vector<std::string>& keys) {
  std::vector<Section> sections(1);
  const auto asked = [&](const char* key) {
    return key != nullptr && std::ranges::find(keys, key) != keys.end();
  };
  if (!asked("total")) add_warnings(report, sections[0].above);  // the head has them
  for (const Named& named : all_named()) {
    if (!asked(named.key)) continue;
    Section section = named.subject->section(report);
    if (section.empty()) section.above.emplace_back(silence_of(named, report), Tone::kDim);
    sections.push_back(std::move(section));
  }
  return sections;
}

std::vector<Table> subject_tables(const Subject& subject, const Report& report) {
  std::vector<Table> tables;
  for (const TableSource* source : subject.sources)
    if (report.with_facts || !source->facts()) tables.push_back(source->for_programs(report));
  return tables;
}

std::vector<Table> report_tables(const Report& report) {
  std::vector<Table> tables;
  for (const TableSource* source : table_sources())
    if (report.with_facts || !source->facts()) tables.push_back(source->passed_on(report));
  return tables;
}

Table report_table(const Report& report, std::string_view key) {
  const auto sources = table_sources();
  const auto found =
      std::ranges::find(sources, key, [](const TableSource* source) { return source->key(); });
  return (*found)->for_programs(report);
}

std::vector<const TableSource*> table_sources() {
  std::vector<const TableSource*> all;
  for (const Named& named : all_named())
    all.insert(all.end(), named.subject->sources.begin(), named.subject->sources.end());
  return all;
}

Table all_phases(const Report& report) {
  Table table = report_table(report, "phases");
  Report absent;
  for (const RuleReport& rule : report.rules) {
    const auto named = [&](const auto& list) {
      return std::ranges::find(list, rule.phase, &PhaseReport::name) != list.end();
    };
    if (rule.phase != kNoPhase && !named(report.phases) && !named(absent.phases))
      absent.phases.push_back({rule.phase, {}});
  }
  std::ranges::move(report_table(absent, "phases").rows, std::back_inserter(table.rows));
  return table;
}

std::vector<Table> gate_tables(const Report& report) {
  std::vector<Table> tables;
  for (const Named& named : all_named()) {
    if (named.subject == &kScreen) continue;
    for (Table& table : subject_tables(*named.subject, report)) tables.push_back(std::move(table));
  }
  *std::ranges::find(tables, std::string_view("phases"), &Table::key) = all_phases(report);
  return tables;
}

bool needs_facts(std::string_view key) {
  return std::ranges::any_of(table_sources(), [&](const TableSource* table) {
    return table->facts() && (key.empty() || key == table->key());
  });
}

}  // namespace flopinj::reduce
