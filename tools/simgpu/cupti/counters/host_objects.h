// Profiler host objects: a chip and the metrics added so far. They need no GPU and no driver.
#pragma once
#include <cupti_profiler_host.h>
#include <cupti_result.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "counters/counters.h"

namespace simgpu::cupti {

struct HostObject {
  uint32_t chip = 0;
  CounterSet lacking;                     // as the availability image says, if there was one
  std::vector<Counter> counters;          // of all metrics added
  std::vector<const char*> base_metrics;  // answers handed out; they live as long as the object
};

class HostObjects {
 public:
  static HostObjects& get();

  size_t count();
  CUpti_Profiler_Host_Object* create(uint32_t chip, const CounterSet& lacking);
  CUptiResult destroy(CUpti_Profiler_Host_Object* handle);

  // Runs `call` on the object under the lock; CUPTI_ERROR_INVALID_PARAMETER for a handle that is
  // not one.
  template <class Call>
  CUptiResult with(CUpti_Profiler_Host_Object* handle, Call&& call) {
    const std::scoped_lock lock(mutex_);
    for (const auto& object : objects_)
      if (static_cast<void*>(object.get()) == static_cast<void*>(handle)) return call(*object);
    return CUPTI_ERROR_INVALID_PARAMETER;
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<HostObject>> objects_;
};

}  // namespace simgpu::cupti
