// CUPTI's parameter structures, with the sizes that CUPTI 12.6 knows.
//
// Each begins with its own size, from which CUPTI sees how much of it the caller knows. Structures
// grow at their end, and a CUPTI refuses one that is larger than its own: the headers' _STRUCT_SIZE
// of CUPTI 13.2, for example, is refused by 12.6 to 13.1. So sizes are fixed here, whatever headers
// the build has. Source: the headers of nvidia-cuda-cupti-cu12 12.6.80, `last` and `size` being
// what their _STRUCT_SIZE is made of. The assertions hold for the headers of 12.6 to 13.5.
#pragma once
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include <cstddef>
#include <cstdint>

namespace flopinj {

// structure, its last field in CUPTI 12.6, bytes up to the end of that field
// clang-format off
#define FLOPINJ_CUPTI_STRUCTS(f)                                                  \
  f(CUpti_Device_GetChipName_Params, pChipName, 32)                               \
  f(CUpti_Profiler_Initialize_Params, pPriv, 16)                                  \
  f(CUpti_Profiler_DeviceSupported_Params, api, 52)                               \
  f(CUpti_Profiler_GetCounterAvailability_Params, pCounterAvailabilityImage, 40)  \
  f(CUpti_Profiler_Host_Initialize_Params, pHostObject, 48)                       \
  f(CUpti_Profiler_Host_Deinitialize_Params, pHostObject, 24)                     \
  f(CUpti_Profiler_Host_GetSupportedChips_Params, ppChipNames, 32)                \
  f(CUpti_Profiler_Host_GetBaseMetrics_Params, numMetrics, 48)                    \
  f(CUpti_Profiler_Host_ConfigAddMetrics_Params, numMetrics, 40)                  \
  f(CUpti_Profiler_Host_GetConfigImageSize_Params, configImageSize, 32)           \
  f(CUpti_Profiler_Host_GetConfigImage_Params, pConfigImage, 40)                  \
  f(CUpti_Profiler_Host_GetNumOfPasses_Params, numOfPasses, 40)                   \
  f(CUpti_Profiler_Host_EvaluateToGpuValues_Params, pMetricValues, 72)            \
  f(CUpti_RangeProfiler_Enable_Params, pRangeProfilerObject, 32)                  \
  f(CUpti_RangeProfiler_Disable_Params, pRangeProfilerObject, 24)                 \
  f(CUpti_RangeProfiler_SetConfig_Params, targetNestingLevel, 90)                 \
  f(CUpti_RangeProfiler_Start_Params, pRangeProfilerObject, 24)                   \
  f(CUpti_RangeProfiler_Stop_Params, isAllPassSubmitted, 41)                      \
  f(CUpti_RangeProfiler_PushRange_Params, pRangeName, 32)                         \
  f(CUpti_RangeProfiler_PopRange_Params, pRangeProfilerObject, 24)                \
  f(CUpti_RangeProfiler_DecodeData_Params, numOfRangeDropped, 32)                 \
  f(CUpti_RangeProfiler_GetCounterDataSize_Params, counterDataSize, 64)           \
  f(CUpti_RangeProfiler_CounterDataImage_Initialize_Params, pCounterData, 40)     \
  f(CUpti_RangeProfiler_GetCounterDataInfo_Params, numTotalRanges, 40)
// clang-format on

template <class Params>
inline constexpr size_t kStructSize = 0;
#define FLOPINJ_STRUCT_SIZE(type, last, size)         \
  template <>                                         \
  inline constexpr size_t kStructSize<type> = (size); \
  static_assert(offsetof(type, last) + sizeof(type::last) == (size));
FLOPINJ_CUPTI_STRUCTS(FLOPINJ_STRUCT_SIZE)
#undef FLOPINJ_STRUCT_SIZE

// A structure with zeros behind it. CUPTI from 13.2 on reads a pointer behind the structure that
// cuptiProfilerHostInitialize is given, whatever its size says, and follows it.
template <class Params>
struct Sized : Params {
  uint64_t room_for_newer_fields[16];
};

// Zeroed, with the size it wants to see.
template <class Params>
Sized<Params> sized() {
  static_assert(kStructSize<Params> != 0, "not in the list above");
  static_assert(sizeof(Sized<Params>) >= sizeof(Params) + 128);
  Sized<Params> parameters{};
  parameters.structSize = kStructSize<Params>;
  return parameters;
}

}  // namespace flopinj
