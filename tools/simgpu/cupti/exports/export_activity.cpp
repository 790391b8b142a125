// Exported: the activity API.
#include <cupti.h>

#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "activity/activity_records.h"
#include "entry.h"
#include "process.h"

namespace {

using namespace simgpu::cupti;

// The functions that name no subscriber do not work beside subscribers that allow others; of 13.2
// they do where they only read (openxla/xla, pull request 44322).
template <class Body>
CUptiResult alone(Body&& body) noexcept {
  return with_driver([&](Process& process, const simgpu::Driver&) {
    process.attach();
    return process.callbacks.shared() ? CUPTI_ERROR_NOT_COMPATIBLE : body(process);
  });
}

// Attributes are kept and given back; only PER_THREAD_ACTIVITY_BUFFER changes something here. All
// are size_t but for three flags.
class Attributes {
 public:
  static Attributes& get() {
    static auto* const attributes = new Attributes;
    return *attributes;
  }
  static size_t size_of(CUpti_ActivityAttribute attribute) {
    switch (attribute) {
      case CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE:
      case CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_CDP:
      case CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT:
      case CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_SIZE:
      case CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_LIMIT:
      case CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE:
      case CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_PRE_ALLOCATE_VALUE:
        return sizeof(size_t);
      case CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER:
      case CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED:
      case CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER:
        return sizeof(uint8_t);
      default:
        return 0;
    }
  }
  size_t read(CUpti_ActivityAttribute attribute) {
    const std::scoped_lock lock(mutex_);
    return values_[attribute];
  }
  void write(CUpti_ActivityAttribute attribute, size_t value) {
    const std::scoped_lock lock(mutex_);
    values_[attribute] = value;
  }

 private:
  std::mutex mutex_;
  std::map<CUpti_ActivityAttribute, size_t> values_{
      {CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER,
       Process::get().activity.buffers().per_thread() ? 1 : 0},
      {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, 3'200'000},
      {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, 250}};
};

CUptiResult check_attribute(CUpti_ActivityAttribute attribute, const size_t* size,
                            const void* value) {
  const size_t needed = Attributes::size_of(attribute);
  if (size == nullptr || value == nullptr || needed == 0) return CUPTI_ERROR_INVALID_PARAMETER;
  return *size < needed ? CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT : CUPTI_SUCCESS;
}

// The ids that this thread has pushed. No record shows them.
thread_local std::map<CUpti_ExternalCorrelationKind, std::vector<uint64_t>> t_correlations;

bool known_correlation(CUpti_ExternalCorrelationKind kind) {
  return kind > CUPTI_EXTERNAL_CORRELATION_KIND_INVALID &&
         kind < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE;
}

}  // namespace

extern "C" {

CUptiResult CUPTIAPI
cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc funcBufferRequested,
                               CUpti_BuffersCallbackCompleteFunc funcBufferCompleted) {
  return entry([&] {
    Process& process = Process::get();
    if (process.version() >= kCupti132 && process.driver() == nullptr) return process.no_driver();
    if (funcBufferRequested == nullptr || funcBufferCompleted == nullptr)
      return CUPTI_ERROR_INVALID_PARAMETER;
    if (process.callbacks.shared()) return CUPTI_ERROR_NOT_COMPATIBLE;
    process.activity.buffers().set_callbacks(funcBufferRequested, funcBufferCompleted);
    return CUPTI_SUCCESS;
  });
}

CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind) {
  return alone([&](Process& process) {
    return process.spoils_ranges(kind) ? CUPTI_ERROR_NOT_COMPATIBLE : process.activity.enable(kind);
  });
}

CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind) {
  return alone([&](Process& process) { return process.activity.disable(kind); });
}

CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t* buffer, size_t validBufferSizeBytes,
                                                CUpti_Activity** record) {
  return entry([&] {
    if (buffer == nullptr || record == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    const uint32_t version = Process::get().environment.cupti_version;
    return next_record({buffer, validBufferSizeBytes}, version, record);
  });
}

// There is one queue, so that context and stream do not matter, as in CUPTI since its buffers
// became global.
CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
  return entry([&] {
    if (dropped == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    *dropped = Process::get().activity.buffers().take_dropped();
    return CUPTI_SUCCESS;
  });
}

// Records are complete when they are written: a forced flush adds only buffers that have none.
CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t flag) {
  const bool forced = (flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0;
  return entry([&] {
    Process& process = Process::get();
    if (!process.callbacks.shared()) return process.activity.buffers().flush(forced);
    CUptiResult result = CUPTI_ERROR_INVALID_OPERATION;  // nobody has callbacks
    process.each_activity([&](Activity& activity) {
      if (!activity.buffers().has_callbacks()) return;
      const CUptiResult flushed = activity.buffers().flush(forced);
      if (result != CUPTI_SUCCESS) result = flushed;
    });
    return result;
  });
}

CUptiResult CUPTIAPI cuptiActivityGetAttribute(CUpti_ActivityAttribute attr, size_t* valueSize,
                                               void* value) {
  return entry([&] {
    if (const CUptiResult result = check_attribute(attr, valueSize, value); result != CUPTI_SUCCESS)
      return result;
    const size_t stored = Attributes::get().read(attr);
    *valueSize = Attributes::size_of(attr);
    std::memcpy(value, &stored, *valueSize);  // little-endian: the low bytes
    return CUPTI_SUCCESS;
  });
}

CUptiResult CUPTIAPI cuptiActivitySetAttribute(CUpti_ActivityAttribute attr, size_t* valueSize,
                                               void* value) {
  return entry([&] {
    if (const CUptiResult result = check_attribute(attr, valueSize, value); result != CUPTI_SUCCESS)
      return result;
    size_t stored = 0;
    std::memcpy(&stored, value, Attributes::size_of(attr));
    Attributes::get().write(attr, stored);
    if (attr == CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER)
      Process::get().activity.buffers().set_per_thread(stored != 0);
    return CUPTI_SUCCESS;
  });
}

// Records of API calls and of events are never made, so that there is nothing to choose.
CUptiResult CUPTIAPI cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t) {
  return entry([&] {
    const bool known = cbid != 0 && cbid < CUPTI_DRIVER_TRACE_CBID_SIZE;
    return known ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
  });
}

CUptiResult CUPTIAPI cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, uint8_t) {
  return entry([&] {
    const bool known = cbid != 0 && cbid < CUPTI_RUNTIME_TRACE_CBID_SIZE;
    return known ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
  });
}

CUptiResult CUPTIAPI cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t) {
  return entry([] { return CUPTI_SUCCESS; });
}

// From now on records have the times of the client's clock, whoever else reads them.
CUptiResult CUPTIAPI
cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc funcTimestamp) {
  return with_driver([&](Process& process, const simgpu::Driver& driver) {
    if (funcTimestamp == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    process.attach();
    process.activity.shift_times(funcTimestamp() - driver.timestamp_ns());
    return CUPTI_SUCCESS;
  });
}

CUptiResult CUPTIAPI cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                            uint64_t id) {
  return entry([&] {
    if (!known_correlation(kind)) return CUPTI_ERROR_INVALID_PARAMETER;
    t_correlations[kind].push_back(id);
    return CUPTI_SUCCESS;
  });
}

CUptiResult CUPTIAPI cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                           uint64_t* lastId) {
  return entry([&] {
    if (!known_correlation(kind)) return CUPTI_ERROR_INVALID_PARAMETER;
    std::vector<uint64_t>& ids = t_correlations[kind];
    if (ids.empty()) return CUPTI_ERROR_QUEUE_EMPTY;
    if (lastId != nullptr) *lastId = ids.back();
    ids.pop_back();
    return CUPTI_SUCCESS;
  });
}

}  // extern "C"
