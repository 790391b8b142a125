// Columns of what backward / forward of matrix work should be. `expected`: a member of the row, or a
// function of it, that is an optional ExpectedRatio.
#pragma once
#include "sections/parts/said.h"

namespace flopinj::reduce {

// An upper bound where it is a range.
inline Figure expected_figure(const std::optional<ExpectedRatio>& expected) {
  if (!expected) return {};
  return {expected->most, mark_if(!expected->certain(), Mark::kAtMost)};
}

template <typename Row, typename E>
void add_expected_details(Columns<Row>& c, E expected) {
  c.exact(
      "expected_ratio_low", "expected, low", Kind::kRatio,
      [expected](const Row& row) -> std::optional<double> {
        const std::optional<ExpectedRatio>& e = std::invoke(expected, row);
        return e ? std::optional(e->least) : std::nullopt;
      },
      "lower end of expected_ratio: below it where it is not known whether a gradient was "
      "computed, else the same");
  c.flag(
      "expected_ratio_assumed", "assumed",
      [expected](const Row& row) {
        const std::optional<ExpectedRatio>& e = std::invoke(expected, row);
        return e && e->assumed;
      },
      "nothing shows which gradients of some products were computed, and both are assumed, or "
      "it is of a part of the matrix work; the basis says so");
  c.text(
      "expected_ratio_basis", "basis",
      [expected](const Row& row) -> std::optional<std::string> {
        const std::optional<ExpectedRatio>& e = std::invoke(expected, row);
        return e && !e->basis.empty() ? std::optional(e->basis) : std::nullopt;
      },
      "what expected_ratio is taken from, where it is not two gradients for each product; what "
      "is assumed is named so");
}

}  // namespace flopinj::reduce
