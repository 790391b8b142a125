// The profiler host API alone: names, passes, errors.
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "catch.h"
#include "range_client.h"

namespace {

size_t passes(const Metrics& metrics, const char* chip = "GH100") {
  const HostPlan plan(metrics, chip);
  REQUIRE(plan.result == CUPTI_SUCCESS);
  return plan.passes;
}

CUptiResult initialize(size_t size, const char* chip, CUpti_ProfilerType type) {
  CUpti_Profiler_Host_Initialize_Params params{};
  params.structSize = size;
  params.pChipName = chip;
  params.profilerType = type;
  return cuptiProfilerHostInitialize(&params);
}

}  // namespace

TEST_CASE("every chip of CUPTI 13.0 is there, with names of its own") {
  CUpti_Profiler_Host_GetSupportedChips_Params params{};
  params.structSize = CUpti_Profiler_Host_GetSupportedChips_Params_STRUCT_SIZE;
  REQUIRE(cuptiProfilerHostGetSupportedChips(&params) == CUPTI_SUCCESS);
  const std::set<std::string> chips(params.ppChipNames, params.ppChipNames + params.numChips);
  CHECK(chips.size() == 30);
  for (const char* chip : {"GV100", "TU102", "GA100", "GH100", "AD102", "GB100", "GB202"})
    CHECK(chips.count(chip) == 1);
  CHECK(HostPlan({"sm__ops_path_tensor_src_fp16.sum"}, "GH100").result == CUPTI_SUCCESS);
  CHECK(HostPlan({"sm__ops_path_tensor_src_fp16.sum"}, "GA100").result ==
        CUPTI_ERROR_INVALID_PARAMETER);
  CHECK(HostPlan({"sm__ops_path_tensor_src_fp16_dst_fp32.sum"}, "GA100").result == CUPTI_SUCCESS);
  CHECK(HostPlan({"sm__ops_path_tensor_src_fp16_bf16_tf32_dst_fp32.sum"}, "TU102").result ==
        CUPTI_SUCCESS);
}

TEST_CASE("pass counts on GH100") {
  const std::string ops = "sm__ops_path_tensor_";
  const auto names = [](const std::vector<std::string>& owned) {
    Metrics result;
    for (const auto& name : owned) result.push_back(name.c_str());
    return result;
  };
  CHECK(passes(kSassMetrics) == 1);
  CHECK(passes(kScreening) == 1);
  CHECK(passes({kSassMetrics[0], "gpu__time_duration.sum"}) == 2);
  const std::vector<std::string> gmma = {ops + "op_hgmma_src_bf16_dst_fp32.sum",
                                         ops + "op_hgmma_src_fp16.sum",
                                         ops + "op_hgmma_src_tf32_dst_fp32.sum",
                                         ops + "src_fp8.sum",
                                         "dram__bytes_read.sum",
                                         "gpu__time_duration.sum"};
  CHECK(passes(names(gmma)) == 1);
  auto with_hmma = gmma;
  with_hmma.push_back(ops + "op_hmma_src_bf16_dst_fp32.sum");
  CHECK(passes(names(with_hmma)) == 1);
  const std::vector<std::string> two_of = {
      ops + "op_hmma_src_bf16_dst_fp32.sum", ops + "op_hmma_src_fp16_dst_fp32.sum",
      ops + "op_hmma_src_tf32_dst_fp32.sum", ops + "src_fp64.sum"};
  for (size_t i = 0; i < two_of.size(); ++i)
    for (size_t j = i + 1; j < two_of.size(); ++j)
      CHECK(passes(names({two_of[i], two_of[j]})) == 2);
  for (const char* alone : {"src_bf16_dst_fp32", "src_tf32_dst_fp32", "src_fp8", "src_fp64"})
    CHECK(passes(names({ops + alone + ".sum"})) == 1);
  for (const char* alone : {"src_fp16", "src_int8"})
    CHECK(passes(names({ops + alone + ".sum"})) == 2);
  CHECK(passes({"smsp__thread_inst_executed_pipe_fma_pred_on.sum",
                "smsp__thread_inst_executed_pipe_fp64_pred_on.sum",
                "smsp__thread_inst_executed_pipe_fma_type_fp16_pred_on.sum"}) == 2);
  std::vector<std::string> all;
  for (const char* source :
       {"src_bf16_dst_fp32", "src_fp16", "src_tf32_dst_fp32", "src_fp64", "src_fp8", "src_int8"})
    all.push_back(ops + source + ".sum");
  CHECK(passes(kSassMetrics + names(all) +
               Metrics{"dram__bytes_read.sum", "dram__bytes_write.sum"}) == 7);
}

TEST_CASE("a metric counted twice costs nothing, and another rollup of it neither") {
  const char* name = "sm__ops_path_tensor_src_fp64.sum";
  CHECK(passes({name, name, "sm__ops_path_tensor_src_fp64.max"}) == 1);
}

