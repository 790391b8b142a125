// CUPTI's range profiler on one context.
//
//   once per process   cuptiProfilerInitialize, DeviceSupported          (planner.cpp)
//   once per group     host object, configuration image, pass count      (metric_groups.cpp)
//   once per lease     RangeProfilerEnable; RangeProfilerDisable         (leases.h)
//   per window         counter image initialised (DecodeData fills the very image that SetConfig is
//                      given, and would add to what is in it); SetConfig; Start
//                      ... launches: in auto-range mode each is one range, numbered in execution
//                      order, and the context is synchronised after it ...
//                      Stop; DecodeData; number of ranges against the number of launches
//   per image          EvaluateToGpuValues per range, on any thread     (evaluate_image)
//
// A configuration has one pass, so kernels are not replayed and their memory is not saved. The one
// of mode full has more: CUPTI runs every kernel as often as there are passes, its memory saved
// before and restored between.
//
// Where CUPTI has no counters beside its records of kernels (NOT_COMPATIBLE), these are off from
// enable() to disable(): launches made meanwhile have no GPU time.
//
// Threads: one at a time (the window's lock), with the context current. CUPTI is called in relaxed
// capture mode (relaxed_capture.h).
#pragma once
#include <cuda.h>
#include <injector/counters/profiler/metric_groups.h>
#include <injector/process/edge.h>
#include <injector/vendor/cupti_check.h>

#include <cstdint>
#include <vector>

namespace flopinj {

class RangeProfiler {
 public:
  RangeProfiler(Edge& edge, CUcontext context)
      : edge_(edge), cuda_(edge.cuda), cupti_(edge.cupti), context_(context) {}
  // disable() is asked for: at exit the context may be gone.
  ~RangeProfiler() { records_again(); }
  RangeProfiler(const RangeProfiler&) = delete;
  RangeProfiler& operator=(const RangeProfiler&) = delete;

  // At the first call, and at the first after disable().
  bool enable(Problem&);
  // Enables the profiler where it is not. False, with the reason: no window is open.
  bool open(const MetricGroup&, size_t max_ranges, Problem&);

  enum class Outcome : uint8_t {
    kRead,      // the image has one range per launch
    kMismatch,  // ranges and launches do not agree: nothing may be taken from this window
    kFailed,    // CUPTI refused; the profiler has to be disabled
    kNotClosed  // CUPTI refused to stop: the window may be open still
  };
  Outcome close(size_t launches, Problem&);
  // Of the window that was read. The next one gets another: `spare`, or as much memory anew.
  std::vector<uint8_t> take_image(std::vector<uint8_t> spare);

  // False: CUPTI refused, and it is enabled still.
  bool disable();

 private:
  bool prepare_image(const MetricGroup&, size_t max_ranges, Problem&);
  bool stop(Problem&);
  bool decode(size_t& ranges, size_t& dropped, Problem&);
  // True: the call that gave this result is to be tried again, without records.
  bool records_were_in_the_way(CUptiResult);
  void records_again() noexcept;

  Edge& edge_;
  const CudaApi& cuda_;
  const CuptiApi& cupti_;
  CUcontext context_;
  bool records_off_ = false;
  CUpti_RangeProfiler_Object* object_ = nullptr;
  const MetricGroup* sized_for_ = nullptr;  // group and number of ranges the image has room for
  size_t sized_ranges_ = 0;
  std::vector<uint8_t> image_;
};

// `values`: ranges x metrics, row by row. Needs no context: the image is all there is to it.
bool evaluate_image(const CuptiApi&, MetricGroup&, const std::vector<uint8_t>& image, size_t ranges,
                    std::vector<double>& values, Problem&);

}  // namespace flopinj
