#include "activity/activity.h"

#include <algorithm>

#include "activity/activity_records.h"
#include "activity/activity_thief.h"

namespace simgpu::cupti {
namespace {

enum class Support { kRecords, kEmpty, kConflicts, kUnknown };

Support support(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_MEMCPY:
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return Support::kRecords;
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DEVICE:
    case CUPTI_ACTIVITY_KIND_CONTEXT:
    case CUPTI_ACTIVITY_KIND_NAME:
    case CUPTI_ACTIVITY_KIND_MARKER:
    case CUPTI_ACTIVITY_KIND_MARKER_DATA:
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
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

// A number of this thread's own, from 1.
uint64_t this_thread() {
  static std::atomic<uint64_t> threads{0};
  thread_local const uint64_t number = ++threads;
  return number;
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

bool Activity::lose_next() {
  const uint64_t number = records_.fetch_add(1, std::memory_order_relaxed) + 1;
  const uint64_t every = environment_.faults.drop_activity;
  if (every == 0 || number % every != 0) return false;
  buffers_.count_dropped();
  return true;
}

// As has been seen on hardware after 25 million records of graph nodes (parcagpu issue 23).
void Activity::spoil_times(uint64_t number, bool in_window, CUpti_ActivityKernel10& record) const {
  constexpr uint64_t kEarlyNs = 5'000'000;
  const std::string& how = environment_.faults.windowed_records;
  if (in_window && how == "zero") record.start = record.end = 0;
  if (in_window && how == "early") record.start -= kEarlyNs, record.end -= kEarlyNs;
  const uint64_t first = environment_.faults.invalid_times;
  if (first == 0 || number < first) return;
  if (number % 2 == 0)
    record.start = record.end = 0;
  else
    record.end = record.start - 1;
}

const char* Activity::intern(const char* name) {
  return names_.emplace(name == nullptr ? "" : name).first->c_str();
}

template <class Record>
void Activity::append(CUpti_ActivityKind kind, const Record& record) {
  buffers_.append({reinterpret_cast<const uint8_t*>(&record), sizeof record},
                  record_size(kind, environment_.cupti_version), this_thread());
}

void Activity::kernel(const KernelRun& run, bool in_window) {
  const Faults& faults = environment_.faults;
  if (in_window && faults.windowed_records == "absent") return;
  const uint64_t number = kernels_.fetch_add(1, std::memory_order_relaxed) + 1;
  const uint64_t taken = can_be_taken_ ? faults.take_activity : 0;
  if (taken != 0 && number == taken) take_callbacks(buffers_);
  if (taken != 0 && number == taken + kThiefStays) disable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  const uint64_t enabled = enabled_.load(std::memory_order_relaxed) & kKernelKinds;
  if (enabled == 0 || lose_next()) return;
  const auto kind = enabled == bit(CUPTI_ACTIVITY_KIND_KERNEL)
                        ? CUPTI_ACTIVITY_KIND_KERNEL
                        : CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  CUpti_ActivityKernel10 record;
  {
    const std::scoped_lock lock(mutex_);
    record = kernel_record(kind, run, intern(run.symbol));
  }
  record.start += shift_.load(std::memory_order_relaxed);
  record.end += shift_.load(std::memory_order_relaxed);
  spoil_times(number, in_window, record);
  append(kind, record);
  if (faults.repeat_activity != 0 && number % faults.repeat_activity == 0) append(kind, record);
}

void Activity::copy(const MemoryCopy& copy) {
  const CUpti_ActivityKind kind =
      copy.kind == CUPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN ? CUPTI_ACTIVITY_KIND_MEMSET
      : copy.kind == CUPTI_ACTIVITY_MEMCPY_KIND_PTOP  ? CUPTI_ACTIVITY_KIND_MEMCPY2
                                                      : CUPTI_ACTIVITY_KIND_MEMCPY;
  if ((enabled_.load(std::memory_order_relaxed) & bit(kind)) == 0 || lose_next()) return;
  MemoryCopy shifted = copy;
  shifted.start_ns += shift_.load(std::memory_order_relaxed);
  shifted.end_ns += shift_.load(std::memory_order_relaxed);
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return append(kind, memset_record(shifted));
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return append(kind, peer_memcpy_record(shifted));
    default:
      return append(kind, memcpy_record(shifted));
  }
}

}  // namespace simgpu::cupti