TEST_CASE("bad arguments get the results of CUPTI 13.0.85") {
  constexpr size_t kSize = CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE;
  constexpr auto kRange = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  CHECK(initialize(kSize - 8, "GH100", kRange) == CUPTI_ERROR_INVALID_PARAMETER);
  CHECK(initialize(kSize + 8, "GH100", kRange) == CUPTI_ERROR_INVALID_PARAMETER);
  CHECK(initialize(kSize, nullptr, kRange) == CUPTI_ERROR_INVALID_PARAMETER);
  CHECK(initialize(kSize, "GH100", CUPTI_PROFILER_TYPE_PROFILER_INVALID) ==
        CUPTI_ERROR_INVALID_PARAMETER);
  CHECK(initialize(kSize, "ZZ100", kRange) == CUPTI_ERROR_INVALID_CHIP_NAME);
  CHECK(initialize(kSize, "GV11B", kRange) == CUPTI_ERROR_NOT_SUPPORTED);  // listed, yet refused
  CHECK(initialize(kSize, "gh100", kRange) == CUPTI_ERROR_INVALID_CHIP_NAME);
  for (const char* name : {"nope.sum", "dram__bytes_read", "dram__bytes_read.foo", ""})
    CHECK(HostPlan({name}).result == CUPTI_ERROR_INVALID_PARAMETER);
  CHECK(HostPlan({}).result == CUPTI_ERROR_INVALID_PARAMETER);

  const HostPlan plan({"dram__bytes_read.sum"});
  std::vector<uint8_t> small(plan.config.size() - 1);
  CUpti_Profiler_Host_GetConfigImage_Params image{};
  image.structSize = CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE;
  image.pHostObject = plan.host;
  image.pConfigImage = small.data();
  image.configImageSize = small.size();
  CHECK(cuptiProfilerHostGetConfigImage(&image) == CUPTI_ERROR_INVALID_PARAMETER);
  CUpti_Profiler_Host_GetNumOfPasses_Params count{};
  count.structSize = CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE;
  count.pConfigImage = small.data();
  count.configImageSize = small.size();
  CHECK(cuptiProfilerHostGetNumOfPasses(&count) == CUPTI_ERROR_INVALID_PARAMETER);
}

TEST_CASE("an object without metrics has no image, and one that is gone is no object") {
  CUpti_Profiler_Host_Initialize_Params create{};
  create.structSize = CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE;
  create.pChipName = "GH100";
  REQUIRE(cuptiProfilerHostInitialize(&create) == CUPTI_SUCCESS);
  CUpti_Profiler_Host_GetConfigImageSize_Params size{};
  size.structSize = CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE;
  size.pHostObject = create.pHostObject;
  CHECK(cuptiProfilerHostGetConfigImageSize(&size) == CUPTI_ERROR_UNKNOWN);
  CUpti_Profiler_Host_Deinitialize_Params destroy{};
  destroy.structSize = CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE;
  destroy.pHostObject = create.pHostObject;
  CHECK(cuptiProfilerHostDeinitialize(&destroy) == CUPTI_SUCCESS);
  CHECK(cuptiProfilerHostDeinitialize(&destroy) == CUPTI_ERROR_INVALID_PARAMETER);
  CHECK(cuptiProfilerHostGetConfigImageSize(&size) == CUPTI_ERROR_INVALID_PARAMETER);
}

TEST_CASE("metrics can be listed and described") {
  const HostPlan plan({"dram__bytes_read.sum"});
  CUpti_Profiler_Host_GetBaseMetrics_Params base{};
  base.structSize = CUpti_Profiler_Host_GetBaseMetrics_Params_STRUCT_SIZE;
  base.pHostObject = plan.host;
  base.metricType = CUPTI_METRIC_TYPE_COUNTER;
  REQUIRE(cuptiProfilerHostGetBaseMetrics(&base) == CUPTI_SUCCESS);
  const std::set<std::string> names(base.ppMetricNames, base.ppMetricNames + base.numMetrics);
  CHECK(names.size() == base.numMetrics);
  for (const char* name : kSassMetrics + kScreening)
    CHECK(names.count(std::string(name, strcspn(name, "."))) == 1);

  CUpti_Profiler_Host_GetMetricProperties_Params properties{};
  properties.structSize = CUpti_Profiler_Host_GetMetricProperties_Params_STRUCT_SIZE;
  properties.pHostObject = plan.host;
  properties.pMetricName = "dram__bytes_read.sum";
  REQUIRE(cuptiProfilerHostGetMetricProperties(&properties) == CUPTI_SUCCESS);
  CHECK(std::string(properties.pHwUnit) == "dram");
  CHECK(std::string(properties.pDimUnit) == "byte");
  properties.pMetricName = "nope";
  CHECK(cuptiProfilerHostGetMetricProperties(&properties) == CUPTI_ERROR_INVALID_METRIC_NAME);
}
