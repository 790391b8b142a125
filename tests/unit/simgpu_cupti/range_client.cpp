#include "range_client.h"

CUptiResult initialize_profiler() {
  CUpti_Profiler_Initialize_Params params{CUpti_Profiler_Initialize_Params_STRUCT_SIZE, nullptr};
  return cuptiProfilerInitialize(&params);
}

HostPlan::HostPlan(const Metrics& metrics, const char* chip, const uint8_t* availability) {
  CUpti_Profiler_Host_Initialize_Params create{};
  create.structSize = CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE;
  create.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  create.pChipName = chip;
  create.pCounterAvailabilityImage = availability;
  result = cuptiProfilerHostInitialize(&create);
  host = create.pHostObject;
  if (result != CUPTI_SUCCESS) return;
  CUpti_Profiler_Host_ConfigAddMetrics_Params add{};
  add.structSize = CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE;
  add.pHostObject = host;
  add.ppMetricNames = const_cast<const char**>(metrics.data());
  add.numMetrics = metrics.size();
  result = cuptiProfilerHostConfigAddMetrics(&add);
  if (result != CUPTI_SUCCESS) return;
  CUpti_Profiler_Host_GetConfigImageSize_Params size{};
  size.structSize = CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE;
  size.pHostObject = host;
  result = cuptiProfilerHostGetConfigImageSize(&size);
  config.resize(size.configImageSize);
  CUpti_Profiler_Host_GetConfigImage_Params image{};
  image.structSize = CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE;
  image.pHostObject = host;
  image.configImageSize = config.size();
  image.pConfigImage = config.data();
  result = cuptiProfilerHostGetConfigImage(&image);
  CUpti_Profiler_Host_GetNumOfPasses_Params count{};
  count.structSize = CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE;
  count.configImageSize = config.size();
  count.pConfigImage = config.data();
  if (result == CUPTI_SUCCESS) result = cuptiProfilerHostGetNumOfPasses(&count);
  passes = count.numOfPasses;
}

HostPlan::~HostPlan() {
  CUpti_Profiler_Host_Deinitialize_Params params{};
  params.structSize = CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE;
  params.pHostObject = host;
  cuptiProfilerHostDeinitialize(&params);
}

CUptiResult RangeClient::enable(CUcontext context) {
  CUpti_RangeProfiler_Enable_Params params{};
  params.structSize = CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE;
  params.ctx = context;
  const CUptiResult result = cuptiRangeProfilerEnable(&params);
  if (result == CUPTI_SUCCESS) object = params.pRangeProfilerObject;
  return result;
}

CUptiResult RangeClient::disable() const {
  CUpti_RangeProfiler_Disable_Params params{CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE, nullptr,
                                            object};
  return cuptiRangeProfilerDisable(&params);
}

CUptiResult RangeClient::make_image(const Metrics& metrics, size_t max_ranges) {
  CUpti_RangeProfiler_GetCounterDataSize_Params params{};
  params.structSize = CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE;
  params.pRangeProfilerObject = object;
  params.pMetricNames = const_cast<const char**>(metrics.data());
  params.numMetrics = metrics.size();
  params.maxNumOfRanges = max_ranges;
  params.maxNumRangeTreeNodes = static_cast<uint32_t>(max_ranges);
  const CUptiResult result = cuptiRangeProfilerGetCounterDataSize(&params);
  if (result != CUPTI_SUCCESS) return result;
  image.assign(params.counterDataSize, 0);
  return reinitialize_image();
}

CUptiResult RangeClient::reinitialize_image() {
  CUpti_RangeProfiler_CounterDataImage_Initialize_Params params{};
  params.structSize = CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE;
  params.pRangeProfilerObject = object;
  params.counterDataSize = image.size();
  params.pCounterData = image.data();
  return cuptiRangeProfilerCounterDataImageInitialize(&params);
}

CUptiResult RangeClient::set_config(const HostPlan& plan, size_t max_ranges,
                                    CUpti_ProfilerRange range, CUpti_ProfilerReplayMode replay,
                                    size_t pass, uint16_t nesting_levels) {
  CUpti_RangeProfiler_SetConfig_Params params{};
  params.structSize = CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE;
  params.pRangeProfilerObject = object;
  params.configSize = plan.config.size();
  params.pConfig = plan.config.data();
  params.counterDataImageSize = image.size();
  params.pCounterDataImage = image.data();
  params.range = range;
  params.replayMode = replay;
  params.maxRangesPerPass = max_ranges;
  params.numNestingLevels = nesting_levels;
  params.minNestingLevel = 1;
  params.passIndex = pass;
  return cuptiRangeProfilerSetConfig(&params);
}

