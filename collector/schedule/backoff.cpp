#include <collector/schedule/backoff.h>

#include <algorithm>

namespace flopinj {

Backoff::Answer Backoff::pause(DeviceId device, uint32_t group, Kind kind, uint64_t now_ns) {
  const MutexLock lock(mutex_);
  const Pauses& pauses = kPauses[static_cast<size_t>(kind)];
  State& state = paused_[{device.value, group}];
  ++state.attempts;
  state.until_ns = 0;
  if (pauses.ends && state.attempts > pauses.ns.size()) return {state.attempts, 0};
  const uint64_t pause = pauses.ns[std::min<size_t>(state.attempts, pauses.ns.size()) - 1];
  state.until_ns = now_ns + pause;
  return {state.attempts, pause};
}

void Backoff::accepted(DeviceId device, uint32_t group) {
  const MutexLock lock(mutex_);
  paused_.erase({device.value, group});
}

bool Backoff::over(DeviceId device, uint32_t group, uint64_t now_ns) {
  const MutexLock lock(mutex_);
  const auto paused = paused_.find({device.value, group});
  return paused == paused_.end() || paused->second.until_ns <= now_ns;
}

std::vector<std::pair<DeviceId, uint32_t>> Backoff::take_due(uint64_t now_ns, bool& waiting) {
  const MutexLock lock(mutex_);
  std::vector<std::pair<DeviceId, uint32_t>> due;
  waiting = false;
  for (auto& [key, state] : paused_) {
    if (state.until_ns == 0) continue;
    if (state.until_ns > now_ns) {
      waiting = true;
      continue;
    }
    if (key.second != kCounters) due.emplace_back(DeviceId{key.first}, key.second);
    state.until_ns = 0;
  }
  return due;
}

}  // namespace flopinj
