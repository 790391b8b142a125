#include "activity.h"

#include <algorithm>

#include "activity_records.h"

namespace simgpu::cupti {
namespace {

enum class Support { kRecords, kEmpty, kConflicts, kUnknown };

Support support(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return Support::kRecords;
    case CUPTI_ACTIVITY_KIND_MEMSET:
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DEVICE:
    case CUPTI_ACTIVITY_KIND_CONTEXT:
    case CUPTI_ACTIVITY_KIND_NAME:
    case CUPTI_ACTIVITY_KIND_MARKER:
    case CUPTI_ACTIVITY_KIND_MARKER_DATA:
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
    case CUPTI_ACTIVITY_KIND_FUNCTION:
    case CUPTI_ACTIVITY_KIND_MODULE:
    case CUPTI_ACTIVITY_KIND_DEVICE_ATTRIBUTE:
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
    case CUPTI_ACTIVITY_KIND_STREAM:
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
    case CUPTI_ACTIVITY_KIND_MEMORY2:
    case CUPTI_ACTIVITY_KIND_MEMORY_POOL:
      return Support::kEmpty;
    // It would replace the kernel records of graphs, which is not simulated: better refused than
    // wrong.
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return Support::kConflicts;
    default:
      return Support::kUnknown;
  }
}

}  // namespace

CUptiResult Activity::enable(CUpti_ActivityKind kind) {
  switch (support(kind)) {
    case Support::kUnknown:
      return CUPTI_ERROR_INVALID_KIND;
    case Support::kConflicts:
      return CUPTI_ERROR_NOT_COMPATIBLE;
    case Support::kEmpty:
      return CUPTI_SUCCESS;
    case Support::kRecords:
      break;
  }
  const std::scoped_lock lock(mutex_);
  const uint64_t now = enabled_.load(std::memory_order_relaxed) | bit(kind);
  if ((now & kKernelKinds) == kKernelKinds) return CUPTI_ERROR_NOT_COMPATIBLE;
  buffers_.start();
  enabled_.store(now, std::memory_order_relaxed);
  return CUPTI_SUCCESS;
}

CUptiResult Activity::disable(CUpti_ActivityKind kind) {
  const Support known = support(kind);
  if (known == Support::kUnknown) return CUPTI_ERROR_INVALID_KIND;
  if (known == Support::kRecords) enabled_.fetch_and(~bit(kind), std::memory_order_relaxed);
  return CUPTI_SUCCESS;
}

void Activity::reset() {
  enabled_.store(0, std::memory_order_relaxed);
  buffers_.stop();
}

bool Activity::lose_this_record() {
  const uint64_t every = environment_.faults.drop_activity;
  const uint64_t number = records_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (every == 0 || number % every != 0) return false;
  buffers_.count_dropped();
  return true;
}

const char* Activity::intern(const char* name) {
  return names_.emplace(name == nullptr ? "" : name).first->c_str();
}

void Activity::kernel(const KernelRun& run, uint32_t slow_down) {
  const uint64_t enabled = enabled_.load(std::memory_order_relaxed) & kKernelKinds;
  if (enabled == 0 || lose_this_record()) return;
  const auto kind = enabled == bit(CUPTI_ACTIVITY_KIND_KERNEL)
                        ? CUPTI_ACTIVITY_KIND_KERNEL
                        : CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  CUpti_ActivityKernel10 record;
  {
    const std::scoped_lock lock(mutex_);
    uint64_t& busy_until = busy_until_[{run.context_id, run.stream_id}];
    const uint64_t start = std::max(run.start_ns, busy_until);
    const uint64_t end = start + (run.end_ns - run.start_ns) * slow_down;
    busy_until = end;
    record = kernel_record(kind, run, intern(run.symbol), start, end);
  }
  buffers_.append(&record, record_size(kind, environment_.cupti_version));
  const uint64_t every = environment_.faults.repeat_activity;
  if (every != 0 && records_.load(std::memory_order_relaxed) % every == 0)
    buffers_.append(&record, record_size(kind, environment_.cupti_version));
}

void Activity::copy(const MemoryCopy& copy) {
  if (!wants_copies() || lose_this_record()) return;
  const CUpti_ActivityMemcpy6 record = memcpy_record(copy);
  buffers_.append(&record, record_size(CUPTI_ACTIVITY_KIND_MEMCPY, environment_.cupti_version));
}

}  // namespace simgpu::cupti
