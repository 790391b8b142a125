// Launches and records that are not in the trace, by reason. Locks; cold.
#pragma once
#include <collector/base/mutex.h>
#include <collector/writer/thread_registry.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace flopinj {

inline constexpr size_t kMaxReasons = 64;  // the rest is counted as "other"

class LossCounts {
 public:
  using Reasons = std::map<std::string, uint64_t, std::less<>>;

  // Launches that never reached Collector::record(): they count as made and as dropped.
  void unrecorded(std::string_view reason, DeviceId, uint64_t by);
  // Launches that were recorded, and so counted as made already, but cannot be written.
  void lost(std::string_view reason, size_t device_slot, uint64_t by);
  // Launches beside which work may have run that is in no count.
  void unseen(std::string_view reason, uint64_t by);
  // Launches that no thread counted as made: their activity records showed them.
  void found(size_t device_slot, uint64_t by);

  struct Snapshot {
    std::array<uint64_t, kDeviceSlots> made{}, dropped{};
    Reasons dropped_reasons, unseen_reasons;
  };
  Snapshot snapshot() const;

 private:
  mutable Mutex mutex_;
  Snapshot counts_ FLOPINJ_GUARDED_BY(mutex_);
};

}  // namespace flopinj
