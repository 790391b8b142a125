#include <injector/metric_groups.h>

namespace flopinj {

std::unique_ptr<MetricGroup> prepare_group(const CuptiApi& cupti, const std::string& chip,
                                           const MetricGroupPlan& plan, Passes allowed,
                                           Problem& problem) {
  auto group = std::make_unique<MetricGroup>();
  group->plan = plan;
  for (const auto& metric : group->plan.metrics) group->metrics.push_back(metric.c_str());

  auto host = sized<CUpti_Profiler_Host_Initialize_Params>(
      CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE);
  host.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  host.pChipName = chip.c_str();
  if (!check(cupti, cupti.ProfilerHostInitialize(&host), "cuptiProfilerHostInitialize", problem))
    return nullptr;
  group->host = host.pHostObject;

  const auto fill = [&] {
    auto add = sized<CUpti_Profiler_Host_ConfigAddMetrics_Params>(
        CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE);
    add.pHostObject = group->host;
    add.ppMetricNames = group->metrics.data();
    add.numMetrics = group->metrics.size();
    if (!check(cupti, cupti.ProfilerHostConfigAddMetrics(&add), "cuptiProfilerHostConfigAddMetrics",
               problem))
      return false;

    auto size = sized<CUpti_Profiler_Host_GetConfigImageSize_Params>(
        CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE);
    size.pHostObject = group->host;
    if (!check(cupti, cupti.ProfilerHostGetConfigImageSize(&size),
               "cuptiProfilerHostGetConfigImageSize", problem))
      return false;
    group->config_image.resize(size.configImageSize);

    auto image = sized<CUpti_Profiler_Host_GetConfigImage_Params>(
        CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE);
    image.pHostObject = group->host;
    image.configImageSize = group->config_image.size();
    image.pConfigImage = group->config_image.data();
    if (!check(cupti, cupti.ProfilerHostGetConfigImage(&image), "cuptiProfilerHostGetConfigImage",
               problem))
      return false;

    auto passes = sized<CUpti_Profiler_Host_GetNumOfPasses_Params>(
        CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE);
    passes.configImageSize = group->config_image.size();
    passes.pConfigImage = group->config_image.data();
    if (!check(cupti, cupti.ProfilerHostGetNumOfPasses(&passes), "cuptiProfilerHostGetNumOfPasses",
               problem))
      return false;
    if (passes.numOfPasses == 1 || allowed == Passes::kAny) return true;
    problem = {"counters.passes", "it needs " + std::to_string(passes.numOfPasses) +
                                      " passes, and kernels are not replayed"};
    return false;
  };
  if (fill()) return group;

  auto end = sized<CUpti_Profiler_Host_Deinitialize_Params>(
      CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE);
  end.pHostObject = group->host;
  cupti.ProfilerHostDeinitialize(&end);
  return nullptr;
}

}  // namespace flopinj
