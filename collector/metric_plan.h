// Which metrics are read together, per chip. Data, not code: a group is what fits one pass of that
// chip.
#pragma once
#include <collector/ids.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flopinj {

struct MetricGroupPlan {
  std::string name;                  // "sass", "screening"
  std::vector<std::string> metrics;  // CUPTI names with roll-up: "dram__bytes_read.sum"
  bool instrumented = false;         // SASS metrics: CUPTI patches the kernel
  bool required = false;             // without it a launch has no FLOP count
};

// The groups for a chip as CUPTI names it ("GH100"), in the order they are to be measured. A chip
// that is not in the table gets the SASS group alone, whose metrics every chip since Volta has.
std::vector<MetricGroupPlan> metric_plan_for(std::string_view chip);

// The chips in the table. A test asks a real CUPTI about each of them: does it know all metrics,
// and does every group fit one pass?
std::vector<std::string_view> planned_chips();

}  // namespace flopinj
