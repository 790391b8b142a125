// Metric groups made ready for one device: host object, configuration image, pass count checked.
#pragma once
#include <collector/base/mutex.h>
#include <collector/schedule/metric_plan.h>
#include <injector/vendor/cupti_api.h>
#include <injector/vendor/cupti_check.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace flopinj {

// The counters of a device: those of its chip that it has. A slice of a GPU (MIG) lacks some.
struct ChipCounters {
  std::string chip;
  // CUPTI's counter availability image of the device, which must outlive the host objects that are
  // made of it. Empty: CUPTI has not told, and all counters of the chip are taken to be there.
  std::vector<uint8_t> available;

  auto operator<=>(const ChipCounters&) const = default;
};

// CUPTI's knowledge of a chip, of which each object holds a megabyte and more: it ends with its
// owner, also after cuptiFinalize.
class HostObject {
 public:
  HostObject(const CuptiApi&, const ChipCounters&, Problem&);  // null with the reason
  ~HostObject();
  HostObject(const HostObject&) = delete;
  HostObject& operator=(const HostObject&) = delete;

  CUpti_Profiler_Host_Object* get() const { return object_; }

 private:
  const CuptiApi& cupti_;
  CUpti_Profiler_Host_Object* object_ = nullptr;
};

// Shared by the contexts of a device. Only `evaluate` changes after preparation.
struct MetricGroup {
  MetricGroup(const CuptiApi& cupti, const ChipCounters& counters, MetricGroupPlan wanted,
              Problem& problem)
      : plan(std::move(wanted)), host(cupti, counters, problem) {
    for (const auto& metric : plan.metrics) metrics.push_back(metric.c_str());
  }

  const MetricGroupPlan plan;
  std::vector<const char*> metrics;  // into plan
  std::vector<uint8_t> config_image;
  const HostObject host;
  Mutex evaluate;  // the host object serves one evaluation at a time
};

// In how many passes a group may be read: in more than one, kernels are replayed.
enum class Passes : uint8_t { kOne, kAny };

// Null, with the reason, when CUPTI does not know a metric, the device does not have its counters,
// or the group needs too many passes. Of optional metrics only those for which that holds are left
// out. Takes 50-500 ms, and as much for each try with fewer metrics: not on a thread of the
// program. Needs no GPU. The group's plan has the metrics that are read, by the names that this
// CUPTI knows.
std::unique_ptr<MetricGroup> prepare_group(const CuptiApi&, const ChipCounters&,
                                           const MetricGroupPlan&, Passes, Problem&);

// What CUPTI says of a chip: its metrics, without roll-up (empty: it does not say them), and in how
// many passes it reads some of them (0: in none). For chips that are in no table.
std::vector<std::string> metrics_of_chip(const CuptiApi&, const ChipCounters&);
size_t passes_of(const CuptiApi&, const ChipCounters&, const std::vector<std::string>& metrics);

}  // namespace flopinj
