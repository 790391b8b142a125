// What made B slower than A: the difference of both ledgers, line by line.
#pragma once
#include <string>

#include "report/lost.h"
#include "sections/parts/table.h"
#include "sections/screens/comparison.h"

namespace flopinj::reduce::slower {

// "B's step takes 12.0 % more time: communication alone +8.0 %, products below peak +4.0 %". All
// are shares of A's step, so that they add up to the whole difference; without training steps, of
// A's device time. After `normalization`. Empty where a side has no ledger, or theirs are of
// different kinds of time.
std::string words(const LostReport& a, const LostReport& b, const Normalization& normalization);

// The lines of a step, for people, as they are: not normalized. Empty where no side has steps.
Section section(const LostReport& a, const LostReport& b);

}  // namespace flopinj::reduce::slower
