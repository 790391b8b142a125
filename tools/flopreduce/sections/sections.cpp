#include "sections/sections.h"

#include <array>
#include <nlohmann/json.hpp>

#include "phases/phases.h"
#include "sections/parts/json_parts.h"

namespace flopinj::reduce {

std::span<const Subject* const> subjects() {
  static constexpr std::array kSubjects = {
      &kHead,        &kPhases,      &kPrecisions,  &kIntegerOperations,
      &kRatio,       &kUtilization, &kLayers,      &kOperatorWork,
      &kOperators,   &kKernels,     &kEstimates,   &kRoofline,
      &kSignatures,  &kRanges,      &kPeakByRange, &kStacks,
      &kPhaseRules,  &kLedger,      &kMeasuring,   &kCoverage,
      &kBusyTime,    &kIdleGaps,    &kRanks,       &kProcesses,
      &kDiagnostics, &kDamage,
  };
  return kSubjects;
}

std::vector<Section> report_sections(const Report& report) {
  std::vector<Section> sections;
  for (const Subject* subject : subjects()) {
    if (subject->section == nullptr) continue;
    Section section = subject->section(report);
    if (!section.empty()) sections.push_back(std::move(section));
  }
  return sections;
}

std::vector<Table> report_tables(const Report& report) {
  std::vector<Table> tables;
  for (const Subject* subject : subjects()) {
    if (subject->section != nullptr)
      if (Section section = subject->section(report); section.table)
        tables.push_back(std::move(*section.table));
    if (subject->tables != nullptr)
      for (Table& table : subject->tables(report)) tables.push_back(std::move(table));
  }
  return tables;
}

nlohmann::ordered_json gate_json(const Report& report) {
  nlohmann::ordered_json j = report_json(report);
  for (const RuleReport& rule : report.rules)
    if (rule.phase != kNoPhase && !j["phases"].contains(rule.phase))
      j["phases"][rule.phase] = work_json({});
  const LedgerLine& all = report.ledger.total;
  j["coverage"] =
      all.launches > 0
          ? nlohmann::ordered_json(static_cast<double>(all.measured + all.extrapolated) /
                                   static_cast<double>(all.launches))
          : nlohmann::ordered_json(nullptr);
  return j;
}

nlohmann::ordered_json report_json(const Report& report) {
  nlohmann::ordered_json j;
  for (const Subject* subject : subjects())
    if (subject->json != nullptr) subject->json(j, report);
  return j;
}

}  // namespace flopinj::reduce
