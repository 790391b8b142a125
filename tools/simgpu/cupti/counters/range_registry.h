// The range profiler objects of this process: one per context at most, known by their handles.
//
// The registry's lock is never held while the driver is called: the driver reports kernels with
// locks of its own.
#pragma once
#include <cupti.h>
#include <cupti_range_profiler.h>
#include <simgpu/hooks.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

#include "counters/range_profiler.h"
#include "environment.h"

namespace simgpu::cupti {

class RangeRegistry {
 public:
  explicit RangeRegistry(const Environment& environment) : environment_(environment) {}

  // cuptiProfilerInitialize and cuptiProfilerDeInitialize.
  void set_initialized(bool on) { initialized_.store(on, std::memory_order_relaxed); }

  // Whether CUPTI says now which counters the device has.
  CUptiResult tells_availability(uint32_t device);
  // `chip` is the index of the context's chip.
  CUptiResult enable(CUcontext context, uint32_t device, uint32_t chip,
                     CUpti_RangeProfiler_Object** handle);
  CUptiResult disable(CUpti_RangeProfiler_Object* handle);
  void context_destroyed(CUcontext context);  // its object becomes invalid
  void reset();                               // cuptiFinalize

  // Runs `call` on the object under the lock; CUPTI_ERROR_INVALID_PARAMETER for a handle that is
  // not one.
  template <class Call>
  CUptiResult with(CUpti_RangeProfiler_Object* handle, Call&& call) {
    const std::scoped_lock lock(mutex_);
    RangeProfiler* found = find(handle);
    if (found == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    const CUptiResult result = call(*found);
    count_started();
    return result;
  }

  bool any_enabled() {
    const std::scoped_lock lock(mutex_);
    return !objects_.empty();
  }
  bool any_started() const noexcept { return started_.load(std::memory_order_relaxed) != 0; }
  bool kernel(const KernelRun& run);  // false: in no window
  void copy(const MemoryCopy& copy);
  void module_loaded(CUcontext context, uint32_t module);

 private:
  bool busy() const;
  CUptiResult refusal() const;
  // Calls back with the object that is started in the context, if there is one.
  template <class Call>
  bool with_started(CUcontext context, Call&& call) {
    const std::scoped_lock lock(mutex_);
    for (const auto& object : objects_)
      if (object->context() == context && object->started()) return call(*object), true;
    return false;
  }
  RangeProfiler* find(const CUpti_RangeProfiler_Object* handle) const;
  void count_started();

  const Environment& environment_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<RangeProfiler>> objects_;
  std::atomic<bool> initialized_{false};
  std::atomic<std::chrono::steady_clock::time_point> first_enabled_{};  // that was tried
  // By another client of the counters.
  std::atomic<std::chrono::steady_clock::time_point> taken_until_{};
  std::atomic<uint32_t> started_{0};
};

}  // namespace simgpu::cupti
