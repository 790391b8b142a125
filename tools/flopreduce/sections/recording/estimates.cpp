// What is extrapolated from samples that disagree, with its 95 % interval: the total, phases and
// kernels. In JSON every sum carries its interval (work_fields).
#include <algorithm>

#include "sections/parts/cells.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

std::vector<Cell> row_of(std::string name, const Work& work) {
  const auto interval = work.interval();
  std::vector<Cell> row{std::move(name), flop_cell(work), Cell::none(),
                        Cell::none(),    Cell::none(),    work.varying};
  if (!interval) {
    row[2] = row[3] = Cell::none(
        work.uncertainty.elsewhere_launches() > 0 ? "not sampled everywhere" : "too few samples");
    return row;
  }
  row[2] = interval->low;
  row[3] = interval->high;
  const u128 reach = std::max(interval->high - work.flop, work.flop - interval->low);
  row[4] = share_cell(reach, work.flop);
  return row;
}

Section estimates_section(const Report& report) {
  const bool part = std::any_of(report.phases.begin(), report.phases.end(),
                                [](const PhaseReport& p) { return p.work.varying > 0; });
  if (report.total.varying == 0 && !part) return {};
  Table table{"estimates",
              {{"what", "what"},
               {"flop", "FLOP", Kind::kFlop, Worth::kMain},
               {"flop_low", "at least", Kind::kFlop},
               {"flop_high", "at most", Kind::kFlop},
               {"flop_reach_share", "+-", Kind::kShare, Worth::kMain},
               {"varying_launches", "launches", Kind::kCount, Worth::kDetail}}};
  table.long_list = true;
  if (report.total.varying > 0) table.rows.push_back(row_of("total", report.total));
  for (const auto& p : report.phases)
    if (p.work.varying > 0) table.rows.push_back(row_of("phase " + p.name, p.work));
  for (const auto& k : report.kernels)
    if (k.work.varying > 0) table.rows.push_back(row_of(k.name, k.work));
  return {"Estimates (95 % interval)", {}, std::move(table), {}};
}

}  // namespace

const Subject kEstimates = {estimates_section, nullptr};

}  // namespace flopinj::reduce
