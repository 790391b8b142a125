// Ranks of a job have the same names: each is looked at once for all recordings of a merge.
#pragma once
#include "phases/operators.h"
#include "phases/phases.h"

namespace flopinj::reduce {

struct KnownNames {
  explicit KnownNames(const PhaseRules& rules) : matches(rules) {}
  KnownMatches matches;
  KnownOperators operators;
};

}  // namespace flopinj::reduce
