#include <injector/counters/profiler/range_profiler.h>
#include <injector/vendor/cupti_structs.h>
#include <injector/vendor/relaxed_capture.h>

#include <utility>

namespace flopinj {

bool RangeProfiler::enable(Problem& problem) {
  if (object_ != nullptr) return true;
  const RelaxedCapture relaxed(cuda_);
  auto p = sized<CUpti_RangeProfiler_Enable_Params>();
  p.ctx = context_;
  CUptiResult result = cupti_.RangeProfilerEnable(&p);
  if (records_were_in_the_way(result)) result = cupti_.RangeProfilerEnable(&p);
  if (!check(result, "cuptiRangeProfilerEnable", problem)) return records_again(), false;
  object_ = p.pRangeProfilerObject;
  return true;
}

bool RangeProfiler::records_were_in_the_way(CUptiResult result) {
  if (result != CUPTI_ERROR_NOT_COMPATIBLE || records_off_ || !edge_.kernel_records) return false;
  edge_.kernel_records_off.fetch_add(1);
  edge_.kernel_records_switched.fetch_add(1);
  records_off_ = true;
  if (cupti_.disable_activity(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != CUPTI_SUCCESS)
    return records_again(), false;
  edge_.collector->diagnostic(
      Severity::kWarning, "cupti.records_off",
      "CUPTI gives no kernel times while counters are read: they are off while counters are held, "
      "and launches made meanwhile have no GPU time");
  return true;
}

void RangeProfiler::records_again() noexcept {
  if (!std::exchange(records_off_, false)) return;
  edge_.kernel_records_switched.fetch_add(1);
  if (edge_.kernel_records_off.fetch_sub(1) != 1) return;
  if (edge_.kernel_records && !edge_.cupti_failed)
    cupti_.enable_activity(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

bool RangeProfiler::prepare_image(const MetricGroup& group, size_t max_ranges, Problem& problem) {
  if (sized_for_ != &group || sized_ranges_ != max_ranges) {
    auto size = sized<CUpti_RangeProfiler_GetCounterDataSize_Params>();
    size.pRangeProfilerObject = object_;
    size.pMetricNames = const_cast<const char**>(group.metrics.data());
    size.numMetrics = group.metrics.size();
    size.maxNumOfRanges = max_ranges;
    size.maxNumRangeTreeNodes = static_cast<uint32_t>(max_ranges);
    if (!check(cupti_.RangeProfilerGetCounterDataSize(&size),
               "cuptiRangeProfilerGetCounterDataSize", problem))
      return false;
    image_.resize(size.counterDataSize);
    sized_for_ = &group;
    sized_ranges_ = max_ranges;
  }
  auto p = sized<CUpti_RangeProfiler_CounterDataImage_Initialize_Params>();
  p.pRangeProfilerObject = object_;
  p.counterDataSize = image_.size();
  p.pCounterData = image_.data();
  return check(cupti_.RangeProfilerCounterDataImageInitialize(&p),
               "cuptiRangeProfilerCounterDataImageInitialize", problem);
}

bool RangeProfiler::open(const MetricGroup& group, size_t max_ranges, Problem& problem) {
  const RelaxedCapture relaxed(cuda_);
  if (!enable(problem) || !prepare_image(group, max_ranges, problem)) return false;

  auto config = sized<CUpti_RangeProfiler_SetConfig_Params>();
  config.pRangeProfilerObject = object_;
  config.configSize = group.config_image.size();
  config.pConfig = group.config_image.data();
  config.counterDataImageSize = image_.size();
  config.pCounterDataImage = image_.data();
  config.range = CUPTI_AutoRange;
  config.replayMode = CUPTI_KernelReplay;  // the only one for auto range
  config.maxRangesPerPass = max_ranges;
  config.numNestingLevels = 1;
  config.minNestingLevel = 1;
  config.passIndex = 0;
  config.targetNestingLevel = 0;
  if (!check(cupti_.RangeProfilerSetConfig(&config), "cuptiRangeProfilerSetConfig", problem))
    return false;

  auto start = sized<CUpti_RangeProfiler_Start_Params>();
  start.pRangeProfilerObject = object_;
  CUptiResult result = cupti_.RangeProfilerStart(&start);
  if (records_were_in_the_way(result)) result = cupti_.RangeProfilerStart(&start);
  return check(result, "cuptiRangeProfilerStart", problem);
}

bool RangeProfiler::stop(Problem& problem) {
  auto p = sized<CUpti_RangeProfiler_Stop_Params>();
  p.pRangeProfilerObject = object_;
  return check(cupti_.RangeProfilerStop(&p), "cuptiRangeProfilerStop", problem);
}

bool RangeProfiler::decode(size_t& ranges, size_t& dropped, Problem& problem) {
  auto p = sized<CUpti_RangeProfiler_DecodeData_Params>();
  p.pRangeProfilerObject = object_;
  if (!check(cupti_.RangeProfilerDecodeData(&p), "cuptiRangeProfilerDecodeData", problem))
    return false;

  auto info = sized<CUpti_RangeProfiler_GetCounterDataInfo_Params>();
  info.pCounterDataImage = image_.data();
  info.counterDataImageSize = image_.size();
  if (!check(cupti_.RangeProfilerGetCounterDataInfo(&info), "cuptiRangeProfilerGetCounterDataInfo",
             problem))
    return false;
  ranges = info.numTotalRanges;
  dropped = p.numOfRangeDropped;
  return true;
}

RangeProfiler::Outcome RangeProfiler::close(size_t launches, Problem& problem) {
  const RelaxedCapture relaxed(cuda_);
  if (!stop(problem)) return Outcome::kNotClosed;
  if (launches == 0) return Outcome::kRead;
  size_t ranges = 0, dropped = 0;
  if (!decode(ranges, dropped, problem)) return Outcome::kFailed;
  if (ranges == launches && dropped == 0) return Outcome::kRead;
  problem = {"counters.mismatch", "a measurement window saw " + std::to_string(launches) +
                                      " launches but CUPTI " + std::to_string(ranges) +
                                      " ranges (" + std::to_string(dropped) +
                                      " dropped); it was discarded"};
  return Outcome::kMismatch;
}

std::vector<uint8_t> RangeProfiler::take_image(std::vector<uint8_t> spare) {
  spare.resize(image_.size());
  return std::exchange(image_, std::move(spare));
}

bool RangeProfiler::disable() {
  if (object_ == nullptr) return true;
  const RelaxedCapture relaxed(cuda_);
  auto p = sized<CUpti_RangeProfiler_Disable_Params>();
  p.pRangeProfilerObject = object_;
  // Refused while a window is open that could not be stopped: the object is still the context's.
  if (cupti_.RangeProfilerDisable(&p) != CUPTI_SUCCESS) return false;
  object_ = nullptr;
  sized_for_ = nullptr;
  records_again();
  return true;
}

bool evaluate_image(const CuptiApi& cupti, MetricGroup& group, const std::vector<uint8_t>& image,
                    size_t ranges, std::vector<double>& values, Problem& problem) {
  const MutexLock lock(group.evaluate);
  values.assign(ranges * group.metrics.size(), 0.0);
  for (size_t range = 0; range < ranges; ++range) {
    auto p = sized<CUpti_Profiler_Host_EvaluateToGpuValues_Params>();
    p.pHostObject = group.host.get();
    p.pCounterDataImage = image.data();
    p.counterDataImageSize = image.size();
    p.rangeIndex = range;
    p.ppMetricNames = group.metrics.data();
    p.numMetrics = group.metrics.size();
    p.pMetricValues = values.data() + range * group.metrics.size();
    if (!check(cupti.ProfilerHostEvaluateToGpuValues(&p), "cuptiProfilerHostEvaluateToGpuValues",
               problem))
      return false;
  }
  return true;
}

}  // namespace flopinj
