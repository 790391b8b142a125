#include "counters/metrics.h"

#include "chips.h"

namespace simgpu::cupti {
namespace {

using enum Counter;
constexpr uint32_t kPartitions = 4 * kSms;  // smsp: four per SM
constexpr uint32_t kDramChannels = 80, kGpcs = 8;

using Parts = std::array<Counter, 4>;
constexpr Parts parts(Counter a, Counter b = kNone, Counter c = kNone) { return {a, b, c, kNone}; }

// Rows that share everything but name, chips and counters.
constexpr MetricInfo sass(const char* name, Counter counter, uint32_t instances = kPartitions) {
  return {name,
          "x.xxxxxxxxxxxx",
          "thread-level instructions executed with the predicate on, counted in patched code",
          instances == kSms ? "sm" : "smsp",
          "instruction",
          Spread::kTotal,
          instances,
          parts(counter)};
}
constexpr MetricInfo sass_blackwell(
    const char* name) {  // two-lane FP32; the simulated kernels have none
  return {name,
          ".........xx...",
          "two-lane thread-level instructions executed with the predicate on",
          "smsp",
          "instruction",
          Spread::kTotal,
          kPartitions,
          parts(kSassPaired)};
}
constexpr MetricInfo pipe(const char* name, const char* families, Counter counter) {
  return {name,        families,      "thread-level instructions of the pipe, predicate on",
          "smsp",      "instruction", Spread::kTotal,
          kPartitions, parts(counter)};
}
constexpr MetricInfo inst(const char* name, const char* families, Counter counter) {
  return {name, families,      "warp-level instructions executed by the pipe",
          "sm", "instruction", Spread::kTotal,
          kSms, parts(counter)};
}
constexpr MetricInfo ops(const char* name, const char* families, Parts counters = parts(kNone)) {
  return {name, families,  "math operations executed in the tensor path, FMA being two",
          "sm", "math_op", Spread::kTotal,
          kSms, counters};
}
constexpr MetricInfo dram(const char* name, const char* families, Parts counters) {
  return {name,          families, "bytes moved to or from DRAM", "dram", "byte", Spread::kTotal,
          kDramChannels, counters};
}
constexpr MetricInfo cycles(const char* name, const char* unit, Spread spread, uint32_t instances,
                            Counter counter) {
  return {name,        "x.xxxxxxxxxxxx", "clock cycles", unit,
          "gpc_cycle", spread,           instances,      parts(counter)};
}

// Columns of the family string: GV100, GV11B, TU10x, TU11x, GA100, GA10x, GA10B, GH100, AD10x,
// GB100 and GB102, GB110, GB10B, GB20x, GB20B. Taken from the host API of CUPTI 13.0, but for those
// of simgpu.
constexpr MetricInfo kMetrics[] = {
    sass("smsp__sass_thread_inst_executed_op_fadd_pred_on", kSassFadd),
    sass("smsp__sass_thread_inst_executed_op_fmul_pred_on", kSassFmul),
    sass("smsp__sass_thread_inst_executed_op_ffma_pred_on", kSassFfma),
    sass("smsp__sass_thread_inst_executed_op_dadd_pred_on", kSassDadd),
    sass("smsp__sass_thread_inst_executed_op_dmul_pred_on", kSassDmul),
    sass("smsp__sass_thread_inst_executed_op_dfma_pred_on", kSassDfma),
    sass("smsp__sass_thread_inst_executed_op_hadd_pred_on", kSassHadd),
    sass("smsp__sass_thread_inst_executed_op_hmul_pred_on", kSassHmul),
    sass("smsp__sass_thread_inst_executed_op_hfma_pred_on", kSassHfma),
    sass("sm__sass_thread_inst_executed_op_fadd_pred_on", kSassFadd, kSms),
    sass("sm__sass_thread_inst_executed_op_fmul_pred_on", kSassFmul, kSms),
    sass("sm__sass_thread_inst_executed_op_ffma_pred_on", kSassFfma, kSms),
    sass("sm__sass_thread_inst_executed_op_dadd_pred_on", kSassDadd, kSms),
    sass("sm__sass_thread_inst_executed_op_dmul_pred_on", kSassDmul, kSms),
    sass("sm__sass_thread_inst_executed_op_dfma_pred_on", kSassDfma, kSms),
    sass("sm__sass_thread_inst_executed_op_hadd_pred_on", kSassHadd, kSms),
    sass("sm__sass_thread_inst_executed_op_hmul_pred_on", kSassHmul, kSms),
    sass("sm__sass_thread_inst_executed_op_hfma_pred_on", kSassHfma, kSms),
    sass("simgpu__thread_inst_executed_hadd_one", kHaddOne),
    sass("simgpu__thread_inst_executed_hmul_one", kHmulOne),
    sass("simgpu__thread_inst_executed_hfma_one", kHfmaOne),
    sass("simgpu__thread_inst_executed_div_f32", kDivF32),
    sass("simgpu__thread_inst_executed_div_f64", kDivF64),
    sass("simgpu__thread_inst_executed_rcp_f32", kRcpF32),
    sass("simgpu__thread_inst_executed_rcp_f64", kRcpF64),
    sass("simgpu__thread_inst_executed_sqrt_f32", kSqrtF32),
    sass("simgpu__thread_inst_executed_sqrt_f64", kSqrtF64),
    sass("simgpu__thread_inst_executed_approx_div_f32", kApproxDivF32),
    sass("simgpu__thread_inst_executed_full_div_f32", kFullDivF32),
    sass("simgpu__thread_inst_executed_approx_rcp_f32", kApproxRcpF32),
    sass("simgpu__thread_inst_executed_approx_sin_cos_f32", kApproxSinCosF32),
    sass("simgpu__thread_inst_executed_shared_add_f32", kSharedAddF32),
    sass("simgpu__thread_inst_executed_shared_add_f64", kSharedAddF64),
    sass_blackwell("smsp__sass_thread_inst_executed_op_fadd2_pred_on"),
    sass_blackwell("smsp__sass_thread_inst_executed_op_fmul2_pred_on"),
    sass_blackwell("smsp__sass_thread_inst_executed_op_ffma2_pred_on"),

    pipe("smsp__thread_inst_executed_pipe_fma_pred_on", "x.xxxxxxxxxxxx", kPipeFma),
    pipe("smsp__thread_inst_executed_pipe_fp64_pred_on", "x.xxxxxxxxxxxx", kPipeFp64),
    pipe("smsp__thread_inst_executed_pipe_fma_type_fp16_pred_on", ".....xxxxxxxxx", kPipeFp16),
    pipe("smsp__thread_inst_executed_pipe_fp16_pred_on", "x.xxx.........", kPipeFp16),

    pipe("smsp__thread_inst_executed_pipe_tensor_op_hmma_type_hfma2_pred_on", "....x.........",
         kNone),

    inst("sm__inst_executed_pipe_fma", "x.xxxxxxxxxxxx", kInstFma),
    inst("sm__inst_executed_pipe_fp64", "x.xxxxxxxxxxxx", kInstFp64),
    inst("sm__inst_executed_pipe_fma_type_fp16", ".....xxxxxxxxx", kInstFp16),
    inst("sm__inst_executed_pipe_fp16", "x.xxx.........", kInstFp16),
    inst("sm__inst_executed_pipe_tensor", "x.xxxxxxxxxxxx", kInstTensor),
    inst("sm__inst_executed_pipe_tensor_v2", "........x.....", kInstTensor),
    inst("sm__inst_executed_pipe_tensor_op_hmma", "x.xxxxxxx.....", kInstHmma),
    inst("sm__inst_executed_pipe_tensor_op_hmma_v2", "........x.....", kInstHmma),
    inst("sm__inst_executed_pipe_tensor_op_hmma_type_hfma2", "....x.xx......", kInstHalf),
    inst("sm__inst_executed_pipe_tensor_op_gmma", ".......x......", kInstGmma),
    inst("sm__inst_executed_pipe_tensor_op_dmma", "....x..x......", kInstDmma),
    inst("sm__inst_executed_pipe_tensor_op_imma", "..xxxxxxx.....", kInstImma),
    inst("sm__inst_executed_pipe_tensor_op_imma_v2", "........x.....", kInstImma),
    inst("sm__inst_executed_pipe_fp64_op_dmma", ".....xx.x.xxxx", kInstDmma),
    inst("sm__inst_executed_pipe_tc", ".........xxx..", kNone),
    inst("sm__inst_executed_pipe_tensor_subpipe_hmma", ".........xxxxx", kInstHmma),
    inst("sm__inst_executed_pipe_tensor_subpipe_imma", ".........xxxxx", kInstImma),
    inst("sm__inst_executed_pipe_tensor_subpipe_dmma", ".........x....", kInstDmma),

    ops("sm__ops_path_tensor_src_bf16_dst_fp32", "....xxxxxxxxxx", parts(kHmmaBf16, kHgmmaBf16)),
    ops("sm__ops_path_tensor_src_fp16", ".......x......",
        parts(kHmmaFp16ToFp32, kHmmaFp16ToFp16, kHgmmaFp16)),
    ops("sm__ops_path_tensor_src_fp16_dst_fp16", "x.x.xxx.xxxxxx", parts(kHmmaFp16ToFp16)),
    ops("sm__ops_path_tensor_src_fp16_dst_fp32", "x...xxx.xxxxxx", parts(kHmmaFp16ToFp32)),
    ops("sm__ops_path_tensor_src_fp16_bf16_tf32_dst_fp32", "..x...........",
        parts(kHmmaFp16ToFp32, kHmmaBf16, kHmmaTf32)),
    ops("sm__ops_path_tensor_src_tf32_dst_fp32", "....xxxxxxxxxx", parts(kHmmaTf32, kHgmmaTf32)),
    ops("sm__ops_path_tensor_src_fp64", "....xxxxxxxxxx", parts(kDmma)),
    ops("sm__ops_path_tensor_src_fp8", ".......xx.....", parts(kFp8)),
    ops("sm__ops_path_tensor_src_fp8_dst_fp32", "..........x.xx", parts(kFp8)),
    ops("sm__ops_path_tensor_src_fp8_dst_fp16", "..........x.xx"),
    ops("sm__ops_path_tensor_src_fp4_fp6_fp8_dst_fp32", ".........x.x..", parts(kFp8)),
    ops("sm__ops_path_tensor_src_fp4_fp6_fp8_dst_fp16", ".........x.x.."),
    ops("sm__ops_path_tensor_src_int8", "..x.xxxxxxxxxx", parts(kImma, kImmaSecond, kIgmma)),
    ops("sm__ops_path_tensor_op_hmma_src_bf16_dst_fp32", ".......x.xxxxx", parts(kHmmaBf16)),
    ops("sm__ops_path_tensor_op_hmma_src_fp16", ".......x......",
        parts(kHmmaFp16ToFp32, kHmmaFp16ToFp16)),
    ops("sm__ops_path_tensor_op_hmma_src_fp16_dst_fp16", ".......x.xxxxx", parts(kHmmaFp16ToFp16)),
    ops("sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32", ".......x.xxxxx", parts(kHmmaFp16ToFp32)),
    ops("sm__ops_path_tensor_op_hmma_src_tf32_dst_fp32", ".......x.xxxxx", parts(kHmmaTf32)),
    ops("sm__ops_path_tensor_op_imma_src_int8", ".......x.xxxxx", parts(kImma, kImmaSecond)),
    ops("sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32", ".......x......", parts(kHgmmaBf16)),
    ops("sm__ops_path_tensor_op_hgmma_src_fp16", ".......x......", parts(kHgmmaFp16)),
    ops("sm__ops_path_tensor_op_hgmma_src_tf32_dst_fp32", ".......x......", parts(kHgmmaTf32)),
    ops("sm__ops_path_tensor_op_igmma_src_int8", ".......x......", parts(kIgmma)),
    ops("sm__ops_path_tensor_src_int8_sparsity_off", "....xxx.x.....", parts(kImma)),
    ops("sm__ops_path_tensor_src_int8_sparsity_on", "....xxx.x.....", parts(kImmaSecond)),
    ops("sm__ops_path_tensor_op_imma_src_int8_sparsity_off", ".......x.xxxxx", parts(kImma)),
    ops("sm__ops_path_tensor_op_imma_src_int8_sparsity_on", ".......x.xxxxx", parts(kImmaSecond)),
    ops("sm__ops_path_tensor_src_fp4_dst_fp32", ".........xxxxx"),
    ops("sm__ops_path_tensor_src_fp4_fp6_dst_fp16", "..........x.xx"),
    ops("sm__ops_path_tensor_src_fp4_fp6_dst_fp32", "..........x.xx"),
    // tcgen05: the simulated kernels have none.
    ops("sm__ops_path_tensor_op_utchmma_src_fp16_dst_fp16_sparsity_off", ".........xxx.."),
    ops("sm__ops_path_tensor_op_utchmma_src_fp16_dst_fp16_sparsity_on", ".........xxx.."),
    ops("sm__ops_path_tensor_op_utchmma_src_tf32_dst_fp32_sparsity_off", ".........xxx.."),
    ops("sm__ops_path_tensor_op_utchmma_src_tf32_dst_fp32_sparsity_on", ".........xxx.."),
    ops("sm__ops_path_tensor_op_utcimma_src_int8_sparsity_off", ".........x.x.."),
    ops("sm__ops_path_tensor_op_utcimma_src_int8_sparsity_on", ".........x.x.."),
    ops("sm__ops_path_tensor_op_utcqmma_src_fp4_fp6_dst_fp16_sparsity_off", "..........x..."),
    ops("sm__ops_path_tensor_op_utcqmma_src_fp4_fp6_dst_fp16_sparsity_on", "..........x..."),
    ops("sm__ops_path_tensor_op_utcqmma_src_fp4_fp6_dst_fp32_sparsity_off", "..........x..."),
    ops("sm__ops_path_tensor_op_utcqmma_src_fp4_fp6_dst_fp32_sparsity_on", "..........x..."),
    ops("sm__ops_path_tensor_op_utcqmma_src_fp4_fp6_fp8_dst_fp32_sparsity_off", ".........x.x.."),
    ops("sm__ops_path_tensor_op_utcqmma_src_fp4_fp6_fp8_dst_fp32_sparsity_on", ".........x.x.."),
    ops("sm__ops_path_tensor_op_utcqmma_src_fp8_dst_fp16_sparsity_off", "..........x..."),
    ops("sm__ops_path_tensor_op_utcqmma_src_fp8_dst_fp16_sparsity_on", "..........x..."),
    ops("sm__ops_path_tensor_op_utcqmma_src_fp8_dst_fp32_sparsity_off", "..........x..."),
    ops("sm__ops_path_tensor_op_utcqmma_src_fp8_dst_fp32_sparsity_on", "..........x..."),

    dram("dram__bytes", "x.xxxx.xxxx.x.", parts(kDramRead, kDramWrite)),
    dram("dram__bytes_read", "x.xxxx.xxxx...", parts(kDramRead)),
    dram("dram__bytes_write", "x.xxxx.xxxx...", parts(kDramWrite)),
    dram("dram__bytes_op_read", "............x.", parts(kDramRead)),
    dram("dram__bytes_op_write", "............x.", parts(kDramWrite)),
    {"gpu__time_duration", "x.xxxxxxxxxxxx", "duration of the range", "gpu", "nanosecond",
     Spread::kTotal, 1, parts(kTime)},
    cycles("sm__cycles_elapsed", "sm", Spread::kEach, kSms, kSmCycles),
    cycles("sm__cycles_active", "sm", Spread::kTotal, kSms, kSmActive),
    cycles("gpc__cycles_elapsed", "gpc", Spread::kEach, kGpcs, kGpcCycles),
};

}  // namespace

std::span<const MetricInfo> all_metrics() { return kMetrics; }

bool exists(const MetricInfo& metric, uint32_t chip) {
  return metric.families[chips()[chip].family] == 'x';
}

const MetricInfo* find_metric_info(uint32_t chip, std::string_view name) {
  const std::string_view base = name.substr(0, name.find('.'));
  const std::string_view suffix = name.substr(base.size());
  bool known_suffix = suffix.empty();
  for (const char* rollup : kRollupSuffixes) known_suffix |= suffix == rollup;
  if (!known_suffix) return nullptr;
  for (const MetricInfo& metric : kMetrics)
    if (base == metric.base && exists(metric, chip)) return &metric;
  return nullptr;
}

std::optional<Metric> find_metric(uint32_t chip, std::string_view name) {
  const MetricInfo* info = find_metric_info(chip, name);
  if (info == nullptr) return std::nullopt;
  const std::string_view suffix = name.substr(std::string_view(info->base).size());
  for (uint8_t i = 0; i < std::size(kRollupSuffixes); ++i)
    if (suffix == kRollupSuffixes[i]) return Metric{info, static_cast<Rollup>(i)};
  return std::nullopt;
}

std::vector<Counter> counters_of(const Metric& metric) {
  std::vector<Counter> result;
  for (const Counter counter : metric.info->counters)
    if (counter != kNone) result.push_back(counter);
  if (result.empty()) result.push_back(kNone);
  return result;
}

CounterSet counters_named(uint32_t chip, std::string_view text) {
  CounterSet named;
  for (const MetricInfo& metric : kMetrics)
    if (!text.empty() && exists(metric, chip) &&
        std::string_view(metric.base).find(text) != std::string_view::npos)
      for (const Counter counter : metric.counters) named.set(static_cast<size_t>(counter));
  return named.reset(static_cast<size_t>(kNone));
}

double evaluate(const Metric& metric, const CounterValues& totals) {
  uint64_t value = 0;
  for (const Counter counter : metric.info->counters) value += totals[static_cast<size_t>(counter)];
  const auto instances = static_cast<double>(metric.info->instances);
  const bool sum = metric.rollup == Rollup::kSum;
  if (metric.info->spread == Spread::kTotal)
    return static_cast<double>(value) / (sum ? 1.0 : instances);
  return static_cast<double>(value) * (sum ? instances : 1.0);
}

}  // namespace simgpu::cupti
