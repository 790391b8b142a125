// The activity API's state: which kinds are on, and the records made from what the driver reports.
#pragma once
#include <cupti.h>
#include <simgpu/hooks.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "activity/activity_buffers.h"
#include "environment.h"

namespace simgpu::cupti {

class Activity {
 public:
  enum class Owner { kProcess, kClient };
  explicit Activity(const Environment& environment, Owner owner = Owner::kProcess)
      : environment_(environment), can_be_taken_(owner == Owner::kProcess), buffers_(environment) {}

  // Records of kernels, copies and fills are made. Kinds whose records a tool can do without are
  // accepted and stay empty. Both kernel kinds at once: CUPTI_ERROR_NOT_COMPATIBLE.
  CUptiResult enable(CUpti_ActivityKind kind);
  CUptiResult disable(CUpti_ActivityKind kind);
  void reset();  // cuptiFinalize

  static bool of_kernels(CUpti_ActivityKind kind) {
    return kind == CUPTI_ACTIVITY_KIND_KERNEL || kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  }
  bool wants_kernels() const noexcept {
    return (enabled_.load(std::memory_order_relaxed) & kKernelKinds) != 0;
  }

  void kernel(const KernelRun& run, bool in_window);
  void copy(const MemoryCopy& copy);  // or a fill
  // Added to the times of records from now on.
  void shift_times(uint64_t by_ns) { shift_.store(by_ns, std::memory_order_relaxed); }

  ActivityBuffers& buffers() { return buffers_; }

 private:
  static constexpr uint64_t bit(CUpti_ActivityKind kind) { return uint64_t{1} << kind; }
  static constexpr uint64_t kKernelKinds = uint64_t{1} << CUPTI_ACTIVITY_KIND_KERNEL |
                                           uint64_t{1} << CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  bool lose_next();  // record, of whatever kind
  void spoil_times(uint64_t number, bool in_window, CUpti_ActivityKernel10& record) const;
  template <class Record>
  void append(CUpti_ActivityKind kind, const Record& record);
  const char* intern(const char* name);

  const Environment& environment_;
  const bool can_be_taken_;  // by another client
  ActivityBuffers buffers_;
  std::atomic<uint64_t> enabled_{0};
  std::atomic<uint64_t> records_{0}, kernels_{0}, shift_{0};
  std::mutex mutex_;
  std::unordered_set<std::string>
      names_;  // records point into it; bounded by the program's kernels
};

}  // namespace simgpu::cupti
