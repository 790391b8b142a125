#include <collector/schedule/metric_plan.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>

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

// Of simulated GPUs: without "simgpu__thread_inst_executed_" and ".sum".
constexpr std::string_view kSimulated[] = {
    "hadd_one",     "hmul_one",       "hfma_one",           "div_f32",        "div_f64",
    "rcp_f32",      "rcp_f64",        "sqrt_f32",           "sqrt_f64",       "approx_div_f32",
    "full_div_f32", "approx_rcp_f32", "approx_sin_cos_f32", "shared_add_f32", "shared_add_f64"};

// What runs the instructions of kSass, by hardware counters: integer work runs there too, so that
// they are an upper bound. Instructions of warps fit one pass of all chips but GA100, where those
// of threads do.
constexpr std::string_view kPipesOfWarps[] = {"sm__inst_executed_pipe_fma.sum",
                                              "sm__inst_executed_pipe_fp64.sum"};
constexpr std::string_view kHalfInFp16 = "sm__inst_executed_pipe_fp16.sum";
constexpr std::string_view kHalfInFma = "sm__inst_executed_pipe_fma_type_fp16.sum";
constexpr std::string_view kPipesOfGa100[] = {
    "smsp__thread_inst_executed_pipe_fma_pred_on.sum",
    "smsp__thread_inst_executed_pipe_fp64_pred_on.sum",
    "smsp__thread_inst_executed_pipe_fp16_pred_on.sum",
    "smsp__thread_inst_executed_pipe_tensor_op_hmma_type_hfma2_pred_on.sum"};

// Hardware counters every chip has.
constexpr std::array<std::string_view, 3> kTimes = {
    "gpu__time_duration.sum", "sm__cycles_elapsed.max", "sm__cycles_active.sum"};

// Metrics that CUPTI has renamed for some chips. Those of GB202 and its siblings: CUPTI 12.9.
struct Renamed {
  std::string_view now, before;
};
constexpr Renamed kRenamed[] = {{"dram__bytes_op_read.sum", "dram__bytes_read.sum"},
                                {"dram__bytes_op_write.sum", "dram__bytes_write.sum"}};

enum class Dram : uint8_t {
  kNone,  // a system on a chip: its memory is not the GPU's
  kReadWrite,
  kOpReadWrite,
};

// Warp-level instructions of the pipes that do matrix products: what screening reads. Names are
// without "sm__inst_executed_pipe_" and ".sum".
struct Pipe {
  std::string_view name;
  std::string_view included = {};  // what it counts of others: does not make groups necessary
};
// HFMA2.MMA, packed half arithmetic, runs on the tensor pipe of some chips and is in op_hmma there.
// Instruction counts (hfma) hold it already, so it does not make tensor groups necessary. GH100
// has that metric too, but no room for it in one pass: there such a kernel's tensor groups are
// measured in vain and read 0.
constexpr Pipe kHmma{"tensor_op_hmma"};
constexpr Pipe kHmmaWithHalf{"tensor_op_hmma", "tensor_op_hmma_type_hfma2"};
constexpr Pipe kHmmaV2{"tensor_op_hmma_v2"};
constexpr Pipe kImma{"tensor_op_imma"};
constexpr Pipe kImmaV2{"tensor_op_imma_v2"};
constexpr Pipe kDmma{"tensor_op_dmma"};
constexpr Pipe kDmmaFp64{"fp64_op_dmma"};  // chips without a tensor core for fp64
constexpr Pipe kGmma{"tensor_op_gmma"};    // Hopper's products of warp groups
constexpr Pipe kHmmaLessGmma{"tensor_op_hmma", "tensor_op_gmma"};
constexpr Pipe kSubHmma{"tensor_subpipe_hmma"};
constexpr Pipe kSubImma{"tensor_subpipe_imma"};
constexpr Pipe kSubDmma{"tensor_subpipe_dmma"};
constexpr Pipe kTc{"tc"};  // Blackwell's fifth-generation products (tcgen05)

// Operations of one pass, and the pipes any of which makes it necessary. Names are without
// "sm__ops_path_tensor_" and ".sum"; "" unused.
//
// The metrics of a family's groups never overlap: where a source's metric fits one pass it is
// the only one, else all of its parts by operation or sparsity take its place. A metric without
// sparsity in its name holds dense and sparse operations.
struct TensorGroup {
  std::string_view name;
  std::array<std::string_view, 6> metrics;
  std::array<Pipe, 3> pipes;
};

