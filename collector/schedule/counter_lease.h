// How long the counters of a device are held, and when they are taken again.
//
// While CUPTI's range profiler is enabled it owns the device's counters, and no other client can
// read them (DCGM, a profiler of another process). So it is enabled only while windows are opened:
// after kIdleNs without one it is disabled. A launch that wants a window then has to wait until the
// pause after the last release is over. Pauses grow, so that a program that wants a window now and
// then rarely enables and disables; after a lease of kLongNs they begin again.
//
// A client that took the counters meanwhile makes CUPTI refuse them. They are asked for again after
// kRefusalPauses, the last of which repeats: they may come back at any time.
//
// Threads: any; all functions lock.
#pragma once
#include <collector/identity/mutex.h>
#include <collector/schedule/refusals.h>

#include <array>
#include <cstdint>

namespace flopinj {

class CounterLease {
 public:
  static constexpr uint64_t kIdleNs = 2'000'000'000;
  static constexpr uint64_t kLongNs = 60'000'000'000;
  static constexpr std::array<uint64_t, 3> kPauses{1'000'000'000, 4'000'000'000, 16'000'000'000};
  static constexpr auto& kRefusalPauses = Refusals::kPauses;

  void taken(uint64_t now_ns);
  void used(uint64_t now_ns);  // a window was opened or closed
  // No window for kIdleNs.
  bool idle(uint64_t now_ns) const;
  void released(uint64_t now_ns);
  // CUPTI refused to give them back to us. How long until the next attempt.
  uint64_t refused(uint64_t now_ns);
  bool may_be_taken(uint64_t now_ns) const;  // no pause

 private:
  mutable Mutex mutex_;
  uint64_t taken_ns_ FLOPINJ_GUARDED_BY(mutex_) = 0;
  uint64_t used_ns_ FLOPINJ_GUARDED_BY(mutex_) = 0;
  uint64_t paused_until_ns_ FLOPINJ_GUARDED_BY(mutex_) = 0;
  uint32_t short_leases_ FLOPINJ_GUARDED_BY(mutex_) = 0;  // in a row
  uint32_t refusals_ FLOPINJ_GUARDED_BY(mutex_) = 0;      // in a row
};

}  // namespace flopinj
