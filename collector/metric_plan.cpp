#include <collector/metric_plan.h>

#include <algorithm>
#include <array>

namespace flopinj {
namespace {

// Per-thread instructions whose predicate is on, counted by patching the kernel: add, multiply,
// fused multiply-add in single, double and half precision.
constexpr std::array<std::string_view, 9> kSass = {
    "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_hadd_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_hmul_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum"};
// Two single-precision operations in one instruction, on GB100 and its siblings.
constexpr std::array<std::string_view, 3> kSassPaired = {
    "smsp__sass_thread_inst_executed_op_fadd2_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_fmul2_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_ffma2_pred_on.sum"};

// Hardware counters every chip has.
constexpr std::array<std::string_view, 3> kTimes = {
    "gpu__time_duration.sum", "sm__cycles_elapsed.max", "sm__cycles_active.sum"};

enum class Dram : uint8_t {
  kNone,  // a system on a chip: its memory is not the GPU's
  kReadWrite,
  kOpReadWrite,
};

struct Chip {
  std::string_view name;
  std::array<std::string_view, 4> tensor;  // instructions of the tensor pipe by kind; "" unused
  Dram dram = Dram::kReadWrite;
  bool paired = false;
};

constexpr std::string_view kHmma = "sm__inst_executed_pipe_tensor_op_hmma.sum";
constexpr std::string_view kImma = "sm__inst_executed_pipe_tensor_op_imma.sum";
constexpr std::string_view kDmma = "sm__inst_executed_pipe_tensor_op_dmma.sum";
constexpr std::string_view kGmma = "sm__inst_executed_pipe_tensor_op_gmma.sum";
constexpr std::string_view kHmmaV2 = "sm__inst_executed_pipe_tensor_op_hmma_v2.sum";
constexpr std::string_view kImmaV2 = "sm__inst_executed_pipe_tensor_op_imma_v2.sum";
constexpr std::string_view kSubHmma = "sm__inst_executed_pipe_tensor_subpipe_hmma.sum";
constexpr std::string_view kSubImma = "sm__inst_executed_pipe_tensor_subpipe_imma.sum";
constexpr std::string_view kSubDmma = "sm__inst_executed_pipe_tensor_subpipe_dmma.sum";

constexpr Chip kChips[] = {
    {"GV100", {kHmma}},
    {"TU102", {kHmma, kImma}},
    {"TU104", {kHmma, kImma}},
    {"TU106", {kHmma, kImma}},
    {"TU116", {kHmma, kImma}},
    {"TU117", {kHmma, kImma}},
    {"GA100", {kHmma, kImma, kDmma}},
    {"GA102", {kHmma, kImma}},
    {"GA103", {kHmma, kImma}},
    {"GA104", {kHmma, kImma}},
    {"GA106", {kHmma, kImma}},
    {"GA107", {kHmma, kImma}},
    {"GA10B", {kHmma, kImma}, Dram::kNone},
    {"AD102", {kHmmaV2, kImmaV2}},
    {"AD103", {kHmmaV2, kImmaV2}},
    {"AD104", {kHmmaV2, kImmaV2}},
    {"AD106", {kHmmaV2, kImmaV2}},
    {"AD107", {kHmmaV2, kImmaV2}},
    {"GH100", {kHmma, kImma, kDmma, kGmma}},
    {"GB100", {kSubHmma, kSubImma, kSubDmma}, Dram::kReadWrite, true},
    {"GB102", {kSubHmma, kSubImma, kSubDmma}, Dram::kReadWrite, true},
    {"GB110", {kSubHmma, kSubImma}, Dram::kReadWrite, true},
    {"GB10B", {kSubHmma, kSubImma}, Dram::kNone},
    {"GB202", {kSubHmma, kSubImma}, Dram::kOpReadWrite},
    {"GB203", {kSubHmma, kSubImma}, Dram::kOpReadWrite},
    {"GB205", {kSubHmma, kSubImma}, Dram::kOpReadWrite},
    {"GB206", {kSubHmma, kSubImma}, Dram::kOpReadWrite},
    {"GB207", {kSubHmma, kSubImma}, Dram::kOpReadWrite},
    {"GB20B", {kSubHmma, kSubImma}, Dram::kNone},
};

const Chip* find_chip(std::string_view name) {
  const auto* it = std::find_if(std::begin(kChips), std::end(kChips),
                                [&](const Chip& c) { return c.name == name; });
  return it == std::end(kChips) ? nullptr : it;
}

MetricGroupPlan sass_group(bool paired) {
  MetricGroupPlan group{"sass", {kSass.begin(), kSass.end()}, true, true};
  if (paired) group.metrics.insert(group.metrics.end(), kSassPaired.begin(), kSassPaired.end());
  return group;
}

MetricGroupPlan screening_group(const Chip& chip) {
  MetricGroupPlan group{"screening", {}, false, false};
  for (const std::string_view metric : chip.tensor)
    if (!metric.empty()) group.metrics.emplace_back(metric);
  if (chip.dram == Dram::kReadWrite) {
    group.metrics.emplace_back("dram__bytes_read.sum");
    group.metrics.emplace_back("dram__bytes_write.sum");
  } else if (chip.dram == Dram::kOpReadWrite) {
    group.metrics.emplace_back("dram__bytes_op_read.sum");
    group.metrics.emplace_back("dram__bytes_op_write.sum");
  }
  group.metrics.insert(group.metrics.end(), kTimes.begin(), kTimes.end());
  return group;
}

}  // namespace

std::vector<MetricGroupPlan> metric_plan_for(std::string_view name) {
  const Chip* chip = find_chip(name);
  if (chip == nullptr) return {sass_group(false)};
  return {sass_group(chip->paired), screening_group(*chip)};
}

std::vector<std::string_view> planned_chips() {
  std::vector<std::string_view> names;
  for (const Chip& chip : kChips) names.push_back(chip.name);
  return names;
}

}  // namespace flopinj
