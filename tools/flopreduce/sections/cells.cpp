#include "sections/cells.h"

#include <array>
#include <cstdio>

namespace flopinj::reduce {

Cell flop_cell(const Work& work) {
  if (!work.flop_known()) return Cell::none("not measured");
  return {work.flop, (work.flop_complete() ? Mark::kNone : Mark::kAtLeast) |
                         (work.varying > 0 ? Mark::kEstimate : Mark::kNone)};
}

Cell exact_cell(const Work& work) { return work.flop_known() ? flop_cell(work) : Cell::none(); }

Cell time_cell(const Work& work) {
  if (!work.time_known()) return Cell::none("unknown");
  Cell cell(work.time.ns);
  if (work.time.unknown > 0) cell.marks = cell.marks | Mark::kAtLeast;
  if (work.time.windowed > 0) cell.marks = cell.marks | Mark::kAtMost;
  return cell;
}

Cell share_cell(u128 part, u128 whole) {
  if (whole == 0) return Cell::none();
  return static_cast<double>(part) / static_cast<double>(whole);
}

Cell flop_share_cell(const Work& part, const Work& whole) {
  return part.flop_known() ? share_cell(part.flop, whole.flop) : Cell::none();
}

std::string fixed(double value, int decimals) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return text.data();
}

}  // namespace flopinj::reduce
