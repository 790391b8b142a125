#include <collector/schedule/metric_plan.h>
#include <import/counters.h>

#include <algorithm>
#include <array>

namespace flopinj::import {
namespace {

constexpr std::string_view kInstructions = "smsp__sass_thread_inst_executed_op_",
                           kPredicated = "_pred_on.sum", kOperations = "sm__ops_path_tensor_",
                           kTensorPipe = "sm__inst_executed_pipe_tensor", kSum = ".sum";
// The same sum, over multiprocessors instead of their quarters.
constexpr std::string_view kOfMultiprocessors = "sm__sass_thread_inst_executed_op_";
constexpr auto kBytes =
    std::to_array<std::string_view>({"dram__bytes_read.sum", "dram__bytes_write.sum",
                                     "dram__bytes_op_read.sum", "dram__bytes_op_write.sum"});

}  // namespace

bool counts_work(std::string_view name) {
  return (name.starts_with(kInstructions) && name.ends_with(kPredicated)) ||
         ((name.starts_with(kOperations) || name.starts_with(kTensorPipe)) && name.ends_with(kSum));
}

std::string counter_name(std::string_view written) {
  std::string name(written);
  if (name.starts_with(kOfMultiprocessors))
    name.replace(0, kOfMultiprocessors.size(), kInstructions);
  return counts_work(name) || std::ranges::find(kBytes, name) != kBytes.end() ? name
                                                                              : std::string();
}

// GB100 and its siblings have some for two operations in one instruction.
std::vector<std::string> instruction_counters(const DeviceInfo& device) {
  constexpr uint32_t kMajorOfPaired = 10;
  const std::vector<MetricGroupPlan> plan = metric_plan_for(device.chip);
  return plan.empty() ? instruction_plan(device.compute_major == kMajorOfPaired).metrics
                      : plan.back().metrics;
}

}  // namespace flopinj::import
