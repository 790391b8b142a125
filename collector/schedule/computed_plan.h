// A metric plan for a chip that is not in the table (metric_plan.h), from what CUPTI says of it:
// the names of its metrics, and how many passes a set of them takes. Pure logic; the caller asks
// CUPTI.
//
// No metric is known to be read for nothing there, and no pipe to be the only one that a format
// runs on: every group is read for every kernel, and a kernel without one of them has no count.
#pragma once
#include <collector/schedule/metric_plan.h>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace flopinj {

// Passes that these metrics, with their roll-up, take together. 0: they cannot be read.
using PassesOf = std::function<size_t(const std::vector<std::string>& metrics)>;

// The same shape as metric_plan_for(). `names`: the chip's metrics as CUPTI lists them, without
// roll-up. Operations of tensor cores are read by metrics that do not overlap, by source: the most
// general one where it takes one pass, else its parts. What cannot be had is in a group that is
// unavailable, with a reason that names the chip: it is needed where screening shows a tensor
// instruction, and for every kernel where screening cannot.
std::vector<MetricGroupPlan> compute_metric_plan(std::string_view chip,
                                                 const std::vector<std::string>& names,
                                                 const PassesOf&);

}  // namespace flopinj
