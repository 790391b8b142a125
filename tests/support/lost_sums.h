// Whether the ledger of device time adds up, in every way to cut it.
#pragma once
#include "report/lost.h"

namespace flopinj::test {

inline bool adds_up(const reduce::LostReport& lost) {
  if (!lost.known()) return lost.capacity_ns == 0 && lost.parts.empty() && lost.steps.empty();
  const auto sum_of = [](const auto& list) {
    reduce::LostNs sum{};
    for (const auto& one : list)
      for (size_t line = 0; line < reduce::kLostLines; ++line) sum[line] += one.ns[line];
    return sum;
  };
  uint64_t all = 0;
  for (const uint64_t ns : lost.ns) {
    if (ns > lost.capacity_ns - all) return false;  // no line is negative, were it to wrap
    all += ns;
  }
  return all == lost.capacity_ns && sum_of(lost.parts) == lost.ns && sum_of(lost.steps) == lost.ns;
}

}  // namespace flopinj::test
