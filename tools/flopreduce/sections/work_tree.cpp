#include "sections/work_tree.h"

#include <algorithm>

#include "sections/parts/work_columns.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

WorkNode leaf(const Report& report, const StackReport& stack, uint32_t depth) {
  return {depth, true, report.kernels[stack.kernel].name, &stack.work, stack.phase};
}

Columns<StackReport> stack_columns() {
  Columns<StackReport> c;
  const auto kernel = [](const StackReport& s, const Report& report) -> const KernelReport& {
    return report.kernels[s.kernel];
  };
  c.text(
      "range", "range",
      [](const StackReport& s, const Report& report) {
        return s.range == kNoRange ? std::nullopt : std::optional(report.ranges[s.range].path);
      },
      "null: in no range");
  c.text("kernel", "kernel",
         [kernel](const auto& s, const Report& report) { return kernel(s, report).name; });
  add_flop(c, &StackReport::work);
  add_launches(c, &StackReport::work);
  c.count(said::kUnmeasured, [](const StackReport& s) { return s.work.unmeasured; });
  add_gpu_time(c, &StackReport::work);
  c.text(said::kMangled,
         [kernel](const auto& s, const Report& report) { return kernel(s, report).mangled; });
  c.text(
      "phase", "phase",
      [](const StackReport& s) { return s.phase.empty() ? std::nullopt : std::optional(s.phase); },
      "null where the launches are of several");
  return c;
}

const TableSource kStackTable("stacks", "kernels by range", stack_columns, &Report::stacks);

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

const Subject kStacks = {{&kStackTable}};

}  // namespace flopinj::reduce
