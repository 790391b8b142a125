// Exported: the functions that name their subscriber, from 13.2 on; in older versions
// NOT_SUPPORTED, where real ones have no such functions. The headers of the build may not have
// them: they are declared by their symbols. Those of 13.3 are here in 13.2 too.
#include <cupti.h>

#include <cstring>

#include "activity/activity_records.h"
#include "entry.h"
#include "process.h"

namespace {

using namespace simgpu::cupti;

template <class Body>
CUptiResult of_subscriber(CUpti_SubscriberHandle subscriber, Body&& body) noexcept {
  return entry([&] {
    Process& process = Process::get();
    if (process.version() < kCupti132) return CUPTI_ERROR_NOT_SUPPORTED;
    if (process.attach() == nullptr) return process.no_driver();
    Activity* const activity = process.activity_of(subscriber);
    return activity == nullptr ? CUPTI_ERROR_INVALID_PARAMETER : body(process, *activity);
  });
}

}  // namespace

#define SIMGPU_EXPORT(name) __asm__(#name) __attribute__((visibility("default")))
extern "C" {
CUptiResult simgpu_register(CUpti_SubscriberHandle, ActivityBuffers::OwnRequest,
                            ActivityBuffers::OwnComplete)
    SIMGPU_EXPORT(cuptiActivityRegisterCallbacks_v2);
CUptiResult simgpu_enable(CUpti_SubscriberHandle, CUpti_ActivityKind, void*)
    SIMGPU_EXPORT(cuptiActivityEnable_v2);
CUptiResult simgpu_disable(CUpti_SubscriberHandle, CUpti_ActivityKind, void*)
    SIMGPU_EXPORT(cuptiActivityDisable_v2);
CUptiResult simgpu_set_attribute(CUpti_SubscriberHandle, CUpti_ActivityAttribute, size_t*, void*)
    SIMGPU_EXPORT(cuptiActivitySetAttribute_v2);
CUptiResult simgpu_next_record(CUpti_SubscriberHandle, uint8_t*, size_t, CUpti_Activity**)
    SIMGPU_EXPORT(cuptiActivityGetNextRecord_v2);
CUptiResult simgpu_dropped(CUpti_SubscriberHandle, CUcontext, uint32_t, size_t*)
    SIMGPU_EXPORT(cuptiActivityGetNumDroppedRecords_v2);
CUptiResult simgpu_timestamp(CUpti_SubscriberHandle, uint64_t*) SIMGPU_EXPORT(cuptiGetTimestamp_v2);

CUptiResult simgpu_register(CUpti_SubscriberHandle subscriber, ActivityBuffers::OwnRequest request,
                            ActivityBuffers::OwnComplete complete) {
  return of_subscriber(subscriber, [&](Process&, Activity& activity) {
    if (request == nullptr || complete == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    activity.buffers().set_own_callbacks(request, complete);
    return CUPTI_SUCCESS;
  });
}

CUptiResult simgpu_enable(CUpti_SubscriberHandle subscriber, CUpti_ActivityKind kind,
                          void* config) {
  return of_subscriber(subscriber, [&](Process&, Activity& activity) {
    return config != nullptr ? CUPTI_ERROR_NOT_SUPPORTED : activity.enable(kind);
  });
}

CUptiResult simgpu_disable(CUpti_SubscriberHandle subscriber, CUpti_ActivityKind kind, void*) {
  return of_subscriber(subscriber,
                       [&](Process&, Activity& activity) { return activity.disable(kind); });
}

// Of the attributes only this one changes something here.
CUptiResult simgpu_set_attribute(CUpti_SubscriberHandle subscriber,
                                 CUpti_ActivityAttribute attribute, size_t* size, void* value) {
  return of_subscriber(subscriber, [&](Process&, Activity& activity) {
    if (size == nullptr || value == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    if (attribute == CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER)
      activity.buffers().set_per_thread(*static_cast<const uint8_t*>(value) != 0);
    return CUPTI_SUCCESS;
  });
}

CUptiResult simgpu_next_record(CUpti_SubscriberHandle subscriber, uint8_t* buffer, size_t valid,
                               CUpti_Activity** record) {
  return of_subscriber(subscriber, [&](Process& process, Activity&) {
    if (buffer == nullptr || record == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    return next_record({buffer, valid}, process.version(), record);
  });
}

CUptiResult simgpu_dropped(CUpti_SubscriberHandle subscriber, CUcontext, uint32_t,
                           size_t* dropped) {
  return of_subscriber(subscriber, [&](Process&, Activity& activity) {
    if (dropped == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    *dropped = activity.buffers().take_dropped();
    return CUPTI_SUCCESS;
  });
}

CUptiResult simgpu_timestamp(CUpti_SubscriberHandle subscriber, uint64_t* timestamp) {
  return of_subscriber(subscriber, [&](Process& process, Activity&) {
    if (timestamp == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    *timestamp = process.driver()->timestamp_ns();
    return CUPTI_SUCCESS;
  });
}

}  // extern "C"