constexpr TensorGroup kVolta[] = {
    {"tensor_fp16", {"src_fp16_dst_fp32", "src_fp16_dst_fp16"}, {kHmma}},
};
constexpr TensorGroup kTuring[] = {
    {"tensor_fp16", {"src_fp16_bf16_tf32_dst_fp32", "src_fp16_dst_fp16"}, {kHmma}},
    {"tensor_int8", {"src_int8"}, {kImma}},
};
// int8 takes two passes, so its dense and sparse parts are read apart.
constexpr TensorGroup kGa100[] = {
    {"tensor_bf16", {"src_bf16_dst_fp32"}, {kHmmaWithHalf}},
    {"tensor_fp16", {"src_fp16_dst_fp32"}, {kHmmaWithHalf}},
    {"tensor_tf32", {"src_tf32_dst_fp32"}, {kHmmaWithHalf}},
    {"tensor_fp16_fp64", {"src_fp16_dst_fp16", "src_fp64"}, {kHmmaWithHalf, kDmma}},
    {"tensor_int8_dense", {"src_int8_sparsity_off"}, {kImma}},
    {"tensor_int8_sparse", {"src_int8_sparsity_on"}, {kImma}},
};
constexpr TensorGroup kGa10x[] = {
    {"tensor_bf16", {"src_bf16_dst_fp32"}, {kHmma}},
    {"tensor_fp16", {"src_fp16_dst_fp32"}, {kHmma}},
    {"tensor_tf32", {"src_tf32_dst_fp32"}, {kHmma}},
    {"tensor_fp16_fp64", {"src_fp16_dst_fp16", "src_fp64"}, {kHmma, kDmmaFp64}},
    {"tensor_int8_dense", {"src_int8_sparsity_off"}, {kImma}},
    {"tensor_int8_sparse", {"src_int8_sparsity_on"}, {kImma}},
};
constexpr TensorGroup kGa10b[] = {
    {"tensor_bf16", {"src_bf16_dst_fp32"}, {kHmmaWithHalf}},
    {"tensor_fp16", {"src_fp16_dst_fp32"}, {kHmmaWithHalf}},
    {"tensor_tf32", {"src_tf32_dst_fp32"}, {kHmmaWithHalf}},
    {"tensor_fp16_fp64", {"src_fp16_dst_fp16", "src_fp64"}, {kHmmaWithHalf, kDmmaFp64}},
    {"tensor_int8_dense", {"src_int8_sparsity_off"}, {kImma}},
    {"tensor_int8_sparse", {"src_int8_sparsity_on"}, {kImma}},
};
// Which of the two pipes fp8 is in is not said: either makes it necessary.
constexpr TensorGroup kAda[] = {
    {"tensor_bf16", {"src_bf16_dst_fp32"}, {kHmmaV2}},
    {"tensor_fp16", {"src_fp16_dst_fp32"}, {kHmmaV2}},
    {"tensor_tf32", {"src_tf32_dst_fp32"}, {kHmmaV2}},
    {"tensor_fp16_dst_fp16", {"src_fp16_dst_fp16"}, {kHmmaV2}},
    {"tensor_fp8_fp64", {"src_fp8", "src_fp64"}, {kHmmaV2, kImmaV2, kDmmaFp64}},
    {"tensor_int8_dense", {"src_int8_sparsity_off"}, {kImmaV2}},
    {"tensor_int8_sparse", {"src_int8_sparsity_on"}, {kImmaV2}},
};
// HMMA and HGMMA are read apart. Metrics that hold both (src_bf16_dst_fp32 and its like) are not
// read, since src_fp16 takes two passes.
//
// Kernels whose products are of warp groups have no HMMA, and need no HMMA groups. By CUPTI's
// descriptions of the instruction counters:
//   op_hmma = HMMA + HFMA2.MMA + HGMMA + QGMMA      op_gmma = HGMMA + QGMMA + IGMMA + BGMMA
//   op_imma = IMMA + BMMA + IGMMA + BGMMA
// If op_imma is 0, then op_hmma - op_gmma is HMMA + HFMA2.MMA. Otherwise IGMMA may hide HMMA, and
// the HMMA groups are read. The operations of IGMMA are read of every kernel, by screening: they
// would show an IGMMA that op_imma does not count.
constexpr TensorGroup kHopper[] = {
    {"tensor_gmma",
     {"op_hgmma_src_bf16_dst_fp32", "op_hgmma_src_fp16", "op_hgmma_src_tf32_dst_fp32", "src_fp8"},
     {kGmma}},
    {"tensor_bf16", {"op_hmma_src_bf16_dst_fp32"}, {kHmmaLessGmma, kImma}},
    {"tensor_fp16", {"op_hmma_src_fp16_dst_fp32"}, {kHmmaLessGmma, kImma}},
    {"tensor_tf32", {"op_hmma_src_tf32_dst_fp32"}, {kHmmaLessGmma, kImma}},
    {"tensor_fp16_fp64", {"op_hmma_src_fp16_dst_fp16", "src_fp64"}, {kHmmaLessGmma, kImma, kDmma}},
    {"tensor_int8_dense", {"op_imma_src_int8_sparsity_off"}, {kImma}},
    {"tensor_int8_sparse", {"op_imma_src_int8_sparsity_on"}, {kImma}},
};
// fp4, fp6 and fp8 with the same accumulator are one counter. tf32, fp16 with an fp16 accumulator
// and fp8 with an fp32 one take two passes: their parts by operation and sparsity take their place.
template <const Pipe& dmma>
constexpr TensorGroup kBlackwell[] = {
    {"tensor_bf16",
     {"src_bf16_dst_fp32", "op_utchmma_src_fp16_dst_fp16_sparsity_off"},
     {kSubHmma, kTc}},
    {"tensor_fp16",
     {"src_fp16_dst_fp32", "op_utchmma_src_fp16_dst_fp16_sparsity_on"},
     {kSubHmma, kTc}},
    {"tensor_fp4_fp64",
     {"src_fp4_dst_fp32", "src_fp64", "op_hmma_src_fp16_dst_fp16",
      "op_utchmma_src_tf32_dst_fp32_sparsity_off"},
     {kSubHmma, kTc, dmma}},
    {"tensor_fp8_dst_fp16",
     {"src_fp4_fp6_fp8_dst_fp16", "op_hmma_src_tf32_dst_fp32",
      "op_utchmma_src_tf32_dst_fp32_sparsity_on"},
     {kSubHmma, kTc}},
    {"tensor_fp8_dense",
     {"op_utcqmma_src_fp4_fp6_fp8_dst_fp32_sparsity_off", "op_imma_src_int8"},
     {kTc, kSubImma}},
    {"tensor_fp8_sparse", {"op_utcqmma_src_fp4_fp6_fp8_dst_fp32_sparsity_on"}, {kTc}},
    {"tensor_int8_dense", {"op_utcimma_src_int8_sparsity_off"}, {kTc}},
    {"tensor_int8_sparse", {"op_utcimma_src_int8_sparsity_on"}, {kTc}},
};
constexpr TensorGroup kBlackwellUltra[] = {
    {"tensor_bf16",
     {"src_bf16_dst_fp32", "op_utchmma_src_fp16_dst_fp16_sparsity_off",
      "op_utcqmma_src_fp4_fp6_dst_fp32_sparsity_off"},
     {kSubHmma, kTc}},
    {"tensor_fp16",
     {"src_fp16_dst_fp32", "op_utchmma_src_fp16_dst_fp16_sparsity_on",
      "op_utcqmma_src_fp4_fp6_dst_fp32_sparsity_on"},
     {kSubHmma, kTc}},
    {"tensor_fp4_fp64",
     {"src_fp4_dst_fp32", "src_fp64", "op_hmma_src_fp16_dst_fp16",
      "op_utchmma_src_tf32_dst_fp32_sparsity_off"},
     {kSubHmma, kTc, kDmmaFp64}},
    {"tensor_int8_fp6",
     {"src_int8", "op_utchmma_src_tf32_dst_fp32_sparsity_on",
      "op_utcqmma_src_fp4_fp6_dst_fp16_sparsity_off"},
     {kSubImma, kTc}},
    {"tensor_tf32_fp8",
     {"op_hmma_src_tf32_dst_fp32", "op_utcqmma_src_fp4_fp6_dst_fp16_sparsity_on",
      "op_utcqmma_src_fp8_dst_fp16_sparsity_off"},
     {kSubHmma, kTc}},
    {"tensor_fp8_dst_fp16_sparse", {"op_utcqmma_src_fp8_dst_fp16_sparsity_on"}, {kTc}},
    {"tensor_fp8_dense", {"op_utcqmma_src_fp8_dst_fp32_sparsity_off"}, {kTc}},
    {"tensor_fp8_sparse", {"op_utcqmma_src_fp8_dst_fp32_sparsity_on"}, {kTc}},
};
// Which of the two pipes the small formats are in is not said: either makes them necessary.
constexpr TensorGroup kBlackwellGeforce[] = {
    {"tensor_bf16", {"src_bf16_dst_fp32"}, {kSubHmma}},
    {"tensor_fp16", {"src_fp16_dst_fp32"}, {kSubHmma}},
    {"tensor_tf32", {"src_tf32_dst_fp32"}, {kSubHmma}},
    {"tensor_fp16_fp64", {"src_fp16_dst_fp16", "src_fp64"}, {kSubHmma, kDmmaFp64}},
    {"tensor_fp4", {"src_fp4_dst_fp32"}, {kSubHmma, kSubImma}},
    {"tensor_fp6", {"src_fp4_fp6_dst_fp32"}, {kSubHmma, kSubImma}},
    {"tensor_fp6_dst_fp16", {"src_fp4_fp6_dst_fp16"}, {kSubHmma, kSubImma}},
    {"tensor_fp8", {"src_fp8_dst_fp32"}, {kSubHmma, kSubImma}},
    {"tensor_fp8_dst_fp16", {"src_fp8_dst_fp16"}, {kSubHmma, kSubImma}},
    {"tensor_int8", {"src_int8"}, {kSubImma}},
};

