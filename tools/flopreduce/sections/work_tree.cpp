#include "sections/work_tree.h"

#include <algorithm>

#include "sections/parts/cells.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

WorkNode leaf(const Report& report, const StackReport& stack, uint32_t depth) {
  return {depth, true, report.kernels[stack.kernel].name, &stack.work, stack.phase};
}

// One row for each kernel in each range.
std::vector<Table> work_tree_tables(const Report& report) {
  Table table{"stacks",
              {{"range", "range"},
               {"kernel", "kernel"},
               {"flop", "FLOP", Kind::kFlop},
               {"launches", "launches", Kind::kCount},
               {"unmeasured_launches", "unmeasured", Kind::kCount},
               {"gpu_time_ns", "GPU time", Kind::kNanoseconds}}};
  for (const StackReport& s : report.stacks)
    table.rows.push_back({s.range == kNoRange ? Cell::none() : Cell(report.ranges[s.range].path),
                          report.kernels[s.kernel].name, exact_cell(s.work), s.work.launches,
                          s.work.unmeasured, time_cell(s.work)});
  return {std::move(table)};
}

}  // namespace

std::vector<WorkNode> work_tree(const Report& report) {
  std::vector<WorkNode> nodes;
  nodes.reserve(report.ranges.size() + report.stacks.size());
  size_t next = 0;  // stacks are sorted by range
  for (uint32_t r = 0; r < report.ranges.size(); ++r) {
    const RangeReport& range = report.ranges[r];
    const uint32_t depth = std::max(1U, range.depth);
    nodes.push_back({depth, false, range.name, &range.inclusive, {}});
    for (; next < report.stacks.size() && report.stacks[next].range == r; ++next)
      nodes.push_back(leaf(report, report.stacks[next], depth + 1));
  }
  for (; next < report.stacks.size(); ++next) nodes.push_back(leaf(report, report.stacks[next], 1));
  return nodes;
}

const Subject kStacks = {nullptr, nullptr, work_tree_tables};

}  // namespace flopinj::reduce
