#include <collector/writer/loss_counts.h>

namespace flopinj {
namespace {

void count(LossCounts::Reasons& reasons, std::string_view reason, uint64_t by) {
  auto at = reasons.find(reason);
  if (at == reasons.end() && reasons.size() >= kMaxReasons) reason = "other";
  if (at == reasons.end()) at = reasons.try_emplace(std::string(reason)).first;
  at->second += by;
}

}  // namespace

void LossCounts::unrecorded(std::string_view reason, DeviceId device, uint64_t by) {
  if (by == 0) return;
  const MutexLock lock(mutex_);
  count(counts_.dropped_reasons, reason, by);
  counts_.made[device_slot(device)] += by;
  counts_.dropped[device_slot(device)] += by;
}

void LossCounts::lost(std::string_view reason, size_t slot, uint64_t by) {
  if (by == 0) return;
  const MutexLock lock(mutex_);
  count(counts_.dropped_reasons, reason, by);
  counts_.dropped[slot] += by;
}

void LossCounts::unseen(std::string_view reason, uint64_t by) {
  if (by == 0) return;
  const MutexLock lock(mutex_);
  count(counts_.unseen_reasons, reason, by);
}

void LossCounts::found(size_t slot, uint64_t by) {
  const MutexLock lock(mutex_);
  counts_.made[slot] += by;
}

LossCounts::Snapshot LossCounts::snapshot() const {
  const MutexLock lock(mutex_);
  return counts_;
}

}  // namespace flopinj
