#include "sections/work_tree.h"

#include <algorithm>
#include <utility>

namespace flopinj::reduce {

std::vector<WorkNode> work_tree(const Report& report) {
  std::vector<WorkNode> nodes;
  std::vector<WorkGroup> stacks = group(report, {by::kRange, by::kKernel});
  std::vector<WorkGroup> in_range = group(report, {by::kAnyRange});  // one of each range
  nodes.reserve(report.ranges.size() + stacks.size());
  auto next = stacks.begin();  // by range; those in none are the last
  const auto add_leaves = [&](uint32_t range, uint32_t depth) {
    for (; next != stacks.end() && next->ids[0] == range; ++next) {
      const auto phase = next->in_common(by::kPhase, report);
      nodes.push_back({depth, true, report.kernels[next->ids[1]].name, std::move(next->work),
                       phase ? report.phases[*phase].name : std::string_view()});
    }
  };
  for (uint32_t r = 0; r < report.ranges.size(); ++r) {
    const RangeReport& range = report.ranges[r];
    const uint32_t depth = std::max(1U, range.depth);
    nodes.push_back({depth, false, range.name, std::move(in_range[r].work), {}});
    add_leaves(r, depth + 1);
  }
  add_leaves(kNoRange, 1);
  return nodes;
}

}  // namespace flopinj::reduce
