// Metric groups made ready for one device: host object, configuration image, pass count checked.
#pragma once
#include <collector/metric_plan.h>
#include <injector/cupti_check.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace flopinj {

// Shared by the contexts of a device. Only `evaluate` changes after preparation.
struct MetricGroup {
  MetricGroupPlan plan;
  std::vector<const char*> metrics;  // into plan
  std::vector<uint8_t> config_image;
  CUpti_Profiler_Host_Object* host = nullptr;
  std::mutex evaluate;  // the host object serves one evaluation at a time
};

// In how many passes a group may be read: in more than one, kernels are replayed.
enum class Passes : uint8_t { kOne, kAny };

// Null, with the reason, when CUPTI does not know a metric or the group needs too many passes. Takes
// 50-500 ms: not on a thread of the program. Needs no GPU.
std::unique_ptr<MetricGroup> prepare_group(const CuptiApi&, const std::string& chip,
                                           const MetricGroupPlan&, Passes, Problem&);

}  // namespace flopinj
