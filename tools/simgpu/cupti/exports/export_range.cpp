// Exported: the range profiler API. Left out of the library variant that plays a CUPTI without
// it.
#include <cupti_range_profiler.h>

#include <mutex>
#include <string>
#include <unordered_set>

#include "chips.h"
#include "counters/counter_image.h"
#include "entry.h"
#include "process.h"

namespace {

using simgpu::Driver;
using namespace simgpu::cupti;

// The checks every call shares: size of the structure, a driver, a live object.
template <class Params, class Body>
CUptiResult on_range_profiler(const Params* params, size_t size, Body&& body) noexcept {
  return entry(params, size, [&] {
    Process& process = Process::get();
    if (process.driver() == nullptr) return process.no_driver();
    return process.ranges.with(params->pRangeProfilerObject, body);
  });
}

// Range names handed out stay valid for good; there are as many as different names.
const char* keep(const std::string& name) {
  static auto* const mutex = new std::mutex;
  static auto* const names = new std::unordered_set<std::string>;
  const std::scoped_lock lock(*mutex);
  return names->insert(name).first->c_str();
}

// The driver is never called under the registry's lock.

// A fault: opening and closing a window cost the program nothing else.
void take_time() {
  Process& process = Process::get();
  if (const uint64_t us = process.environment.faults.slow_windows; us != 0)
    process.driver()->spend_ns(us * 1'000);
}

// A fault: all kernels that are loaded are patched, whether they are launched or not.
void take_time_of_patching() {
  Process& process = Process::get();
  if (const uint64_t us = process.environment.faults.slow_patching; us != 0)
    process.driver()->spend_ns(us * 1'000 * process.loaded_kernels);
}

// What changes a session synchronises its context, which spoils captures under way.
template <class Params>
CUptiResult synchronize(const Params* params, size_t size) {
  CUcontext context = nullptr;
  const CUptiResult found = on_range_profiler(params, size, [&](const RangeProfiler& object) {
    context = object.context();
    return CUPTI_SUCCESS;
  });
  if (found != CUPTI_SUCCESS) return found;
  const CUresult done = Process::get().driver()->synchronize_for_tool(context);
  return done == CUDA_SUCCESS ? CUPTI_SUCCESS : CUPTI_ERROR_UNKNOWN;
}

}  // namespace

extern "C" {

CUptiResult CUPTIAPI cuptiRangeProfilerEnable(CUpti_RangeProfiler_Enable_Params* pParams) {
  return entry(pParams, CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE, [&] {
    Process& process = Process::get();
    const Driver* driver = process.driver();
    if (driver == nullptr) return process.no_driver();
    if (pParams->ctx == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    if (driver->context_id(pParams->ctx) == 0) return CUPTI_ERROR_INVALID_CONTEXT;
    const uint32_t device = driver->device_of_context(pParams->ctx);
    const auto chip = find_chip(driver->chip_name(static_cast<int>(device)));
    if (!chip) return CUPTI_ERROR_NOT_SUPPORTED;
    if (driver->synchronize_for_tool(pParams->ctx) != CUDA_SUCCESS) return CUPTI_ERROR_UNKNOWN;
    if (process.environment.faults.no_records_beside && process.activity.wants_kernels())
      return CUPTI_ERROR_NOT_COMPATIBLE;
    return process.ranges.enable(pParams->ctx, device, *chip, &pParams->pRangeProfilerObject);
  });
}

CUptiResult CUPTIAPI cuptiRangeProfilerDisable(CUpti_RangeProfiler_Disable_Params* pParams) {
  return entry(pParams, CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE, [&] {
    synchronize(pParams,
                CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE);  // it goes on all the same
    return Process::get().ranges.disable(pParams->pRangeProfilerObject);
  });
}

CUptiResult CUPTIAPI
cuptiRangeProfilerGetCounterDataSize(CUpti_RangeProfiler_GetCounterDataSize_Params* pParams) {
  return on_range_profiler(pParams, CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE,
                           [&](RangeProfiler& object) {
                             if (pParams->pMetricNames == nullptr)
                               return CUPTI_ERROR_INVALID_PARAMETER;
                             return object.counter_data_size(
                                 {pParams->pMetricNames, pParams->numMetrics},
                                 pParams->maxNumOfRanges, pParams->maxNumRangeTreeNodes,
                                 &pParams->counterDataSize);
                           });
}

CUptiResult CUPTIAPI cuptiRangeProfilerCounterDataImageInitialize(
    CUpti_RangeProfiler_CounterDataImage_Initialize_Params* pParams) {
  return on_range_profiler(
      pParams, CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE,
      [&](RangeProfiler& object) {
        return object.initialize_image({pParams->pCounterData, pParams->counterDataSize});
      });
}

CUptiResult CUPTIAPI cuptiRangeProfilerSetConfig(CUpti_RangeProfiler_SetConfig_Params* pParams) {
  return on_range_profiler(pParams, CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE,
                           [&](RangeProfiler& object) { return object.set_config(*pParams); });
}

CUptiResult CUPTIAPI cuptiRangeProfilerStart(CUpti_RangeProfiler_Start_Params* pParams) {
  CUcontext context = nullptr;
  simgpu::Session session{};
  const CUptiResult allowed = synchronize(pParams, CUpti_RangeProfiler_Start_Params_STRUCT_SIZE);
  if (allowed != CUPTI_SUCCESS) return allowed;
  const CUptiResult result = on_range_profiler(
      pParams, CUpti_RangeProfiler_Start_Params_STRUCT_SIZE, [&](RangeProfiler& object) {
        context = object.context();
        session = object.session();
        return object.start();
      });
  if (result == CUPTI_SUCCESS) {
    Process::get().driver()->set_session(context, session);
    take_time();
    if (session.instrumented != 0) take_time_of_patching();
  }
  return result;
}

CUptiResult CUPTIAPI cuptiRangeProfilerStop(CUpti_RangeProfiler_Stop_Params* pParams) {
  synchronize(pParams, CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE);  // it goes on all the same
  CUcontext context = nullptr;
  const CUptiResult result = on_range_profiler(
      pParams, CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE, [&](RangeProfiler& object) {
        context = object.context();
        bool all_passes = false;
        const CUptiResult stopped = object.stop(Callbacks::exiting_call(), &pParams->passIndex,
                                                &pParams->targetNestingLevel, &all_passes);
        if (stopped == CUPTI_SUCCESS) pParams->isAllPassSubmitted = all_passes ? 1 : 0;
        return stopped;
      });
  if (result == CUPTI_SUCCESS) {
    Process::get().driver()->set_session(context, {0, 0, 0});
    take_time();
  }
  return result;
}

CUptiResult CUPTIAPI cuptiRangeProfilerPushRange(CUpti_RangeProfiler_PushRange_Params* pParams) {
  synchronize(pParams, CUpti_RangeProfiler_PushRange_Params_STRUCT_SIZE);
  return on_range_profiler(pParams, CUpti_RangeProfiler_PushRange_Params_STRUCT_SIZE,
                           [&](RangeProfiler& object) { return object.push(pParams->pRangeName); });
}

CUptiResult CUPTIAPI cuptiRangeProfilerPopRange(CUpti_RangeProfiler_PopRange_Params* pParams) {
  synchronize(pParams, CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE);
  return on_range_profiler(pParams, CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE,
                           [&](RangeProfiler& object) { return object.pop(); });
}

CUptiResult CUPTIAPI cuptiRangeProfilerDecodeData(CUpti_RangeProfiler_DecodeData_Params* pParams) {
  return on_range_profiler(
      pParams, CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE,
      [&](RangeProfiler& object) { return object.decode(&pParams->numOfRangeDropped); });
}

CUptiResult CUPTIAPI
cuptiRangeProfilerGetCounterDataInfo(CUpti_RangeProfiler_GetCounterDataInfo_Params* pParams) {
  return entry(pParams, CUpti_RangeProfiler_GetCounterDataInfo_Params_STRUCT_SIZE, [&] {
    const auto image =
        CounterImage::open(std::span(pParams->pCounterDataImage, pParams->counterDataImageSize));
    if (!image) return CUPTI_ERROR_INVALID_PARAMETER;
    pParams->numTotalRanges = image->ranges();
    return CUPTI_SUCCESS;
  });
}

CUptiResult CUPTIAPI cuptiRangeProfilerCounterDataGetRangeInfo(
    CUpti_RangeProfiler_CounterData_GetRangeInfo_Params* pParams) {
  return entry(pParams, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params_STRUCT_SIZE, [&] {
    const auto image =
        CounterImage::open(std::span(pParams->pCounterDataImage, pParams->counterDataImageSize));
    if (!image || pParams->rangeIndex >= image->ranges()) return CUPTI_ERROR_INVALID_PARAMETER;
    const char* delimiter = pParams->rangeDelimiter == nullptr ? "/" : pParams->rangeDelimiter;
    pParams->rangeName = keep(delimited_name(image->read(pParams->rangeIndex).name, delimiter));
    return CUPTI_SUCCESS;
  });
}

}  // extern "C"
