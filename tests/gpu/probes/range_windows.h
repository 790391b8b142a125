// CUPTI's range profiler as the probes use it: one object for the current context, one plan per set
// of metrics, and the time of every call. Errors are observations here: they are printed and the
// probe goes on.
#pragma once
#include <cuda.h>
#include <cuda_runtime.h>
#include <cupti.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#include <injector/vendor/cupti_structs.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace probe {

// One observation: a line of JSON, which findings.py puts into its table.
inline void say(const std::string& item, const std::string& json_value, const char* unit = "") {
  std::printf("{\"item\": \"%s\", \"value\": %s, \"unit\": \"%s\"}\n", item.c_str(),
              json_value.c_str(), unit);
  std::fflush(stdout);
}
inline void say(const std::string& item, const char* value) {
  say(item, "\"" + std::string(value) + "\"");
}
inline void say(const std::string& item, double value, const char* unit) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  say(item, std::string(text), unit);
}
inline void say_count(const std::string& item, uint64_t value, const char* unit = "") {
  say(item, std::to_string(value), unit);
}

inline CUptiResult observe(CUptiResult result, const char* call) {
  const char* name = "unknown";
  if (result != CUPTI_SUCCESS) {
    cuptiGetResultString(result, &name);
    say(std::string("error of ") + call, name);
  }
  return result;
}
inline void observe(cudaError_t result, const char* call) {
  if (result != cudaSuccess) say(std::string("error of ") + call, cudaGetErrorString(result));
}

class Stopwatch {
 public:
  double microseconds() const {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start_)
        .count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

using Metrics = std::vector<const char*>;

class RangeWindows {
 public:
  struct Cost {  // microseconds
    double enable, host_initialize, config, counter_image, set_config, start, stop, decode;
  };

  bool enable() {
    auto init = flopinj::sized<CUpti_Profiler_Initialize_Params>();
    if (observe(cuptiProfilerInitialize(&init), "cuptiProfilerInitialize") != CUPTI_SUCCESS)
      return false;
    auto chip = flopinj::sized<CUpti_Device_GetChipName_Params>();
    int device = 0;
    cudaGetDevice(&device);
    chip.deviceIndex = static_cast<size_t>(device);
    if (observe(cuptiDeviceGetChipName(&chip), "cuptiDeviceGetChipName") != CUPTI_SUCCESS)
      return false;
    chip_ = chip.pChipName;
    auto p = flopinj::sized<CUpti_RangeProfiler_Enable_Params>();
    cuCtxGetCurrent(&p.ctx);
    const Stopwatch watch;
    const auto result = observe(cuptiRangeProfilerEnable(&p), "cuptiRangeProfilerEnable");
    cost_.enable = watch.microseconds();
    object_ = p.pRangeProfilerObject;
    return result == CUPTI_SUCCESS;
  }

  // Makes the host object and configuration image for these metrics.
  bool plan(const Metrics& metrics) {
    release_plan();
    metrics_ = metrics;
    Stopwatch watch;
    auto init = flopinj::sized<CUpti_Profiler_Host_Initialize_Params>();
    init.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    init.pChipName = chip_.c_str();
    if (observe(cuptiProfilerHostInitialize(&init), "cuptiProfilerHostInitialize") != CUPTI_SUCCESS)
      return false;
    host_ = init.pHostObject;
    cost_.host_initialize = watch.microseconds();
    watch = {};
    auto add = flopinj::sized<CUpti_Profiler_Host_ConfigAddMetrics_Params>();
    add.pHostObject = host_;
    add.ppMetricNames = metrics_.data();
    add.numMetrics = metrics_.size();
    if (observe(cuptiProfilerHostConfigAddMetrics(&add), "cuptiProfilerHostConfigAddMetrics") !=
        CUPTI_SUCCESS)
      return false;
    auto size = flopinj::sized<CUpti_Profiler_Host_GetConfigImageSize_Params>();
    size.pHostObject = host_;
    if (observe(cuptiProfilerHostGetConfigImageSize(&size),
                "cuptiProfilerHostGetConfigImageSize") != CUPTI_SUCCESS)
      return false;
    config_.assign(size.configImageSize, 0);
    auto image = flopinj::sized<CUpti_Profiler_Host_GetConfigImage_Params>();
    image.pHostObject = host_;
    image.configImageSize = config_.size();
    image.pConfigImage = config_.data();
    if (observe(cuptiProfilerHostGetConfigImage(&image), "cuptiProfilerHostGetConfigImage") !=
        CUPTI_SUCCESS)
      return false;
    cost_.config = watch.microseconds();
    auto passes = flopinj::sized<CUpti_Profiler_Host_GetNumOfPasses_Params>();
    passes.configImageSize = config_.size();
    passes.pConfigImage = config_.data();
    observe(cuptiProfilerHostGetNumOfPasses(&passes), "cuptiProfilerHostGetNumOfPasses");
    passes_ = passes.numOfPasses;
    return true;
  }

