#include <collector/schedule/counter_lease.h>

#include <algorithm>

namespace flopinj {
namespace {

uint64_t pause_after(uint32_t times, const std::array<uint64_t, 3>& pauses) {
  return pauses[std::min<size_t>(times, pauses.size()) - 1];
}

}  // namespace

void CounterLease::taken(uint64_t now_ns) {
  const MutexLock lock(mutex_);
  taken_ns_ = used_ns_ = now_ns;
  refusals_ = 0;
}

void CounterLease::used(uint64_t now_ns) {
  const MutexLock lock(mutex_);
  used_ns_ = std::max(used_ns_, now_ns);
}

bool CounterLease::idle(uint64_t now_ns) const {
  const MutexLock lock(mutex_);
  return now_ns >= used_ns_ + kIdleNs;
}

void CounterLease::released(uint64_t now_ns) {
  const MutexLock lock(mutex_);
  short_leases_ = used_ns_ - taken_ns_ >= kLongNs ? 1 : short_leases_ + 1;
  paused_until_ns_ = now_ns + pause_after(short_leases_, kPauses);
}

uint64_t CounterLease::refused(uint64_t now_ns) {
  const MutexLock lock(mutex_);
  const uint64_t pause = pause_after(++refusals_, kRefusalPauses);
  paused_until_ns_ = now_ns + pause;
  return pause;
}

bool CounterLease::may_be_taken(uint64_t now_ns) const {
  const MutexLock lock(mutex_);
  return now_ns >= paused_until_ns_;
}

}  // namespace flopinj
