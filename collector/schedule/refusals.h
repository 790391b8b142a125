// CUPTI's refusals to measure, by device and metric group: which are tried again, and when.
//
// A refused group is tried again after kPauses, in turn. A refusal that nothing explains ends the
// group after the last of them. One that passes never does, and the last pause repeats: whoever
// holds the counters may let go of them, and the program may free memory, at any time.
//
// Threads: any; all functions lock.
#pragma once
#include <collector/identity/ids.h>
#include <collector/identity/mutex.h>

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace flopinj {

class Refusals {
 public:
  static constexpr std::array<uint64_t, 3> kPauses{1'000'000'000, 10'000'000'000, 60'000'000'000};

  enum class Kind : uint8_t { kUnexplained, kPassing };
  struct Answer {
    uint32_t attempt = 0;   // refusals of this group in a row, this one included
    uint64_t pause_ns = 0;  // 0: the group is not tried again
  };
  Answer refused(DeviceId, uint32_t group, Kind, uint64_t now_ns);
  // The group was measured: the next refusal is the first one again.
  void accepted(DeviceId, uint32_t group);

  // Groups whose pause is over; each is returned once. `waiting`: others are still paused.
  std::vector<std::pair<DeviceId, uint32_t>> take_due(uint64_t now_ns, bool& waiting);

 private:
  struct State {
    uint32_t attempts = 0;
    uint64_t until_ns = 0;  // 0: not paused
  };
  Mutex mutex_;
  std::map<std::pair<uint32_t, uint32_t>, State> groups_
      FLOPINJ_GUARDED_BY(mutex_);  // by device id and group
};

}  // namespace flopinj
