// One range profiler object: the state of one context, and the rules of its call order.
//
//   (Enable) -> counter_data_size -> initialize_image -> set_config -> start -> [push, pop] -> stop
//   -> decode -> ...
//
// A call out of order is CUPTI_ERROR_INVALID_OPERATION, a bad argument
// CUPTI_ERROR_INVALID_PARAMETER.
//
// Auto range: every kernel is a range, named "0", "1", ... in execution order since set_config.
// With kernel replay all passes are collected of each kernel: from its one run, since the driver
// observes all counters of it. Every kernel node of a
// graph is one, as CUPTI's documents have it, and as no hardware has shown yet. User
// range: ranges are pushed and popped; a kernel counts for every open range. Kernel replay is not
// possible there. With user and application replay one window collects one pass; the client repeats
// the work.
//
// Decoded ranges are appended to the image: an image is to be initialized again before it is used
// for another window.
#pragma once
#include <cupti.h>
#include <cupti_range_profiler.h>
#include <simgpu/hooks.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "counters/config_image.h"
#include "counters/counter_image.h"
#include "environment.h"

namespace simgpu::cupti {

class RangeProfiler {
 public:
  RangeProfiler(const Environment& environment, CUcontext context, uint32_t device, uint32_t chip)
      : environment_(environment), context_(context), device_(device), chip_(chip) {}

  CUcontext context() const { return context_; }
  uint32_t device() const { return device_; }
  uint32_t chip() const { return chip_; }
  bool started() const { return started_; }
  // What the driver is to do while started.
  Session session() const;

  CUptiResult counter_data_size(std::span<const char* const> metrics, size_t max_ranges,
                                size_t max_nodes, size_t* bytes);
  CUptiResult initialize_image(std::span<uint8_t> memory) const;
  CUptiResult set_config(const CUpti_RangeProfiler_SetConfig_Params& params);
  CUptiResult start();
  // `exiting_call`: the API call in whose callback at EXIT this is; 0 in none.
  CUptiResult stop(uint32_t exiting_call, size_t* pass, size_t* nesting_level, bool* all_passes);
  CUptiResult push(const char* name);
  CUptiResult pop();
  CUptiResult decode(size_t* dropped);

  // A kernel has run in this context while started.
  void kernel(const KernelRun& run);
  void copy(const MemoryCopy& copy);
  void module_loaded(uint32_t module);

 private:
  struct OpenRange {
    std::string path;  // names joined by kNestingMark
    CounterValues values{};
  };
  bool collected(Counter counter) const;
  bool wanted_level(size_t depth) const;
  bool instrumented() const;
  bool counts_any(const Schedule&, std::string_view text) const;  // of metrics so named, for faults
  void finish(std::string name, const CounterValues& values);
  void forget_last_launch(uint32_t exiting_call);

  const Environment& environment_;
  const CUcontext context_;
  const uint32_t device_, chip_;

  std::vector<Counter> image_counters_;  // as given to counter_data_size
  size_t image_capacity_ = 0;

  bool configured_ = false, started_ = false, stopped_ = false;
  Schedule schedule_;
  std::span<uint8_t> image_;
  CUpti_ProfilerRange range_ = CUPTI_Range_INVALID;
  CUpti_ProfilerReplayMode replay_ = CUPTI_Replay_INVALID;
  size_t max_ranges_ = 0, pass_ = 0;
  size_t min_level_ = 1, levels_ = 1, target_level_ = 0;

  std::vector<OpenRange> open_;
  std::vector<RangeValues> finished_;  // not decoded yet
  bool finished_merges_ = false;       // they are later passes of ranges that are in the image
  uint64_t next_name_ = 0, seen_ = 0;
  std::thread::id launcher_;      // the thread of the last launch, before it that of start()
  uint32_t last_launch_ = 0;      // its correlation id
  size_t ranges_of_last_ = 0;     // that it made
  std::set<uint32_t> unpatched_;  // modules that were loaded while started
  size_t dropped_ = 0;
};

}  // namespace simgpu::cupti