struct Chip {
  std::string_view name;
  std::array<Pipe, 4> pipes;  // what screening reads; "" unused
  std::span<const TensorGroup> tensor;
  Dram dram = Dram::kReadWrite;
  bool paired = false;
  std::string_view operations = {};  // that screening reads too; as in TensorGroup
};

constexpr Chip kChips[] = {
    {"GV100", {kHmma}, kVolta},
    {"TU102", {kHmma, kImma}, kTuring},
    {"TU104", {kHmma, kImma}, kTuring},
    {"TU106", {kHmma, kImma}, kTuring},
    // No metric counts the operations of their HMMA, which the fp16 pipe runs: not measured.
    {"TU116", {kHmma, kImma}, {}},
    {"TU117", {kHmma, kImma}, {}},
    {"GA100", {kHmmaWithHalf, kImma, kDmma}, kGa100},
    {"GA102", {kHmma, kImma, kDmmaFp64}, kGa10x},
    {"GA103", {kHmma, kImma, kDmmaFp64}, kGa10x},
    {"GA104", {kHmma, kImma, kDmmaFp64}, kGa10x},
    {"GA106", {kHmma, kImma, kDmmaFp64}, kGa10x},
    {"GA107", {kHmma, kImma, kDmmaFp64}, kGa10x},
    {"GA10B", {kHmmaWithHalf, kImma, kDmmaFp64}, kGa10b, Dram::kNone},
    {"AD102", {kHmmaV2, kImmaV2, kDmmaFp64}, kAda},
    {"AD103", {kHmmaV2, kImmaV2, kDmmaFp64}, kAda},
    {"AD104", {kHmmaV2, kImmaV2, kDmmaFp64}, kAda},
    {"AD106", {kHmmaV2, kImmaV2, kDmmaFp64}, kAda},
    {"AD107", {kHmmaV2, kImmaV2, kDmmaFp64}, kAda},
    {"GH100", {kHmma, kImma, kDmma, kGmma}, kHopper, Dram::kReadWrite, false, "op_igmma_src_int8"},
    {"GB100", {kSubHmma, kSubImma, kSubDmma, kTc}, kBlackwell<kSubDmma>, Dram::kReadWrite, true},
    {"GB102", {kSubHmma, kSubImma, kSubDmma, kTc}, kBlackwell<kSubDmma>, Dram::kReadWrite, true},
    {"GB110", {kSubHmma, kSubImma, kDmmaFp64, kTc}, kBlackwellUltra, Dram::kReadWrite, true},
    {"GB112", {kSubHmma, kSubImma, kDmmaFp64, kTc}, kBlackwellUltra, Dram::kReadWrite, true},
    {"GB10B", {kSubHmma, kSubImma, kDmmaFp64, kTc}, kBlackwell<kDmmaFp64>, Dram::kNone},
    {"GB202", {kSubHmma, kSubImma, kDmmaFp64}, kBlackwellGeforce, Dram::kOpReadWrite},
    {"GB203", {kSubHmma, kSubImma, kDmmaFp64}, kBlackwellGeforce, Dram::kOpReadWrite},
    {"GB205", {kSubHmma, kSubImma, kDmmaFp64}, kBlackwellGeforce, Dram::kOpReadWrite},
    {"GB206", {kSubHmma, kSubImma, kDmmaFp64}, kBlackwellGeforce, Dram::kOpReadWrite},
    {"GB207", {kSubHmma, kSubImma, kDmmaFp64}, kBlackwellGeforce, Dram::kOpReadWrite},
    {"GB20B", {kSubHmma, kSubImma, kDmmaFp64}, kBlackwellGeforce, Dram::kNone},
    {"GB20C", {kSubHmma, kSubImma, kDmmaFp64}, kBlackwellGeforce, Dram::kNone},
};

