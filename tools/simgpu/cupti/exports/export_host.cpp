// Exported: the profiler host API. Results for bad input are those CUPTI 13.0.85 was seen to give.
#include <cupti_profiler_host.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <thread>

#include "chips.h"
#include "counters/availability_image.h"
#include "counters/config_image.h"
#include "counters/counter_image.h"
#include "counters/host_objects.h"
#include "counters/metrics.h"
#include "entry.h"
#include "process.h"

namespace {

using namespace simgpu::cupti;

bool known_profiler(CUpti_ProfilerType type) {
  return type == CUPTI_PROFILER_TYPE_RANGE_PROFILER || type == CUPTI_PROFILER_TYPE_PM_SAMPLING;
}

bool known_metric_type(CUpti_MetricType type) {
  return type >= 0 && type < CUPTI_METRIC_TYPE__COUNT;
}

bool unknown_here(const char* metric) {
  const std::string& text = Process::get().environment.unknown_metrics;
  return !text.empty() && std::strstr(metric, text.c_str()) != nullptr;
}

// By its name, or the one that SIMGPU_CHIP_NAME gives the devices.
std::optional<uint32_t> chip_named(const char* name) {
  Process& process = Process::get();
  const std::string& other = process.environment.chip_name;
  const auto* const driver = other == name ? process.driver() : nullptr;
  return find_chip(driver != nullptr ? driver->chip_name(0) : name);
}

bool has_metrics(uint32_t chip) {
  return std::ranges::any_of(all_metrics(),
                             [&](const MetricInfo& metric) { return exists(metric, chip); });
}

// What a fault makes of a count.
double error_of(std::string_view metric) {
  const auto& faults = Process::get().environment.faults;
  if (faults.operations_halved && metric.starts_with("sm__ops_path_tensor_")) return 0.5;
  if (faults.instructions_doubled && metric.starts_with("smsp__sass_")) return 2;
  if (faults.dram_halved && metric.starts_with("dram__bytes")) return 0.5;
  return 1;
}

// A metric whose counters were not collected is not a number: it must not be read as 0.
double value_of(const Metric& metric, const RangeValues& range) {
  for (const Counter counter : counters_of(metric))
    if (!range.collected[static_cast<size_t>(counter)])
      return std::numeric_limits<double>::quiet_NaN();
  return evaluate(metric, range.values) * error_of(metric.info->base);
}

// The checks that every call with a host object shares.
template <class Params, class Body>
CUptiResult on_object(const Params* params, size_t size, Body&& body) noexcept {
  return entry(params, size, [&] { return HostObjects::get().with(params->pHostObject, body); });
}

}  // namespace