  bool open(size_t ranges, CUpti_ProfilerRange range = CUPTI_AutoRange,
            CUpti_ProfilerReplayMode replay = CUPTI_KernelReplay) {
    Stopwatch watch;
    auto size = flopinj::sized<CUpti_RangeProfiler_GetCounterDataSize_Params>();
    size.pRangeProfilerObject = object_;
    size.pMetricNames = metrics_.data();
    size.numMetrics = metrics_.size();
    size.maxNumOfRanges = ranges;
    size.maxNumRangeTreeNodes = static_cast<uint32_t>(ranges);
    if (observe(cuptiRangeProfilerGetCounterDataSize(&size),
                "cuptiRangeProfilerGetCounterDataSize") != CUPTI_SUCCESS)
      return false;
    image_.assign(size.counterDataSize, 0);
    auto init = flopinj::sized<CUpti_RangeProfiler_CounterDataImage_Initialize_Params>();
    init.pRangeProfilerObject = object_;
    init.counterDataSize = image_.size();
    init.pCounterData = image_.data();
    observe(cuptiRangeProfilerCounterDataImageInitialize(&init),
            "cuptiRangeProfilerCounterDataImageInitialize");
    cost_.counter_image = watch.microseconds();
    watch = {};
    auto set = flopinj::sized<CUpti_RangeProfiler_SetConfig_Params>();
    set.pRangeProfilerObject = object_;
    set.configSize = config_.size();
    set.pConfig = config_.data();
    set.counterDataImageSize = image_.size();
    set.pCounterDataImage = image_.data();
    set.range = range;
    set.replayMode = replay;
    set.maxRangesPerPass = ranges;
    set.numNestingLevels = 1;
    set.minNestingLevel = 1;
    if (observe(cuptiRangeProfilerSetConfig(&set), "cuptiRangeProfilerSetConfig") != CUPTI_SUCCESS)
      return false;
    cost_.set_config = watch.microseconds();
    return start();
  }
  bool start() {
    auto p = flopinj::sized<CUpti_RangeProfiler_Start_Params>();
    p.pRangeProfilerObject = object_;
    const Stopwatch watch;
    const auto result = observe(cuptiRangeProfilerStart(&p), "cuptiRangeProfilerStart");
    cost_.start = watch.microseconds();
    return result == CUPTI_SUCCESS;
  }
  void push(const char* name) {
    auto p = flopinj::sized<CUpti_RangeProfiler_PushRange_Params>();
    p.pRangeProfilerObject = object_;
    p.pRangeName = name;
    observe(cuptiRangeProfilerPushRange(&p), "cuptiRangeProfilerPushRange");
  }
  void pop() {
    auto p = flopinj::sized<CUpti_RangeProfiler_PopRange_Params>();
    p.pRangeProfilerObject = object_;
    observe(cuptiRangeProfilerPopRange(&p), "cuptiRangeProfilerPopRange");
  }
  void stop() {
    auto p = flopinj::sized<CUpti_RangeProfiler_Stop_Params>();
    p.pRangeProfilerObject = object_;
    const Stopwatch watch;
    observe(cuptiRangeProfilerStop(&p), "cuptiRangeProfilerStop");
    cost_.stop = watch.microseconds();
  }
  // Decodes what the window holds so far and returns the number of ranges in its image.
  size_t decode() {
    auto decode = flopinj::sized<CUpti_RangeProfiler_DecodeData_Params>();
    decode.pRangeProfilerObject = object_;
    const Stopwatch watch;
    observe(cuptiRangeProfilerDecodeData(&decode), "cuptiRangeProfilerDecodeData");
    cost_.decode = watch.microseconds();
    dropped_ = decode.numOfRangeDropped;
    auto info = flopinj::sized<CUpti_RangeProfiler_GetCounterDataInfo_Params>();
    info.pCounterDataImage = image_.data();
    info.counterDataImageSize = image_.size();
    observe(cuptiRangeProfilerGetCounterDataInfo(&info), "cuptiRangeProfilerGetCounterDataInfo");
    return info.numTotalRanges;
  }
  // Stops, decodes and returns the number of ranges.
  size_t close() {
    stop();
    return decode();
  }

  // The metrics of one range, in the order of plan(); -1 where CUPTI gave none.
  std::vector<double> values(size_t range) {
    std::vector<double> out(metrics_.size(), -1);
    auto p = flopinj::sized<CUpti_Profiler_Host_EvaluateToGpuValues_Params>();
    p.pHostObject = host_;
    p.pCounterDataImage = image_.data();
    p.counterDataImageSize = image_.size();
    p.rangeIndex = range;
    p.ppMetricNames = metrics_.data();
    p.numMetrics = metrics_.size();
    p.pMetricValues = out.data();
    observe(cuptiProfilerHostEvaluateToGpuValues(&p), "cuptiProfilerHostEvaluateToGpuValues");
    return out;
  }

  // The first metric of each range, for a table of what was seen.
  std::string first_values(size_t ranges) {
    std::string text;
    for (size_t i = 0; i < ranges; ++i)
      text += (i == 0 ? "" : " ") + std::to_string(static_cast<long long>(values(i)[0]));
    return text;
  }

  void disable() {
    release_plan();
    auto p = flopinj::sized<CUpti_RangeProfiler_Disable_Params>();
    p.pRangeProfilerObject = object_;
    observe(cuptiRangeProfilerDisable(&p), "cuptiRangeProfilerDisable");
  }

  const Cost& cost() const { return cost_; }
  size_t passes() const { return passes_; }
  size_t dropped() const { return dropped_; }
  size_t image_bytes() const { return image_.size(); }
  CUpti_RangeProfiler_Object* object() const { return object_; }

 private:
  void release_plan() {
    if (host_ == nullptr) return;
    auto p = flopinj::sized<CUpti_Profiler_Host_Deinitialize_Params>();
    p.pHostObject = host_;
    observe(cuptiProfilerHostDeinitialize(&p), "cuptiProfilerHostDeinitialize");
    host_ = nullptr;
  }

  CUpti_RangeProfiler_Object* object_ = nullptr;
  CUpti_Profiler_Host_Object* host_ = nullptr;
  std::string chip_;
  Metrics metrics_;
  std::vector<uint8_t> config_, image_;
  Cost cost_{};
  size_t passes_ = 0, dropped_ = 0;
};

}  // namespace probe
