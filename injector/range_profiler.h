// CUPTI's range profiler on one context.
//
//   once per process   cuptiProfilerInitialize, DeviceSupported          (planner.cpp)
//   once per group     host object, configuration image, pass count      (metric_groups.cpp)
//   once per context   RangeProfilerEnable, on a thread that launches; RangeProfilerDisable
//   per window         counter image initialised (DecodeData fills the very image that SetConfig is
//                      given, and would add to what is in it); SetConfig; Start
//                      ... launches: in auto-range mode each is one range, numbered in execution
//                      order, and the context is synchronised after it ...
//                      Stop; DecodeData; number of ranges against the number of launches (of a
//                      graph launch: graph_window.h); EvaluateToGpuValues per range
//
// A configuration has one pass, so kernels are not replayed and their memory is not saved; but for
// that of mode full, where CUPTI runs every kernel as often as there are passes, its memory saved
// before and restored between.
//
// Threads: one at a time (the window's lock), with the context current.
#pragma once
#include <cuda.h>
#include <injector/cupti_check.h>
#include <injector/metric_groups.h>

#include <cstdint>
#include <vector>

namespace flopinj {

class RangeProfiler {
 public:
  RangeProfiler(const CuptiApi& cupti, CUcontext context) : cupti_(cupti), context_(context) {}
  ~RangeProfiler() = default;  // disable() is asked for: at exit the context may be gone
  RangeProfiler(const RangeProfiler&) = delete;
  RangeProfiler& operator=(const RangeProfiler&) = delete;

  // Enables the profiler at the first call. False, with the reason: no window is open.
  bool open(const MetricGroup&, size_t max_ranges, Problem&);

  enum class Outcome : uint8_t {
    kRead,      // one row of values per launch
    kMismatch,  // ranges and launches do not agree: nothing may be taken from this window
    kFailed     // CUPTI refused
  };
  // The open window ends, whatever the outcome. `values`: launches x metrics, row by row.
  Outcome close(MetricGroup&, size_t launches, std::vector<double>& values, Problem&);
  // Of a window of which nobody knows how many ranges it has: `values` is ranges x metrics.
  // kMismatch: some found no room.
  Outcome close_with_any(MetricGroup&, size_t& ranges, std::vector<double>& values, Problem&);

  void disable();

 private:
  bool enable(Problem&);
  bool prepare_image(const MetricGroup&, size_t max_ranges, Problem&);
  bool stop(Problem&);
  bool decode(size_t& ranges, size_t& dropped, Problem&);
  bool evaluate(MetricGroup&, size_t ranges, std::vector<double>& values, Problem&);

  const CuptiApi& cupti_;
  CUcontext context_;
  CUpti_RangeProfiler_Object* object_ = nullptr;
  const MetricGroup* sized_for_ = nullptr;  // group and number of ranges the image has room for
  size_t sized_ranges_ = 0;
  std::vector<uint8_t> image_;
};

}  // namespace flopinj
