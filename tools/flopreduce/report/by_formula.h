// What launches without a FLOP count did, by the formula of their operator: "executed, or by
// formula" is decided here and in report.h, flop_or_formula(), and nowhere else.
//
// A launch that has a count is worth that. One that has none is worth its part of its operator's
// formula: of all calls, as the algorithm executes them, in equal parts to all launches of the
// place that multiply matrices (of an operator that is no product, to all its launches). What such
// a launch did outside of tensor cores may have been counted; then it is worth the rest. A formula
// has no padded tiles, and algorithms do more or less of it, so that is an estimate.
#pragma once
#include <cstdint>
#include <tuple>

#include "peaks/precisions.h"
#include "support/members.h"
#include "support/wide.h"

namespace flopinj::reduce {

struct ByFormula {
  uint64_t launches = 0;         // without a count, of operators with a formula
  u128 flop = 0;                 // about, beyond what was counted of these launches
  u128 perhaps = 0;              // of `flop`: perhaps not all of it was computed
  u128 open = 0;                 // of `flop`: nothing says in which precision
  PrecisionSet precisions = {};  // that the rest may have run in

  template <typename Self>
  static auto sums(Self& of) {
    auto& [launches, flop, perhaps, open, precisions] = of;
    return std::tie(launches, flop, perhaps, open);
  }
  void add(const ByFormula& o) {
    add_each(sums(*this), sums(o));
    precisions |= o.precisions;
  }
};

}  // namespace flopinj::reduce
