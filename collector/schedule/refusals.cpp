#include <collector/schedule/refusals.h>

#include <algorithm>

namespace flopinj {

Refusals::Answer Refusals::refused(DeviceId device, uint32_t group, Kind kind, uint64_t now_ns) {
  const MutexLock lock(mutex_);
  State& state = groups_[{device.value, group}];
  ++state.attempts;
  state.until_ns = 0;
  if (kind == Kind::kUnexplained && state.attempts > kPauses.size()) return {state.attempts, 0};
  const uint64_t pause = kPauses[std::min<size_t>(state.attempts, kPauses.size()) - 1];
  state.until_ns = now_ns + pause;
  return {state.attempts, pause};
}

void Refusals::accepted(DeviceId device, uint32_t group) {
  const MutexLock lock(mutex_);
  groups_.erase({device.value, group});
}

std::vector<std::pair<DeviceId, uint32_t>> Refusals::take_due(uint64_t now_ns, bool& waiting) {
  const MutexLock lock(mutex_);
  std::vector<std::pair<DeviceId, uint32_t>> due;
  waiting = false;
  for (auto& [key, state] : groups_) {
    if (state.until_ns == 0) continue;
    if (state.until_ns > now_ns) {
      waiting = true;
      continue;
    }
    due.emplace_back(DeviceId{key.first}, key.second);
    state.until_ns = 0;
  }
  return due;
}

}  // namespace flopinj
