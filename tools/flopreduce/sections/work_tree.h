// Work by range path and kernel as a tree: what flame views and folded stacks are made of.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "report/report.h"

namespace flopinj::reduce {

// Depths count from 1. A leaf is a kernel, right in the range before it; kernels outside all ranges
// are at depth 1. Names are raw bytes and live as long as the report.
struct WorkNode {
  uint32_t depth = 1;
  bool leaf = false;
  std::string_view name;
  Work work;               // with everything below it
  std::string_view phase;  // of a leaf; empty where its launches are of several
};

// In preorder. The leaves add up to the report's total.
std::vector<WorkNode> work_tree(const Report& report);

}  // namespace flopinj::reduce
