// The functions of CUPTI that we call, taken from the CUPTI that lives in the process.
//
// A second copy of CUPTI beside the application's does not work, so a loaded one is used; of
// several the one that FLOPINJ_CUPTI names. Where none is loaded and one is named, no other is
// tried. Else CUPTI is looked for beside the CUDA runtime, on the loader's path and in toolkits. Of
// two the one of the driver's own major version is preferred. One whose major is above the driver's
// is refused: it cannot start. With the simulated driver only its own CUPTI is taken, whatever the
// process has loaded. No function of the library is called before cuptiSubscribe has succeeded, not
// even cuptiGetVersion and cuptiGetTimestamp, since a 13.2 that cannot start calls itself until the
// program crashes; the major is read from its name.
#pragma once
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#include <cupti_version.h>
#include <injector/vendor/cuda_api.h>
#include <injector/vendor/cupti_subscriber.h>

#include <cstdint>
#include <string>

namespace flopinj {

// Every function by its CUPTI name without the prefix. required: without it we do not start.
// range: without any one of these there are no counters. optional: asked for null before use.
// clang-format off
#define FLOPINJ_CUPTI_FUNCTIONS(required, range, optional)  \
  required(GetVersion)                                      \
  required(GetTimestamp)                                    \
  required(Subscribe)                                       \
  required(Unsubscribe)                                     \
  required(EnableCallback)                                  \
  required(EnableDomain)                                    \
  required(GetDeviceId)                                     \
  required(GetContextId)                                    \
  required(GetStreamIdEx)                                   \
  required(ActivityRegisterCallbacks)                       \
  required(ActivityEnable)                                  \
  required(ActivityDisable)                                 \
  required(ActivityFlushAll)                                \
  required(ActivityGetNextRecord)                           \
  required(ActivityGetNumDroppedRecords)                    \
  optional(Finalize)                                        \
  optional(GetGraphNodeId)                                  \
  optional(ActivitySetAttribute)                            \
  optional(ProfilerGetCounterAvailability)                  \
  optional(ProfilerHostGetBaseMetrics)                      \
  range(DeviceGetChipName)                                  \
  range(ProfilerInitialize)                                 \
  range(ProfilerDeviceSupported)                            \
  range(ProfilerHostInitialize)                             \
  range(ProfilerHostDeinitialize)                           \
  range(ProfilerHostConfigAddMetrics)                       \
  range(ProfilerHostGetConfigImageSize)                     \
  range(ProfilerHostGetConfigImage)                         \
  range(ProfilerHostGetNumOfPasses)                         \
  range(ProfilerHostEvaluateToGpuValues)                    \
  range(RangeProfilerEnable)                                \
  range(RangeProfilerDisable)                               \
  range(RangeProfilerSetConfig)                             \
  range(RangeProfilerStart)                                 \
  range(RangeProfilerStop)                                  \
  range(RangeProfilerDecodeData)                            \
  range(RangeProfilerGetCounterDataSize)                    \
  range(RangeProfilerCounterDataImageInitialize)            \
  range(RangeProfilerGetCounterDataInfo)
// clang-format on

struct CuptiApi {
#define FLOPINJ_MEMBER(name) decltype(&cupti##name) name = nullptr;
  FLOPINJ_CUPTI_FUNCTIONS(FLOPINJ_MEMBER, FLOPINJ_MEMBER, FLOPINJ_MEMBER)
#undef FLOPINJ_MEMBER
  uint32_t version = 0;         // of the running CUPTI: 18 is 12.1, 24 is 12.6, 130000 is 13.0
  std::string path;             // of the library
  std::string passed_over;      // one line where FLOPINJ_CUPTI names another; else empty
  bool range_profiler = false;  // all `range` functions are there
  std::string missing;          // first missing function, for the message
  bool ours_only = false;       // no other client in the process is known
  CuptiSubscriberApi own;

  bool shared() const { return own.handle != nullptr; }
  // Of our subscription where it is shared, else of the process.
  CUptiResult enable_activity(CUpti_ActivityKind) const;
  CUptiResult disable_activity(CUpti_ActivityKind) const;
  CUptiResult set_activity_attribute(CUpti_ActivityAttribute, size_t* size, void* value) const;
  CUptiResult next_record(uint8_t* buffer, size_t valid, CUpti_Activity**) const;
  CUptiResult dropped_records(CUcontext, uint32_t stream, size_t* dropped) const;
  CUptiResult timestamp(uint64_t*) const;
};

// Together with other clients where CUPTI can, else as the only one.
CUptiResult subscribe(CuptiApi&, CUpti_SubscriberHandle*, CUpti_CallbackFunc, void* user_data);

// Fills the table, but for the version. False, with `error` one line that says what to do, when
// there is no CUPTI that fits the driver, or a required function is missing.
bool load_cupti(const std::string& preferred_path, const CudaApi&, CuptiApi&, std::string& error);

// After cuptiSubscribe has succeeded. False, with the reason.
bool read_version(CuptiApi&, std::string& error);

}  // namespace flopinj
