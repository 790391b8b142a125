#include "counters/range_registry.h"

#include <algorithm>

#include "callbacks.h"

namespace simgpu::cupti {

// Another process holds the counters, for a while or for ever.
bool RangeRegistry::busy() const {
  using std::chrono::steady_clock;
  const Faults& faults = environment_.faults;
  const auto now = steady_clock::now(), first = first_enabled_.load();
  const bool at_first = faults.hardware_busy_for != 0 &&
                        (first == steady_clock::time_point{} ||
                         now - first < std::chrono::milliseconds(faults.hardware_busy_for));
  return faults.hardware_busy || at_first || now < taken_until_.load(std::memory_order_relaxed);
}

// Of counters to anybody who asks.
CUptiResult RangeRegistry::refusal() const {
  const Faults& faults = environment_.faults;
  if (!initialized_.load(std::memory_order_relaxed)) return CUPTI_ERROR_NOT_INITIALIZED;
  if (faults.mps) return CUPTI_ERROR_NOT_SUPPORTED;
  if (faults.unsupported_device) return CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED;
  if (faults.no_privileges) return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  return busy() ? CUPTI_ERROR_HARDWARE_BUSY : CUPTI_SUCCESS;
}

CUptiResult RangeRegistry::tells_availability(uint32_t device) {
  if (const CUptiResult refused = refusal(); refused != CUPTI_SUCCESS) return refused;
  const std::scoped_lock lock(mutex_);
  const bool active =
      std::ranges::any_of(objects_, [&](const auto& object) { return object->device() == device; });
  return active ? CUPTI_ERROR_HARDWARE_BUSY : CUPTI_SUCCESS;
}

CUptiResult RangeRegistry::enable(CUcontext context, uint32_t device, uint32_t chip,
                                  CUpti_RangeProfiler_Object** handle) {
  const Faults& faults = environment_.faults;
  auto never = std::chrono::steady_clock::time_point{};
  first_enabled_.compare_exchange_strong(never, std::chrono::steady_clock::now());
  if (const CUptiResult refused = refusal();
      refused != CUPTI_SUCCESS && refused != CUPTI_ERROR_HARDWARE_BUSY)
    return refused;
  if (faults.switch_elsewhere && !Callbacks::inside()) return CUPTI_ERROR_INVALID_OPERATION;
  if (busy()) return CUPTI_ERROR_HARDWARE_BUSY;
  if (faults.enable_fails) return CUPTI_ERROR_UNKNOWN;
  const std::scoped_lock lock(mutex_);
  for (const auto& object : objects_)
    if (object->context() == context) return CUPTI_ERROR_INVALID_OPERATION;
  if (faults.one_context)
    for (const auto& object : objects_)
      if (object->device() == device) return CUPTI_ERROR_HARDWARE_BUSY;
  objects_.push_back(std::make_unique<RangeProfiler>(environment_, context, device, chip));
  *handle = reinterpret_cast<CUpti_RangeProfiler_Object*>(objects_.back().get());
  return CUPTI_SUCCESS;
}

CUptiResult RangeRegistry::disable(CUpti_RangeProfiler_Object* handle) {
  const std::scoped_lock lock(mutex_);
  const RangeProfiler* found = find(handle);
  if (found == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  const Faults& faults = environment_.faults;
  if (found->started() || (faults.switch_elsewhere && !Callbacks::inside()))
    return CUPTI_ERROR_INVALID_OPERATION;
  if (faults.taken_when_free != 0)
    taken_until_ =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(faults.taken_when_free);
  std::erase_if(objects_, [&](const auto& object) { return object.get() == found; });
  return CUPTI_SUCCESS;
}

void RangeRegistry::context_destroyed(CUcontext context) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(objects_, [&](const auto& object) { return object->context() == context; });
  count_started();
}

void RangeRegistry::reset() {
  const std::scoped_lock lock(mutex_);
  objects_.clear();
  initialized_.store(false, std::memory_order_relaxed);
  count_started();
}

bool RangeRegistry::kernel(const KernelRun& run) {
  return with_started(run.context, [&](RangeProfiler& object) { object.kernel(run); });
}

void RangeRegistry::copy(const MemoryCopy& copy) {
  with_started(copy.context, [&](RangeProfiler& object) { object.copy(copy); });
}

void RangeRegistry::module_loaded(CUcontext context, uint32_t module) {
  with_started(context, [&](RangeProfiler& object) { object.module_loaded(module); });
}

RangeProfiler* RangeRegistry::find(const CUpti_RangeProfiler_Object* handle) const {
  for (const auto& object : objects_)
    if (static_cast<const void*>(object.get()) == static_cast<const void*>(handle))
      return object.get();
  return nullptr;
}

void RangeRegistry::count_started() {
  const auto started =
      std::ranges::count_if(objects_, [](const auto& object) { return object->started(); });
  started_.store(static_cast<uint32_t>(started), std::memory_order_relaxed);
}

}  // namespace simgpu::cupti
