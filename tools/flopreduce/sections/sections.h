// The subjects of a report, in the order in which people read them. Each has a file here that says
// it in words: as a Section for people, as members of the JSON object for programs.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <span>

#include "report/report.h"
#include "sections/table.h"

namespace flopinj::reduce {

// Either function may be null: then the subject is for programs, or for people, alone.
struct Subject {
  Section (*section)(const Report&);
  void (*json)(nlohmann::ordered_json&, const Report&);
};
extern const Subject kHead, kPhases, kPrecisions, kIntegerOperations, kRatio, kKernels, kSignatures,
    kRanges, kRules, kLedger, kProcesses, kDiagnostics, kDamage;
std::span<const Subject* const> subjects();

// The JSON form of a report: the members of all subjects. Its schema is report.schema.json.
inline constexpr int kSchemaVersion = 1;
nlohmann::ordered_json report_json(const Report&);

}  // namespace flopinj::reduce
