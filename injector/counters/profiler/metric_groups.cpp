#include <injector/counters/profiler/metric_groups.h>
#include <injector/vendor/cupti_structs.h>

namespace flopinj {
namespace {

// Null with the reason.
CUpti_Profiler_Host_Object* new_host(const CuptiApi& cupti, const std::string& chip,
                                     Problem& problem) {
  auto host = sized<CUpti_Profiler_Host_Initialize_Params>();
  host.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  host.pChipName = chip.c_str();
  if (!check(cupti.ProfilerHostInitialize(&host), "cuptiProfilerHostInitialize", problem))
    return nullptr;
  return host.pHostObject;
}

void end_host(const CuptiApi& cupti, CUpti_Profiler_Host_Object* host) {
  auto end = sized<CUpti_Profiler_Host_Deinitialize_Params>();
  end.pHostObject = host;
  cupti.ProfilerHostDeinitialize(&end);
}

// Configures the group's metrics on its host object. The passes they take; 0 with the reason.
size_t configure(const CuptiApi& cupti, MetricGroup& group, Problem& problem) {
  auto add = sized<CUpti_Profiler_Host_ConfigAddMetrics_Params>();
  add.pHostObject = group.host;
  add.ppMetricNames = group.metrics.data();
  add.numMetrics = group.metrics.size();
  if (!check(cupti.ProfilerHostConfigAddMetrics(&add), "cuptiProfilerHostConfigAddMetrics",
             problem))
    return 0;

  auto size = sized<CUpti_Profiler_Host_GetConfigImageSize_Params>();
  size.pHostObject = group.host;
  if (!check(cupti.ProfilerHostGetConfigImageSize(&size), "cuptiProfilerHostGetConfigImageSize",
             problem))
    return 0;
  group.config_image.resize(size.configImageSize);

  auto image = sized<CUpti_Profiler_Host_GetConfigImage_Params>();
  image.pHostObject = group.host;
  image.configImageSize = group.config_image.size();
  image.pConfigImage = group.config_image.data();
  if (!check(cupti.ProfilerHostGetConfigImage(&image), "cuptiProfilerHostGetConfigImage", problem))
    return 0;

  auto passes = sized<CUpti_Profiler_Host_GetNumOfPasses_Params>();
  passes.configImageSize = group.config_image.size();
  passes.pConfigImage = group.config_image.data();
  if (!check(cupti.ProfilerHostGetNumOfPasses(&passes), "cuptiProfilerHostGetNumOfPasses", problem))
    return 0;
  return passes.numOfPasses;
}

void take_names(MetricGroup& group) {
  for (const auto& metric : group.plan.metrics) group.metrics.push_back(metric.c_str());
}

std::unique_ptr<MetricGroup> prepare_as_named(const CuptiApi& cupti, const std::string& chip,
                                              const MetricGroupPlan& plan, Passes allowed,
                                              Problem& problem) {
  auto group = std::make_unique<MetricGroup>();
  group->plan = plan;
  take_names(*group);
  group->host = new_host(cupti, chip, problem);
  if (group->host == nullptr) return nullptr;
  const size_t passes = configure(cupti, *group, problem);
  if (passes == 1 || (passes != 0 && allowed == Passes::kAny)) return group;
  if (passes != 0)
    problem = {"counters.passes",
               "it needs " + std::to_string(passes) + " passes, and kernels are not replayed"};
  end_host(cupti, group->host);
  return nullptr;
}

}  // namespace

std::unique_ptr<MetricGroup> prepare_group(const CuptiApi& cupti, const std::string& chip,
                                           const MetricGroupPlan& plan, Passes allowed,
                                           Problem& problem) {
  auto group = prepare_as_named(cupti, chip, plan, allowed, problem);
  if (group != nullptr) return group;
  const auto former = with_former_names(plan);
  Problem again;
  return former ? prepare_as_named(cupti, chip, *former, allowed, again) : nullptr;
}

std::vector<std::string> metrics_of_chip(const CuptiApi& cupti, const std::string& chip) {
  Problem problem;
  if (cupti.ProfilerHostGetBaseMetrics == nullptr) return {};
  CUpti_Profiler_Host_Object* const host = new_host(cupti, chip, problem);
  if (host == nullptr) return {};
  auto p = sized<CUpti_Profiler_Host_GetBaseMetrics_Params>();
  p.pHostObject = host;
  p.metricType = CUPTI_METRIC_TYPE_COUNTER;
  std::vector<std::string> names;
  if (cupti.ProfilerHostGetBaseMetrics(&p) == CUPTI_SUCCESS)
    names.assign(p.ppMetricNames, p.ppMetricNames + p.numMetrics);
  end_host(cupti, host);
  return names;
}

size_t passes_of(const CuptiApi& cupti, const std::string& chip,
                 const std::vector<std::string>& metrics) {
  Problem problem;
  MetricGroup group;
  group.plan.metrics = metrics;
  take_names(group);
  group.host = new_host(cupti, chip, problem);
  if (group.host == nullptr) return 0;
  const size_t passes = configure(cupti, group, problem);
  end_host(cupti, group.host);
  return passes;
}

}  // namespace flopinj