CUptiResult RangeClient::start() const {
  CUpti_RangeProfiler_Start_Params params{CUpti_RangeProfiler_Start_Params_STRUCT_SIZE, nullptr,
                                          object};
  return cuptiRangeProfilerStart(&params);
}

CUptiResult RangeClient::stop() {
  CUpti_RangeProfiler_Stop_Params params{};
  params.structSize = CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE;
  params.pRangeProfilerObject = object;
  const CUptiResult result = cuptiRangeProfilerStop(&params);
  all_passes = params.isAllPassSubmitted != 0;
  return result;
}

CUptiResult RangeClient::push(const char* name) const {
  CUpti_RangeProfiler_PushRange_Params params{CUpti_RangeProfiler_PushRange_Params_STRUCT_SIZE,
                                              nullptr, object, name};
  return cuptiRangeProfilerPushRange(&params);
}

CUptiResult RangeClient::pop() const {
  CUpti_RangeProfiler_PopRange_Params params{CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE,
                                             nullptr, object};
  return cuptiRangeProfilerPopRange(&params);
}

CUptiResult RangeClient::decode() {
  CUpti_RangeProfiler_DecodeData_Params params{};
  params.structSize = CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE;
  params.pRangeProfilerObject = object;
  const CUptiResult result = cuptiRangeProfilerDecodeData(&params);
  dropped = params.numOfRangeDropped;
  return result;
}

size_t RangeClient::ranges() const {
  CUpti_RangeProfiler_GetCounterDataInfo_Params params{};
  params.structSize = CUpti_RangeProfiler_GetCounterDataInfo_Params_STRUCT_SIZE;
  params.pCounterDataImage = image.data();
  params.counterDataImageSize = image.size();
  return cuptiRangeProfilerGetCounterDataInfo(&params) == CUPTI_SUCCESS ? params.numTotalRanges
                                                                        : SIZE_MAX;
}

std::string RangeClient::name(size_t range, const char* delimiter) const {
  CUpti_RangeProfiler_CounterData_GetRangeInfo_Params params{};
  params.structSize = CUpti_RangeProfiler_CounterData_GetRangeInfo_Params_STRUCT_SIZE;
  params.pCounterDataImage = image.data();
  params.counterDataImageSize = image.size();
  params.rangeIndex = range;
  params.rangeDelimiter = delimiter;
  return cuptiRangeProfilerCounterDataGetRangeInfo(&params) == CUPTI_SUCCESS ? params.rangeName
                                                                             : "(none)";
}

std::vector<double> RangeClient::values(const HostPlan& plan, const Metrics& metrics,
                                        size_t range) const {
  std::vector<double> result(metrics.size(), -1);
  CUpti_Profiler_Host_EvaluateToGpuValues_Params params{};
  params.structSize = CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE;
  params.pHostObject = plan.host;
  params.pCounterDataImage = image.data();
  params.counterDataImageSize = image.size();
  params.rangeIndex = range;
  params.ppMetricNames = const_cast<const char**>(metrics.data());
  params.numMetrics = metrics.size();
  params.pMetricValues = result.data();
  if (cuptiProfilerHostEvaluateToGpuValues(&params) != CUPTI_SUCCESS) result.clear();
  return result;
}

CUptiResult counter_availability(CUcontext context, std::vector<uint8_t>& image) {
  CUpti_Profiler_GetCounterAvailability_Params params{};
  params.structSize = CUpti_Profiler_GetCounterAvailability_Params_STRUCT_SIZE;
  params.ctx = context;
  CUptiResult result = cuptiProfilerGetCounterAvailability(&params);
  if (result != CUPTI_SUCCESS) return result;
  image.assign(params.counterAvailabilityImageSize, 0);
  params.pCounterAvailabilityImage = image.data();
  result = cuptiProfilerGetCounterAvailability(&params);
  image.resize(params.counterAvailabilityImageSize);
  return result;
}
