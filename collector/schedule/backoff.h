// When all that was refused, or let go of, is tried again: a device's metric groups, and its
// counters as a whole.
//
// Pauses of a kind come in turn. Where the kind ends, the one after the last is for good: a refusal
// that nothing explains. Else the last one repeats: whoever holds the counters may let go of them,
// and the program may free memory, at any time; and a program that wants a window now and then
// takes the counters seldom.
//
// Threads: any; all functions lock.
#pragma once
#include <collector/base/mutex.h>
#include <collector/identity/ids.h>

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace flopinj {

class Backoff {
 public:
  enum class Kind : uint8_t {
    kUnexplained,  // CUPTI refuses, and nothing says why
    kPassing,      // it refuses for what will pass
    kGivenBack     // we have let go of counters that we had
  };
  struct Pauses {
    std::array<uint64_t, 3> ns;
    bool ends;
  };
  static constexpr uint64_t kSecond = 1'000'000'000;
  static constexpr std::array<Pauses, 3> kPauses{{
      // by Kind
      {{kSecond, 10 * kSecond, 60 * kSecond}, true},
      {{kSecond, 10 * kSecond, 60 * kSecond}, false},
      {{kSecond, 4 * kSecond, 16 * kSecond}, false},
  }};
  // In place of a group: the device's counters.
  static constexpr uint32_t kCounters = std::numeric_limits<uint32_t>::max();

  struct Answer {
    uint32_t attempt = 0;   // pauses in a row, this one included
    uint64_t pause_ns = 0;  // 0: it is not tried again
  };
  Answer pause(DeviceId, uint32_t group, Kind, uint64_t now_ns);
  // It went well: the next pause is the first one again.
  void accepted(DeviceId, uint32_t group);

  bool over(DeviceId, uint32_t group, uint64_t now_ns);  // no pause
  // Groups whose pause is over; each is returned once. `waiting`: others are still paused.
  std::vector<std::pair<DeviceId, uint32_t>> take_due(uint64_t now_ns, bool& waiting);

 private:
  struct State {
    uint32_t attempts = 0;
    uint64_t until_ns = 0;  // 0: not paused
  };
  Mutex mutex_;
  std::map<std::pair<uint32_t, uint32_t>, State> paused_
      FLOPINJ_GUARDED_BY(mutex_);  // by device id and group
};

}  // namespace flopinj
