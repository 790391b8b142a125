#include "real_host.h"

#include <dlfcn.h>

#include <cstdlib>

#include "catch.h"

std::optional<RealHost> RealHost::find() {
  std::vector<std::string> places;
  if (const char* text = std::getenv("SIMGPU_TEST_REAL_CUPTI")) places.emplace_back(text);
  const std::string headers = CUPTI_HEADERS;
  for (const char* folder : {"/../lib", "/../lib64"})
    places.push_back(headers + folder + "/libcupti.so.13");
  for (const char* folder : {"lib64", "lib", "extras/CUPTI/lib64", "targets/x86_64-linux/lib"})
    places.push_back(std::string("/usr/local/cuda/") + folder + "/libcupti.so.13");
  for (const std::string& place : places)
    // Local and deep: its symbols must not mix with those of the simulated library in this process.
    if (void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return RealHost(library);
  return std::nullopt;
}

template <class Function>
Function* RealHost::symbol(const char* name) const {
  auto* const function = reinterpret_cast<Function*>(dlsym(library_, name));
  REQUIRE(function != nullptr);
  return function;
}

std::vector<std::string> RealHost::chips() const {
  CUpti_Profiler_Host_GetSupportedChips_Params params{};
  params.structSize = CUpti_Profiler_Host_GetSupportedChips_Params_STRUCT_SIZE;
  REQUIRE(symbol<decltype(cuptiProfilerHostGetSupportedChips)>(
              "cuptiProfilerHostGetSupportedChips")(&params) == CUPTI_SUCCESS);
  return {params.ppChipNames, params.ppChipNames + params.numChips};
}

namespace {

template <class Initialize, class Deinitialize, class Body>
void with_host(const char* chip, Initialize* initialize, Deinitialize* deinitialize, Body&& body) {
  CUpti_Profiler_Host_Initialize_Params create{};
  create.structSize = CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE;
  create.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  create.pChipName = chip;
  const CUptiResult created = initialize(&create);
  if (created == CUPTI_ERROR_NOT_SUPPORTED) return;  // GV11B
  REQUIRE(created == CUPTI_SUCCESS);
  body(create.pHostObject);
  CUpti_Profiler_Host_Deinitialize_Params destroy{};
  destroy.structSize = CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE;
  destroy.pHostObject = create.pHostObject;
  deinitialize(&destroy);
}

}  // namespace

std::set<std::string> RealHost::base_metrics(const char* chip) const {
  std::set<std::string> result;
  with_host(chip, symbol<decltype(cuptiProfilerHostInitialize)>("cuptiProfilerHostInitialize"),
            symbol<decltype(cuptiProfilerHostDeinitialize)>("cuptiProfilerHostDeinitialize"),
            [&](CUpti_Profiler_Host_Object* host) {
              CUpti_Profiler_Host_GetBaseMetrics_Params params{};
              params.structSize = CUpti_Profiler_Host_GetBaseMetrics_Params_STRUCT_SIZE;
              params.pHostObject = host;
              params.metricType = CUPTI_METRIC_TYPE_COUNTER;
              REQUIRE(symbol<decltype(cuptiProfilerHostGetBaseMetrics)>(
                          "cuptiProfilerHostGetBaseMetrics")(&params) == CUPTI_SUCCESS);
              result.insert(params.ppMetricNames, params.ppMetricNames + params.numMetrics);
            });
  return result;
}

size_t RealHost::passes(const char* chip, const std::vector<std::string>& metrics) const {
  std::vector<const char*> names;
  for (const auto& metric : metrics) names.push_back(metric.c_str());
  CUpti_Profiler_Host_GetNumOfPasses_Params count{};
  with_host(chip, symbol<decltype(cuptiProfilerHostInitialize)>("cuptiProfilerHostInitialize"),
            symbol<decltype(cuptiProfilerHostDeinitialize)>("cuptiProfilerHostDeinitialize"),
            [&](CUpti_Profiler_Host_Object* host) {
              CUpti_Profiler_Host_ConfigAddMetrics_Params add{};
              add.structSize = CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE;
              add.pHostObject = host;
              add.ppMetricNames = names.data();
              add.numMetrics = names.size();
              REQUIRE(symbol<decltype(cuptiProfilerHostConfigAddMetrics)>(
                          "cuptiProfilerHostConfigAddMetrics")(&add) == CUPTI_SUCCESS);
              CUpti_Profiler_Host_GetConfigImageSize_Params size{};
              size.structSize = CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE;
              size.pHostObject = host;
              REQUIRE(symbol<decltype(cuptiProfilerHostGetConfigImageSize)>(
                          "cuptiProfilerHostGetConfigImageSize")(&size) == CUPTI_SUCCESS);
              std::vector<uint8_t> bytes(size.configImageSize);
              CUpti_Profiler_Host_GetConfigImage_Params image{};
              image.structSize = CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE;
              image.pHostObject = host;
              image.configImageSize = bytes.size();
              image.pConfigImage = bytes.data();
              REQUIRE(symbol<decltype(cuptiProfilerHostGetConfigImage)>(
                          "cuptiProfilerHostGetConfigImage")(&image) == CUPTI_SUCCESS);
              count.structSize = CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE;
              count.configImageSize = bytes.size();
              count.pConfigImage = bytes.data();
              REQUIRE(symbol<decltype(cuptiProfilerHostGetNumOfPasses)>(
                          "cuptiProfilerHostGetNumOfPasses")(&count) == CUPTI_SUCCESS);
            });
  return count.numOfPasses;
}
