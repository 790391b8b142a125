// The call sequence of a range profiler tool, step by step, so that a test can leave one out or do
// it twice.
#pragma once
#include <cupti.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include <cstdint>
#include <string>
#include <vector>

using Metrics = std::vector<const char*>;

inline const Metrics kSassMetrics = {"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",
                                     "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum",
                                     "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
                                     "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum",
                                     "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum",
                                     "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum",
                                     "smsp__sass_thread_inst_executed_op_hadd_pred_on.sum",
                                     "smsp__sass_thread_inst_executed_op_hmul_pred_on.sum",
                                     "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum"};
inline const Metrics kScreening = {"sm__inst_executed_pipe_tensor_op_hmma.sum",
                                   "sm__inst_executed_pipe_tensor_op_gmma.sum",
                                   "sm__inst_executed_pipe_tensor_op_dmma.sum",
                                   "sm__inst_executed_pipe_tensor_op_imma.sum",
                                   "dram__bytes_read.sum",
                                   "dram__bytes_write.sum",
                                   "gpu__time_duration.sum",
                                   "sm__cycles_elapsed.max"};

inline Metrics operator+(Metrics a, const Metrics& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// A profiler host object and the configuration image of some metrics.
class HostPlan {
 public:
  explicit HostPlan(const Metrics& metrics, const char* chip = "GH100",
                    const uint8_t* availability = nullptr);
  ~HostPlan();
  HostPlan(const HostPlan&) = delete;
  HostPlan& operator=(const HostPlan&) = delete;

  CUpti_Profiler_Host_Object* host{};
  CUptiResult result = CUPTI_SUCCESS;  // of ConfigAddMetrics
  std::vector<uint8_t> config;
  size_t passes = 0;
};

class RangeClient {
 public:
  CUptiResult enable(CUcontext context);
  CUptiResult disable() const;
  CUptiResult make_image(const Metrics& metrics, size_t max_ranges);
  CUptiResult reinitialize_image();
  CUptiResult set_config(const HostPlan& plan, size_t max_ranges,
                         CUpti_ProfilerRange range = CUPTI_AutoRange,
                         CUpti_ProfilerReplayMode replay = CUPTI_KernelReplay, size_t pass = 0,
                         uint16_t nesting_levels = 1);
  CUptiResult start() const;
  CUptiResult stop();
  CUptiResult push(const char* name) const;
  CUptiResult pop() const;
  CUptiResult decode();

  size_t ranges() const;
  std::string name(size_t range, const char* delimiter = "/") const;
  std::vector<double> values(const HostPlan& plan, const Metrics& metrics, size_t range) const;

  CUpti_RangeProfiler_Object* object{};
  std::vector<uint8_t> image;
  size_t dropped = 0;
  bool all_passes = false;
};

CUptiResult initialize_profiler();
// Null: of the current context. `image` gets the size that it needs.
CUptiResult counter_availability(CUcontext context, std::vector<uint8_t>& image);
