#include "counters/host_objects.h"

namespace simgpu::cupti {

HostObjects& HostObjects::get() {
  static auto* const objects = new HostObjects;
  return *objects;
}

size_t HostObjects::count() {
  const std::scoped_lock lock(mutex_);
  return objects_.size();
}

CUpti_Profiler_Host_Object* HostObjects::create(uint32_t chip, const CounterSet& lacking) {
  const std::scoped_lock lock(mutex_);
  objects_.push_back(std::make_unique<HostObject>());
  objects_.back()->chip = chip;
  objects_.back()->lacking = lacking;
  return reinterpret_cast<CUpti_Profiler_Host_Object*>(objects_.back().get());
}

CUptiResult HostObjects::destroy(CUpti_Profiler_Host_Object* handle) {
  const std::scoped_lock lock(mutex_);
  const size_t removed = std::erase_if(objects_, [&](const auto& object) {
    return static_cast<void*>(object.get()) == static_cast<void*>(handle);
  });
  return removed == 1 ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

}  // namespace simgpu::cupti