std::string pipe_metric(std::string_view name) {
  return name.empty() ? std::string()
                      : std::string("sm__inst_executed_pipe_").append(name).append(".sum");
}

std::string operations_metric(std::string_view name) {
  return std::string("sm__ops_path_tensor_").append(name).append(".sum");
}

const Chip* find_chip(std::string_view name) {
  const auto* it = std::find_if(std::begin(kChips), std::end(kChips),
                                [&](const Chip& c) { return c.name == name; });
  return it == std::end(kChips) ? nullptr : it;
}

MetricGroupPlan screening_group(const Chip& chip) {
  MetricGroupPlan group{"screening", {}, false, false};
  for (const Pipe& pipe : chip.pipes)
    for (const std::string_view name : {pipe.name, pipe.included})
      if (!name.empty()) group.metrics.push_back(pipe_metric(name));
  if (!chip.operations.empty()) group.metrics.push_back(operations_metric(chip.operations));
  if (chip.dram == Dram::kReadWrite)
    group.optional = {"dram__bytes_read.sum", "dram__bytes_write.sum"};
  else if (chip.dram == Dram::kOpReadWrite)
    group.optional = {"dram__bytes_op_read.sum", "dram__bytes_op_write.sum"};
  group.metrics.insert(group.metrics.end(), group.optional.begin(), group.optional.end());
  group.metrics.insert(group.metrics.end(), kTimes.begin(), kTimes.end());
  return group;
}

