// Where launches come from, as numbers, with what is known of each place.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace flopinj::reduce {

// By ids of a trace.
struct LaunchPlace {
  uint32_t thread = 0, stream = 0, path = 0;
};

template <class OfPlace, class OfLane>
class LaunchPlaces {
 public:
  static constexpr size_t kMaxPlaces = 1U << 20, kMaxLanes = 1U << 16;
  // Of all lanes: as many as 64 have that launch in every range path.
  static constexpr size_t kMaxPaths = 1U << 24;

  // What a thread launches on a stream.
  struct Lane {
    uint32_t thread = 0, stream = 0;
    OfLane known = {};
    std::vector<uint32_t> numbers;  // of places, by path; kNone: not asked for yet
  };

  // Null where there are too many. Stays where it is.
  Lane* lane(uint32_t thread, uint32_t stream) {
    const std::pair ids{thread, stream};
    if (lanes_.size() >= kMaxLanes && !lanes_.contains(ids)) return nullptr;
    return &lanes_.try_emplace(ids, Lane{thread, stream, {}, {}}).first->second;
  }
  // Of the place; kNone where there are too many.
  uint32_t number(Lane& lane, uint32_t path) {
    const uint32_t known = path < lane.numbers.size() ? lane.numbers[path] : kNone;
    return known != kNone ? known : add(lane, path);
  }
  static constexpr uint32_t kNone = 0;
  const LaunchPlace& place(uint32_t number) const { return places_[number]; }
  // Valid until the next number.
  OfPlace& operator[](uint32_t number) { return known_[number]; }
  // Calls visit(Lane&) for each, and forgets all.
  template <typename Visit>
  void end(Visit&& visit) {
    for (auto& entry : lanes_) visit(entry.second);
    *this = {};
  }

 private:
  [[gnu::noinline]] uint32_t add(Lane& lane, uint32_t path) {
    if (path >= lane.numbers.size()) {
      const size_t more = path + size_t{1} - lane.numbers.size();
      if (paths_ + more > kMaxPaths) return kNone;
      paths_ += more;
      lane.numbers.resize(lane.numbers.size() + more);
    }
    if (places_.size() >= kMaxPlaces) return kNone;
    places_.push_back({lane.thread, lane.stream, path});
    known_.emplace_back();
    return lane.numbers[path] = static_cast<uint32_t>(places_.size() - 1);
  }

  std::map<std::pair<uint32_t, uint32_t>, Lane> lanes_;  // by thread and stream
  size_t paths_ = 0;
  std::vector<LaunchPlace> places_{1};
  std::vector<OfPlace> known_{1};
};

}  // namespace flopinj::reduce
