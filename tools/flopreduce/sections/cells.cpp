#include "sections/cells.h"

#include <array>
#include <cstdio>

namespace flopinj::reduce {

Cell flop_cell(const Work& work) {
  if (!work.flop_known()) return Cell::none("not measured");
  return {work.flop, work.flop_complete() ? Mark::kNone : Mark::kAtLeast};
}

Cell exact_cell(const Work& work) {
  if (!work.flop_known()) return Cell::none();
  Cell cell = flop_cell(work);
  if (work.varying > 0) cell.marks = cell.marks | Mark::kEstimate;
  return cell;
}

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

std::string fixed(double value, int decimals) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return text.data();
}

}  // namespace flopinj::reduce