MetricGroupPlan tensor_group(const TensorGroup& tensor) {
  MetricGroupPlan group;
  group.name = tensor.name;
  for (const std::string_view metric : tensor.metrics)
    if (!metric.empty()) group.metrics.push_back(operations_metric(metric));
  for (const Pipe& pipe : tensor.pipes)
    if (!pipe.name.empty())
      group.needed_if.push_back({pipe_metric(pipe.name), pipe_metric(pipe.included)});
  return group;
}

MetricGroupPlan pipes_group(std::string_view chip) {
  MetricGroupPlan group{"pipes", {std::begin(kPipesOfWarps), std::end(kPipesOfWarps)}};
  group.instead_of = instruction_plan(false).name;
  if (chip == "GA100")
    group.metrics = {std::begin(kPipesOfGa100), std::end(kPipesOfGa100)};
  else
    group.metrics.emplace_back(chip.starts_with("GV") || chip.starts_with("TU") ? kHalfInFp16
                                                                                : kHalfInFma);
  return group;
}

}  // namespace

MetricGroupPlan instruction_plan(bool paired) {
  MetricGroupPlan group{"sass", {kSass.begin(), kSass.end()}, true, true};
  if (paired) group.metrics.insert(group.metrics.end(), kSassPaired.begin(), kSassPaired.end());
  return group;
}

void add_simulated_metrics(std::vector<MetricGroupPlan>& plan) {
  for (MetricGroupPlan& group : plan)
    if (group.name == instruction_plan(false).name)
      for (const std::string_view name : kSimulated) {
        group.metrics.push_back(
            std::string("simgpu__thread_inst_executed_").append(name).append(".sum"));
        group.optional.push_back(group.metrics.back());
      }
}

std::vector<MetricGroupPlan> metric_plan_for(std::string_view name) {
  const Chip* chip = find_chip(name);
  if (chip == nullptr) return {};
  std::vector<MetricGroupPlan> plan = {screening_group(*chip)};
  for (const TensorGroup& tensor : chip->tensor) plan.push_back(tensor_group(tensor));
  plan.push_back(pipes_group(chip->name));
  plan.push_back(instruction_plan(chip->paired));
  return plan;
}

std::optional<MetricGroupPlan> with_former_names(const MetricGroupPlan& plan) {
  MetricGroupPlan former = plan;
  bool any = false;
  for (std::vector<std::string>* const names : {&former.metrics, &former.optional})
    for (std::string& metric : *names)
      for (const Renamed& renamed : kRenamed)
        if (metric == renamed.now) metric = renamed.before, any = true;
  if (!any) return std::nullopt;
  return former;
}

std::vector<std::string_view> planned_chips() {
  std::vector<std::string_view> names;
  for (const Chip& chip : kChips) names.push_back(chip.name);
  return names;
}

}  // namespace flopinj
