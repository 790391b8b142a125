#include "sections/sections.h"

#include <array>
#include <nlohmann/json.hpp>

namespace flopinj::reduce {

std::span<const Subject* const> subjects() {
  static constexpr std::array kSubjects = {
      &kHead,   &kPhases, &kPrecisions, &kIntegerOperations, &kRatio,       &kKernels, &kSignatures,
      &kRanges, &kRules,  &kLedger,     &kProcesses,         &kDiagnostics, &kDamage,
  };
  return kSubjects;
}

nlohmann::ordered_json report_json(const Report& report) {
  nlohmann::ordered_json j;
  for (const Subject* subject : subjects())
    if (subject->json != nullptr) subject->json(j, report);
  return j;
}

}  // namespace flopinj::reduce
