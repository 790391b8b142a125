#include "sections/sections.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "phases/phases.h"
#include "sections/parts/records.h"

namespace flopinj::reduce {

namespace {

struct Named {
  const char* key;  // of its section; null where people see none
  const Subject* subject;
};
// In the order in which people read them.
constexpr Named kNamed[] = {{"total", &kHead},
                            {nullptr, &kShortNames},
                            {"phases", &kPhases},
                            {"precisions", &kPrecisions},
                            {"integer_operations", &kIntegerOperations},
                            {"ratio", &kRatio},
                            {"utilization", &kUtilization},
                            {"steps", &kSteps},
                            {"numbers", &kNumbers},
                            {"layers", &kLayers},
                            {"operator_work", &kOperatorWork},
                            {"operators", &kOperators},
                            {"kernels", &kKernels},
                            {"estimates", &kEstimates},
                            {"roofline", &kRoofline},
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
                            {"processes", &kProcesses},
                            {"diagnostics", &kDiagnostics},
                            {"damage", &kDamage},
                            {nullptr, &kGates}};

}  // namespace

std::span<const Subject* const> subjects() {
  static const auto kSubjects = [] {
    std::array<const Subject*, std::size(kNamed)> all{};
    for (size_t i = 0; i < all.size(); ++i) all[i] = kNamed[i].subject;
    return all;
  }();
  return kSubjects;
}

std::vector<std::string> section_keys() {
  std::vector<std::string> keys;
  for (const Named& named : kNamed)
    if (named.key != nullptr) keys.emplace_back(named.key);
  return keys;
}

std::vector<Section> report_sections(const Report& report) {
  std::vector<Section> sections;
  for (const Named& named : kNamed) {
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
  for (const Named& named : kNamed) {
    if (!asked(named.key)) continue;
    Section section = named.subject->section(report);
    if (section.empty())
      section.above.emplace_back(std::string(named.key) + ": nothing in these traces", Tone::kDim);
    sections.push_back(std::move(section));
  }
  return sections;
}

std::vector<Table> report_tables(const Report& report) {
  std::vector<Table> tables;
  for (const Subject* subject : subjects()) {
    for (const TableSource* source : subject->sources)
      tables.push_back(source->for_programs(report));
    if (!subject->sources.empty()) continue;
    if (subject->section != nullptr)
      if (Section section = subject->section(report); section.table)
        tables.push_back(std::move(*section.table));
    if (subject->tables != nullptr)
      for (Table& table : subject->tables(report)) tables.push_back(std::move(table));
  }
  return tables;
}

Json report_json(const Report& report, bool signatures) {
  return Fields::json_of([&](Fields& f) {
    for (const Subject* subject : subjects()) {
      if (subject->fields == nullptr) continue;
      if (subject == &kSignatures && !signatures)
        no_signatures(f);
      else
        subject->fields(f, report);
    }
  });
}

Json gate_json(const Report& report) {
  Json j = report_json(report);
  for (const RuleReport& rule : report.rules)
    if (rule.phase != kNoPhase && !j["phases"].contains(rule.phase))
      j["phases"][rule.phase] = Fields::json_of([&](Fields& f) {
        work_part(f, {});
        precision_fields(f, report, {});
      });
  return j;
}

Json report_schema() {
  Report sample;  // with one process: what is said of it is looked up by its number
  sample.traces.resize(1);
  sample.ranks.ranks.resize(1);
  return Fields::schema_of(
      "flopreduce report",
      "Keys are the same in every report: what is not known is null. FLOP are numbers, with the "
      "exact integer as a text in KEY_exact, since many readers round integers from 2^53 on. Times "
      "are nanoseconds, sizes are bytes, shares are parts of 1.",
      [&](Fields& f) {
        for (const Subject* subject : subjects())
          if (subject->fields != nullptr) subject->fields(f, sample);
      });
}

}  // namespace flopinj::reduce
