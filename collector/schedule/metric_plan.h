// Which metrics are read together, per chip. Data, not code: a group is what fits one pass of that
// chip.
#pragma once
#include <collector/identity/ids.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flopinj {

// Holds for a kernel when `metric`, less `included` (which it contains; empty: nothing), counts
// anything. Both are read by a group of the same plan that every kernel is measured with.
struct NeededIf {
  std::string metric, included;
};

struct MetricGroupPlan {
  std::string name;                  // "sass", "screening", "tensor_bf16"
  std::vector<std::string> metrics;  // CUPTI names with roll-up: "dram__bytes_read.sum"
  bool instrumented = false;         // SASS metrics: CUPTI patches the kernel
  bool required = false;             // without it a launch has no FLOP count
  // Any of them makes the group necessary for a kernel: then it is required too. None: the group is
  // measured for every kernel.
  std::vector<NeededIf> needed_if = {};
  std::string unavailable = {};  // why it cannot be measured here; empty: it can
  // Name of a group of the same plan. Only kernels that this one cannot be measured for are
  // measured with the present group, which bounds from above what the other counts.
  std::string instead_of = {};
  // Of the metrics: those without which the group is read, too, where they cannot be.
  std::vector<std::string> optional = {};
};

// The groups for a chip as CUPTI names it ("GH100"), in the order they are to be measured:
// screening, what screening may make necessary, the pipes that bound instructions, then these, for
// which CUPTI patches the kernel. Empty for a chip that is not in the table: computed_plan.h.
// docs/metrics.md says what each metric counts.
std::vector<MetricGroupPlan> metric_plan_for(std::string_view chip);

// The last group of every plan: instruction metrics that every chip since Volta has. `paired`: and
// those of two single-precision operations in one instruction, which few have.
MetricGroupPlan instruction_plan(bool paired);

// Adds metrics to a plan's instructions that only a simulated GPU has: half instructions of one
// value, and operations of PTX that become several instructions of machine code.
void add_simulated_metrics(std::vector<MetricGroupPlan>& plan);

// The same group by the names that an older CUPTI has for some of its metrics; none where all names
// are as old as the chip.
std::optional<MetricGroupPlan> with_former_names(const MetricGroupPlan&);

// The chips in the table. A test asks a real CUPTI about each of them: does it know all metrics,
// and does every group fit one pass?
std::vector<std::string_view> planned_chips();

}  // namespace flopinj
