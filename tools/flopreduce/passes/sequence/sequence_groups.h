// What a summary keeps of autograd sequence numbers: which launches share one. The numbers
// themselves do not matter, and a training step repeats the groups of the step before, so they are
// counted.
#pragma once
#include <cstdint>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "flop_trace.pb.h"
#include "passes/sequence/launch_places.h"
#include "passes/sequence/sequence_window.h"
#include "reader/damage.h"
#include "reader/launch_batch.h"

namespace flopinj::reduce {

// Launches of one thread on one stream in one range, as the trace's own ids name them.
struct NumberedLaunches {
  uint32_t thread = 0, stream = 0, path = 0;
  uint64_t launches = 0, calls = 0;
  auto operator<=>(const NumberedLaunches&) const = default;
};
// By thread and stream; of one, in the order of their last launches.
using SequenceGroup = std::vector<NumberedLaunches>;

// Of one recording.
class SequenceGroups {
 public:
  static constexpr size_t kMaxInGroup = SequenceNumbers::kMaxInGroup;
  // The range path of an entry without launches: behind those of the number before it something
  // without a number ran on that thread and stream.
  static constexpr uint32_t kWithout = 0;
  static constexpr size_t kMaxKnown = 1U << 20;  // calls of patterns, of all lanes

  void launches(const LaunchBatchReader& batch, const PatternCalls& patterns, DamageLog& damage);
  // Those of a summary. False where they are malformed.
  bool add(const trace::SequenceGroups& message, DamageLog& damage);
  // All of it, in messages that fit a packet. Ends the groups.
  std::vector<trace::SequenceGroups> take(DamageLog& damage);

 private:
  struct OnPlace {
    SequenceNumbers::Next first;
    bool without_number = false;
  };
  // A call of the patterns on a lane.
  struct KnownCall {
    uint32_t place = 0;  // none: not asked for yet
    SequenceNumbers::Made made;
  };
  struct OfLane {
    uint64_t last = 0;     // number
    bool without = false;  // something without a number ran behind it
    void numbered(uint64_t number) {
      last = number;
      without = false;
    }
    std::vector<KnownCall> calls = {};  // by PatternCalls::number(); none if there are many
  };
  using Places = LaunchPlaces<OnPlace, OfLane>;
  void call(Places::Lane& lane, const LaunchCall& call, DamageLog& damage);
  uint64_t calls(Places::Lane& lane, std::span<const PatternCalls::Call> calls, KnownCall* known,
                 uint64_t last, bool graph, DamageLog& damage);
  void without_number(Places::Lane& lane, DamageLog& damage);
  // Apart: a structure of three would be written in parts and read at once, for each launch.
  void add(uint64_t number, uint32_t place, uint32_t count, uint32_t calls,
           SequenceNumbers::Made* made, DamageLog& damage);
  void count(const SequenceNumbers::Group& group, uint64_t times, DamageLog& damage);
  void count(SequenceGroup group, uint64_t times, DamageLog& damage);

  Places places_;
  size_t known_calls_ = 0;  // of all lanes
  SequenceWindow<> window_;
  std::vector<std::pair<SequenceGroup, uint64_t>> groups_;  // times; some more than once
  std::unordered_set<uint32_t> without_;  // range paths of which some launches have no number
};

// Calls visit(times, group) for each group; false where the message is malformed.
template <typename Visit>
bool for_each_group(const trace::SequenceGroups& message, Visit&& visit) {
  constexpr int kHead = 2;
  constexpr int kEach = 4;
  SequenceGroup group;
  int entry = 0;  // of all groups
  for (int at = 0; at < message.group_size();) {
    if (message.group_size() - at < kHead) return false;
    const uint64_t times = message.group(at);
    const uint64_t size = message.group(at + 1);
    at += kHead;
    if (size == 0 || size > SequenceGroups::kMaxInGroup ||
        size > static_cast<uint64_t>(message.group_size() - at) / kEach)
      return false;
    group.clear();
    for (uint64_t i = 0; i < size; ++i, at += kEach, ++entry) {
      for (int k = 0; k < kEach - 1; ++k)
        if (message.group(at + k) > UINT32_MAX) return false;
      group.push_back({static_cast<uint32_t>(message.group(at)),
                       static_cast<uint32_t>(message.group(at + 1)),
                       static_cast<uint32_t>(message.group(at + 2)), message.group(at + 3),
                       entry < message.calls_size() ? message.calls(entry) : 0});
    }
    visit(times, group);
  }
  return true;
}

}  // namespace flopinj::reduce
