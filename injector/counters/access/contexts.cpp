#include <injector/counters/access/contexts.h>
#include <injector/counters/access/open_window.h>
#include <injector/counters/profiler/range_profiler.h>
#include <injector/process/thread_context.h>
#include <injector/vendor/relaxed_capture.h>

#include <algorithm>

namespace flopinj {

Context::Context() = default;
Context::~Context() = default;

Context* Contexts::find(ThreadContext& thread, CUcontext handle) {
  if (handle == nullptr) return nullptr;
  const uint32_t epoch = epoch_.load(std::memory_order_acquire);
  auto& slot = thread.context;
  if (slot.handle == handle && slot.epoch == epoch) return slot.context;
  Context* const context = adopt(handle);
  slot = {handle, context, epoch};
  return context;
}

Context* Contexts::adopt(CUcontext handle) {
  {
    const MutexLock lock(mutex_);
    if (const auto known = live_.find(handle); known != live_.end()) return known->second;
  }
  // Without the lock: CUPTI may hold its own where it reports something to another thread, which
  // then waits for ours.
  const RelaxedCapture relaxed(edge_.cuda);
  uint32_t ordinal = 0, id = 0;
  if (edge_.cupti.GetDeviceId(handle, &ordinal) != CUPTI_SUCCESS) return nullptr;
  if (edge_.cupti.GetContextId(handle, &id) != CUPTI_SUCCESS) id = 0;
  return add(handle, ordinal, id);
}

void Contexts::created(CUcontext handle, uint32_t ordinal) {
  uint32_t id = 0;  // without one it is adopted at its first launch
  if (edge_.cupti.GetContextId(handle, &id) == CUPTI_SUCCESS) add(handle, ordinal, id);
}

Context* Contexts::add(CUcontext handle, uint32_t ordinal, uint32_t id) {
  const MutexLock lock(mutex_);
  if (const auto known = live_.find(handle); known != live_.end()) return known->second;
  Context* context = nullptr;
  const auto reused = std::ranges::find(free_, ordinal, &Context::ordinal);
  if (reused == free_.end()) {
    context = &storage_.emplace_back();
    context->ordinal = ordinal;
    context->device = DeviceId{ordinal + 1};
  } else {
    context = *reused;
    free_.erase(reused);
  }
  context->handle = handle;
  context->id = id;
  context->asked.of.store(0);
  context->asked.gone.store(false);
  live_.emplace(handle, context);
  return context;
}

Context* Contexts::forget(CUcontext handle) {
  const MutexLock lock(mutex_);
  const auto known = live_.find(handle);
  if (known == live_.end()) return nullptr;
  Context* const context = known->second;
  live_.erase(known);
  epoch_.fetch_add(1, std::memory_order_release);
  return context;
}

void Contexts::recycle(Context* context) {
  const MutexLock lock(mutex_);
  free_.push_back(context);
}

std::vector<Context*> Contexts::all() {
  const MutexLock lock(mutex_);
  std::vector<Context*> contexts;
  for (const auto& [handle, context] : live_) contexts.push_back(context);
  return contexts;
}

}  // namespace flopinj