extern "C" {

CUptiResult CUPTIAPI cuptiProfilerHostInitialize(CUpti_Profiler_Host_Initialize_Params* pParams) {
  return entry(pParams, CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE, [&] {
    if (pParams->pChipName == nullptr || !known_profiler(pParams->profilerType))
      return CUPTI_ERROR_INVALID_PARAMETER;
    const auto chip = chip_named(pParams->pChipName);
    if (!chip) return CUPTI_ERROR_INVALID_CHIP_NAME;
    // GV11B is listed and refused: it has no metrics of these names.
    if (!has_metrics(*chip)) return CUPTI_ERROR_NOT_SUPPORTED;
    const auto& faults = Process::get().environment.faults;
    if (faults.host_objects != 0 && HostObjects::get().count() >= faults.host_objects)
      return CUPTI_ERROR_OUT_OF_MEMORY;
    std::this_thread::sleep_for(std::chrono::milliseconds(faults.slow_host));
    CounterSet lacking;
    if (pParams->pCounterAvailabilityImage != nullptr) {
      const auto available = read_availability_image(pParams->pCounterAvailabilityImage);
      if (!available || available->chip != *chip) return CUPTI_ERROR_INVALID_PARAMETER;
      lacking = available->lacking;
    }
    pParams->pHostObject = HostObjects::get().create(*chip, lacking);
    return CUPTI_SUCCESS;
  });
}

CUptiResult CUPTIAPI
cuptiProfilerHostDeinitialize(CUpti_Profiler_Host_Deinitialize_Params* pParams) {
  return entry(pParams, CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE,
               [&] { return HostObjects::get().destroy(pParams->pHostObject); });
}

CUptiResult CUPTIAPI
cuptiProfilerHostGetSupportedChips(CUpti_Profiler_Host_GetSupportedChips_Params* pParams) {
  return entry(pParams, CUpti_Profiler_Host_GetSupportedChips_Params_STRUCT_SIZE, [&] {
    pParams->numChips = chip_names().size();
    pParams->ppChipNames = chip_names().data();
    return CUPTI_SUCCESS;
  });
}

CUptiResult CUPTIAPI
cuptiProfilerHostGetBaseMetrics(CUpti_Profiler_Host_GetBaseMetrics_Params* pParams) {
  return on_object(pParams, CUpti_Profiler_Host_GetBaseMetrics_Params_STRUCT_SIZE,
                   [&](HostObject& object) {
                     if (!known_metric_type(pParams->metricType))
                       return CUPTI_ERROR_INVALID_PARAMETER;
                     object.base_metrics.clear();
                     if (pParams->metricType == CUPTI_METRIC_TYPE_COUNTER)
                       for (const MetricInfo& metric : all_metrics())
                         if (exists(metric, object.chip) && !unknown_here(metric.base))
                           object.base_metrics.push_back(metric.base);
                     pParams->ppMetricNames = object.base_metrics.data();
                     pParams->numMetrics = object.base_metrics.size();
                     return CUPTI_SUCCESS;
                   });
}

CUptiResult CUPTIAPI
cuptiProfilerHostGetMetricProperties(CUpti_Profiler_Host_GetMetricProperties_Params* pParams) {
  return on_object(pParams, CUpti_Profiler_Host_GetMetricProperties_Params_STRUCT_SIZE,
                   [&](HostObject& object) {
                     if (pParams->pMetricName == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
                     const MetricInfo* metric = find_metric_info(object.chip, pParams->pMetricName);
                     if (metric == nullptr) return CUPTI_ERROR_INVALID_METRIC_NAME;
                     pParams->pDescription = metric->description;
                     pParams->pHwUnit = metric->unit;
                     pParams->pDimUnit = metric->dimension;
                     pParams->metricType = CUPTI_METRIC_TYPE_COUNTER;
                     return CUPTI_SUCCESS;
                   });
}

// The headers promise CUPTI_ERROR_INVALID_METRIC_NAME for a name that does not exist; the library
// gives CUPTI_ERROR_INVALID_PARAMETER, and so do we.
CUptiResult CUPTIAPI
cuptiProfilerHostConfigAddMetrics(CUpti_Profiler_Host_ConfigAddMetrics_Params* pParams) {
  return on_object(
      pParams, CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE, [&](HostObject& object) {
        if (pParams->ppMetricNames == nullptr || pParams->numMetrics == 0)
          return CUPTI_ERROR_INVALID_PARAMETER;
        std::vector<Counter> added;
        for (size_t i = 0; i < pParams->numMetrics; ++i) {
          const char* name = pParams->ppMetricNames[i];
          const auto metric = name == nullptr ? std::nullopt : find_metric(object.chip, name);
          if (!metric || unknown_here(name)) return CUPTI_ERROR_INVALID_PARAMETER;
          for (const Counter counter : counters_of(*metric)) {
            if (object.lacking.test(static_cast<size_t>(counter)))
              return CUPTI_ERROR_INVALID_PARAMETER;
            added.push_back(counter);
          }
        }
        object.counters.insert(object.counters.end(), added.begin(), added.end());
        return CUPTI_SUCCESS;
      });
}

CUptiResult CUPTIAPI
cuptiProfilerHostGetConfigImageSize(CUpti_Profiler_Host_GetConfigImageSize_Params* pParams) {
  return on_object(pParams, CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE,
                   [&](HostObject& object) {
                     if (object.counters.empty())
                       return CUPTI_ERROR_UNKNOWN;  // no metric added yet
                     pParams->configImageSize =
                         write_config_image(schedule_passes(object.chip, object.counters)).size();
                     return CUPTI_SUCCESS;
                   });
}

CUptiResult CUPTIAPI
cuptiProfilerHostGetConfigImage(CUpti_Profiler_Host_GetConfigImage_Params* pParams) {
  return on_object(pParams, CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE,
                   [&](HostObject& object) {
                     if (pParams->pConfigImage == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
                     if (object.counters.empty()) return CUPTI_ERROR_UNKNOWN;
                     const std::vector<uint8_t> image =
                         write_config_image(schedule_passes(object.chip, object.counters));
                     if (pParams->configImageSize < image.size())
                       return CUPTI_ERROR_INVALID_PARAMETER;
                     std::memcpy(pParams->pConfigImage, image.data(), image.size());
                     return CUPTI_SUCCESS;
                   });
}

CUptiResult CUPTIAPI
cuptiProfilerHostGetNumOfPasses(CUpti_Profiler_Host_GetNumOfPasses_Params* pParams) {
  return entry(pParams, CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE, [&] {
    if (pParams->pConfigImage == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    const auto schedule = read_config_image({pParams->pConfigImage, pParams->configImageSize});
    if (!schedule) return CUPTI_ERROR_INVALID_PARAMETER;
    pParams->numOfPasses = schedule->passes.size();
    return CUPTI_SUCCESS;
  });
}

CUptiResult CUPTIAPI
cuptiProfilerHostEvaluateToGpuValues(CUpti_Profiler_Host_EvaluateToGpuValues_Params* pParams) {
  return on_object(
      pParams, CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE, [&](HostObject& object) {
        if (pParams->ppMetricNames == nullptr || pParams->pMetricValues == nullptr ||
            pParams->numMetrics == 0)
          return CUPTI_ERROR_INVALID_PARAMETER;
        const auto image = CounterImage::open(
            std::span(pParams->pCounterDataImage, pParams->counterDataImageSize));
        if (!image || image->chip() != object.chip || pParams->rangeIndex >= image->ranges())
          return CUPTI_ERROR_INVALID_PARAMETER;
        const RangeValues range = image->read(pParams->rangeIndex);
        for (size_t i = 0; i < pParams->numMetrics; ++i) {
          const char* name = pParams->ppMetricNames[i];
          const auto metric = name == nullptr ? std::nullopt : find_metric(object.chip, name);
          if (!metric) return CUPTI_ERROR_INVALID_METRIC_NAME;
          pParams->pMetricValues[i] = value_of(*metric, range);
        }
        return CUPTI_SUCCESS;
      });
}

}  // extern "C"
