// The functions of CUPTI that we call, taken from the CUPTI that lives in the process.
//
// A second copy of CUPTI beside the application's does not work, so the one already loaded is used
// (whatever its version), then FLOPINJ_CUPTI, then the loader's path, then the places where
// toolkits and Python wheels put it.
#pragma once
#include <cupti.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include <cstdint>
#include <string>

namespace flopinj {

// Every function by its CUPTI name without the prefix. kRequired: without it we do not start.
// kRange: without any one of these there are no counters. kOptional: asked for null before use.
#define FLOPINJ_CUPTI_FUNCTIONS(required, range, optional)                                         \
  required(GetVersion) required(GetResultString) required(GetTimestamp) required(                  \
      Subscribe) required(Unsubscribe) required(EnableCallback) required(EnableDomain)             \
      required(GetDeviceId) required(GetContextId) required(GetStreamIdEx) required(               \
          ActivityRegisterCallbacks) required(ActivityEnable) required(ActivityDisable)            \
          required(ActivityFlushAll) required(ActivityGetNextRecord)                               \
              required(ActivityGetNumDroppedRecords) optional(GetGraphNodeId) optional(            \
                  ProfilerHostGetBaseMetrics) range(DeviceGetChipName) range(ProfilerInitialize)   \
                  range(ProfilerDeviceSupported) range(ProfilerHostInitialize)                     \
                      range(ProfilerHostDeinitialize) range(ProfilerHostConfigAddMetrics) range(   \
                          ProfilerHostGetConfigImageSize) range(ProfilerHostGetConfigImage)        \
                          range(ProfilerHostGetNumOfPasses) range(ProfilerHostEvaluateToGpuValues) \
                              range(RangeProfilerEnable) range(RangeProfilerDisable)               \
                                  range(RangeProfilerSetConfig) range(RangeProfilerStart)          \
                                      range(RangeProfilerStop) range(RangeProfilerDecodeData)      \
                                          range(RangeProfilerGetCounterDataSize)                   \
                                              range(RangeProfilerCounterDataImageInitialize)       \
                                                  range(RangeProfilerGetCounterDataInfo)

struct CuptiApi {
#define FLOPINJ_MEMBER(name) decltype(&cupti##name) name = nullptr;
  FLOPINJ_CUPTI_FUNCTIONS(FLOPINJ_MEMBER, FLOPINJ_MEMBER, FLOPINJ_MEMBER)
#undef FLOPINJ_MEMBER
  uint32_t version = 0;         // of the running CUPTI: 24 is 12.6, 130000 is 13.0
  std::string path;             // of the library
  bool range_profiler = false;  // all `range` functions are there
  std::string missing;          // first missing function, for the message
};

// Fills the table. False, with `error` one line that says what to do, when there is no CUPTI or a
// required function is missing.
bool load_cupti(const std::string& preferred_path, CuptiApi&, std::string& error);

// CUPTI's own name of a result, for messages: "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)".
std::string describe(const CuptiApi&, CUptiResult);

}  // namespace flopinj
