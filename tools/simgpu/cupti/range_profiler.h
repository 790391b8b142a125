// One range profiler object: the state of one context, and the rules of its call order.
//
//   (Enable) -> counter_data_size -> initialize_image -> set_config -> start -> [push, pop] -> stop
//   -> decode -> ...
//
// A call out of order is CUPTI_ERROR_INVALID_OPERATION, a bad argument
// CUPTI_ERROR_INVALID_PARAMETER.
//
// Auto range: every kernel is a range, named "0", "1", ... in execution order since set_config.
// With kernel replay all passes are collected by running the kernel again. Whether a graph launch
// is one range on hardware is an open question; here every kernel node of a graph is one, or the
// whole launch is, with the sums (SIMGPU_GRAPH_RANGES). User range: ranges are pushed and popped; a
// kernel counts for every open range. Kernel replay is not possible there. With user and
// application replay one window collects one pass; the client repeats the work.
//
// Decoded ranges are appended to the image: an image is to be initialized again before it is used
// for another window.
#pragma once
#include <cupti.h>
#include <cupti_range_profiler.h>
#include <simgpu/hooks.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config_image.h"
#include "counter_image.h"
#include "environment.h"

namespace simgpu::cupti {

// How many times longer a kernel takes while its code is patched for SASS metrics: a round number
// inside what is reported for hardware (up to 100). It lengthens the kernel's activity record.
inline constexpr uint32_t kSassSlowDown = 10;

class RangeProfiler {
 public:
  RangeProfiler(const Environment& environment, CUcontext context, uint32_t chip)
      : environment_(environment), context_(context), chip_(chip) {}

  CUcontext context() const { return context_; }
  uint32_t chip() const { return chip_; }
  bool started() const { return started_; }
  // How often each kernel runs while started.
  uint32_t replays() const;

  CUptiResult counter_data_size(std::span<const char* const> metrics, size_t max_ranges,
                                size_t max_nodes, size_t* bytes);
  CUptiResult initialize_image(std::span<uint8_t> memory) const;
  CUptiResult set_config(const CUpti_RangeProfiler_SetConfig_Params& params);
  CUptiResult start();
  CUptiResult stop(size_t* pass, size_t* nesting_level, bool* all_passes);
  CUptiResult push(const char* name);
  CUptiResult pop();
  CUptiResult decode(size_t* dropped);

  // A kernel has run in this context while started. Returns how many times longer it took.
  uint32_t kernel(const KernelRun& run);

 private:
  struct OpenRange {
    std::string path;  // names joined by kNestingMark
    CounterValues values{};
  };
  bool collected(Counter counter) const;
  bool wanted_level(size_t depth) const;
  void finish(std::string name, const CounterValues& values);
  void auto_range(const KernelRun& run, const CounterValues& values);
  void finish_graph();

  const Environment& environment_;
  const CUcontext context_;
  const uint32_t chip_;

  std::vector<Counter> image_counters_;  // as told to counter_data_size
  size_t image_capacity_ = 0;

  bool configured_ = false, started_ = false, stopped_ = false;
  Schedule schedule_;
  std::span<uint8_t> image_;
  CUpti_ProfilerRange range_ = CUPTI_Range_INVALID;
  CUpti_ProfilerReplayMode replay_ = CUPTI_Replay_INVALID;
  size_t max_ranges_ = 0, pass_ = 0;
  size_t min_level_ = 1, levels_ = 1, target_level_ = 0;

  std::vector<OpenRange> open_;
  // The graph launch that is one range, as far as its kernels have run.
  std::optional<uint32_t> graph_launch_;  // its correlation id
  CounterValues graph_values_{};
  bool graph_seen_ = false;            // since set_config
  std::vector<RangeValues> finished_;  // not decoded yet
  bool finished_merges_ = false;       // they are later passes of ranges that are in the image
  uint64_t next_name_ = 0, seen_ = 0;
  size_t dropped_ = 0;
};

}  // namespace simgpu::cupti
