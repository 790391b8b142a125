#include <injector/counters/profiler/metric_groups.h>
#include <injector/vendor/cupti_structs.h>

#include <algorithm>

namespace flopinj {
namespace {

// Configures the group's metrics on its host object. The passes they take; 0 with the reason.
size_t configure(const CuptiApi& cupti, MetricGroup& group, Problem& problem) {
  auto add = sized<CUpti_Profiler_Host_ConfigAddMetrics_Params>();
  add.pHostObject = group.host.get();
  add.ppMetricNames = group.metrics.data();
  add.numMetrics = group.metrics.size();
  if (!check(cupti.ProfilerHostConfigAddMetrics(&add), "cuptiProfilerHostConfigAddMetrics",
             problem))
    return 0;

  auto size = sized<CUpti_Profiler_Host_GetConfigImageSize_Params>();
  size.pHostObject = group.host.get();
  if (!check(cupti.ProfilerHostGetConfigImageSize(&size), "cuptiProfilerHostGetConfigImageSize",
             problem))
    return 0;
  group.config_image.resize(size.configImageSize);

  auto image = sized<CUpti_Profiler_Host_GetConfigImage_Params>();
  image.pHostObject = group.host.get();
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

std::unique_ptr<MetricGroup> prepare_as_planned(const CuptiApi& cupti, const ChipCounters& counters,
                                                const MetricGroupPlan& plan, Passes allowed,
                                                Problem& problem) {
  auto group = std::make_unique<MetricGroup>(cupti, counters, plan, problem);
  if (group->host.get() == nullptr) return nullptr;
  const size_t passes = configure(cupti, *group, problem);
  if (passes == 1 || (passes != 0 && allowed == Passes::kAny)) return group;
  if (passes != 0)
    problem = {"counters.passes",
               "it needs " + std::to_string(passes) + " passes, and kernels are not replayed"};
  return nullptr;
}

MetricGroupPlan without(MetricGroupPlan plan, const std::vector<std::string>& metrics) {
  std::erase_if(plan.metrics, [&](const std::string& metric) {
    return std::ranges::find(metrics, metric) != metrics.end();
  });
  return plan;
}

// With the optional metrics that can be read beside the others, one after another.
std::unique_ptr<MetricGroup> prepare_with_some(const CuptiApi& cupti, const ChipCounters& counters,
                                               const MetricGroupPlan& plan, Passes allowed) {
  Problem problem;
  std::vector<std::string> out = plan.optional;
  auto group = prepare_as_planned(cupti, counters, without(plan, out), allowed, problem);
  for (const std::string& metric : plan.optional) {
    if (group == nullptr) break;
    std::vector<std::string> fewer = out;
    std::erase(fewer, metric);
    auto more = prepare_as_planned(cupti, counters, without(plan, fewer), allowed, problem);
    if (more == nullptr) continue;
    out = std::move(fewer);
    group = std::move(more);
  }
  return group;
}

}  // namespace

HostObject::HostObject(const CuptiApi& cupti, const ChipCounters& counters, Problem& problem)
    : cupti_(cupti) {
  auto p = sized<CUpti_Profiler_Host_Initialize_Params>();
  p.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  p.pChipName = counters.chip.c_str();
  p.pCounterAvailabilityImage = counters.available.empty() ? nullptr : counters.available.data();
  if (check(cupti.ProfilerHostInitialize(&p), "cuptiProfilerHostInitialize", problem))
    object_ = p.pHostObject;
}

HostObject::~HostObject() {
  if (object_ == nullptr) return;
  auto p = sized<CUpti_Profiler_Host_Deinitialize_Params>();
  p.pHostObject = object_;
  cupti_.ProfilerHostDeinitialize(&p);
}

std::unique_ptr<MetricGroup> prepare_group(const CuptiApi& cupti, const ChipCounters& counters,
                                           const MetricGroupPlan& plan, Passes allowed,
                                           Problem& problem) {
  auto group = prepare_as_planned(cupti, counters, plan, allowed, problem);
  if (group != nullptr) return group;
  const auto former = with_former_names(plan);
  Problem again;
  if (former) group = prepare_as_planned(cupti, counters, *former, allowed, again);
  if (group == nullptr && !plan.optional.empty())
    group = prepare_with_some(cupti, counters, plan, allowed);
  return group;
}

std::vector<std::string> metrics_of_chip(const CuptiApi& cupti, const ChipCounters& counters) {
  Problem problem;
  if (cupti.ProfilerHostGetBaseMetrics == nullptr) return {};
  const HostObject host(cupti, counters, problem);
  if (host.get() == nullptr) return {};
  auto p = sized<CUpti_Profiler_Host_GetBaseMetrics_Params>();
  p.pHostObject = host.get();
  p.metricType = CUPTI_METRIC_TYPE_COUNTER;
  if (cupti.ProfilerHostGetBaseMetrics(&p) != CUPTI_SUCCESS) return {};
  return {p.ppMetricNames, p.ppMetricNames + p.numMetrics};
}

size_t passes_of(const CuptiApi& cupti, const ChipCounters& counters,
                 const std::vector<std::string>& metrics) {
  Problem problem;
  MetricGroupPlan plan;
  plan.metrics = metrics;
  MetricGroup group(cupti, counters, std::move(plan), problem);
  return group.host.get() == nullptr ? 0 : configure(cupti, group, problem);
}

}  // namespace flopinj
