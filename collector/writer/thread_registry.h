// The host threads that launch or push ranges: those alive, and the sums of their counters. Locks;
// cold.
#pragma once
#include <collector/base/mutex.h>
#include <collector/writer/thread_state.h>

#include <array>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace flopinj {

inline constexpr size_t kDeviceSlots = kMaxDevices + 1;  // of ThreadState::launches
inline size_t device_slot(DeviceId device) {
  return device.value < kMaxDevices ? device.value : kMaxDevices;
}

struct ThreadTotals {
  std::array<uint64_t, kDeviceSlots> made{}, ring_full{};
  uint64_t callbacks = 0, callback_ns = 0, nested_calls = 0;
  uint64_t unmatched_pops = 0, too_deep = 0;
  uint64_t timed_calls = 0, timed_call_ns = 0, passed_over = 0;
  void add(const ThreadState&);
};

class ThreadRegistry {
 public:
  ThreadState* add(uint32_t os_tid, RangePathTable&,
                   const ProcessRanges&);  // null past kMaxThreads
  // The thread's last call: its cache of signatures is another thread's from now on. `name` is what
  // it was called at its end; empty: unknown.
  void retire(ThreadState*, std::string name);

  // Writer thread: only it frees, so what it lists stays valid until it calls reap().
  void list(std::vector<ThreadState*>&) const;
  std::string reap(ThreadState*);  // keeps the counters; returns the name given to retire()
  ThreadTotals totals() const;     // of all threads there ever were

 private:
  struct Slot {
    std::unique_ptr<ThreadState> state;
    std::string last_name;
  };
  mutable Mutex mutex_;
  std::unordered_map<const ThreadState*, Slot> slots_ FLOPINJ_GUARDED_BY(mutex_);
  uint32_t next_id_ FLOPINJ_GUARDED_BY(mutex_) = 1;
  ThreadTotals ended_ FLOPINJ_GUARDED_BY(mutex_);
  // Caches of ended threads, for new threads: nothing in them belongs to one thread.
  static constexpr size_t kMostCaches = 64;
  std::vector<SignatureCache> caches_ FLOPINJ_GUARDED_BY(mutex_);
};

}  // namespace flopinj
