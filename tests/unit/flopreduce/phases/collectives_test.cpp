// The recorder and the reducer name collectives alike.
#include <collector/identity/never_measured.h>

#include <set>
#include <string>

#include "catch.h"
#include "phases/phases.h"

TEST_CASE("collectives, which are never measured, are the communication of the built-in rules") {
  using flopinj::reduce::PhaseRules;
  std::set<std::string> rules, patterns;
  const PhaseRules built_in;
  for (const auto& rule : built_in.rules())
    if (rule.subject == PhaseRules::Subject::kKernel) {
      CHECK(rule.phase == "communication");
      CHECK(rule.match == PhaseRules::Match::kContains);
      rules.insert(rule.pattern);
    }
  for (const auto pattern : flopinj::communication_patterns()) patterns.emplace(pattern);
  CHECK(rules == patterns);
}
