// Launches by autograd sequence number, in a window of the last numbers: a number is looked up by
// its remainder, and a smaller one in its place is complete. Training steps repeat the groups of
// the step before, so that a number has no list of its own but the number of a group, and what a
// launch makes of a group is remembered.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "passes/sequence/backward_passes.h"
#include "support/paged.h"

namespace flopinj::reduce {

// Values by key, asked for in an order that repeats: training makes the same launches again and
// again. So the value after this one is mostly the one that came after it the last time.
template <class Key, class Value, class Hash>
class RepeatingTable {
 public:
  using Entry = std::pair<Key, Value>;

  explicit RepeatingTable(size_t most) : most_(most) {}
  // Null where the key is new and there is no room. Valid until the next call.
  Value* at(const Key& key) {
    const size_t guess = last_ < next_.size() ? next_[last_] : 0;
    if (guess < entries_.size() && entries_[guess].first == key) [[likely]] {
      last_ = guess;
      return &entries_[guess].second;
    }
    return look_up(key);
  }
  // The place among entries() of what at() gave last.
  size_t last() const { return last_; }
  const std::vector<Entry>& entries() const { return entries_; }  // by first use
  // The same, which leaves none.
  std::vector<Entry> take() {
    next_.clear();
    places_.clear();
    last_ = 0;
    return std::exchange(entries_, {});
  }

 private:
  [[gnu::noinline]] Value* look_up(const Key& key) {
    auto found = places_.find(key);
    if (found == places_.end()) {
      if (entries_.size() >= most_) return nullptr;
      found = places_.emplace(key, static_cast<uint32_t>(entries_.size())).first;
      entries_.emplace_back(key, Value{});
      next_.push_back(0);
    }
    next_[last_] = found->second;
    last_ = found->second;
    return &entries_[last_].second;
  }

  size_t most_;
  size_t last_ = 0;
  std::vector<Entry> entries_;
  std::vector<uint32_t> next_;  // of each entry, the one asked for after it the last time
  std::unordered_map<Key, uint32_t, Hash> places_;
};

// Where launches come from, by ids of a trace.
struct LaunchPlace {
  uint32_t thread = 0, stream = 0, path = 0;
  bool operator==(const LaunchPlace&) const = default;
  struct Hash {
    size_t operator()(const LaunchPlace& place) const {
      constexpr uint64_t kPrime = 0x9E3779B97F4A7C15ULL;
      const uint64_t hash = ((uint64_t{place.thread} << 32 | place.stream) * kPrime) ^ place.path;
      return static_cast<size_t>((hash ^ hash >> 32) * kPrime >> 8);
    }
  };
};
// Places as numbers, with what is known of each.
template <class Value>
using LaunchPlaces = RepeatingTable<LaunchPlace, Value, LaunchPlace::Hash>;

class SequenceWindow {
 public:
  static constexpr size_t kWindow = 1U << 16;  // numbers; a step of a large model takes thousands
  static constexpr size_t kMaxInGroup = 256;
  static constexpr size_t kMaxGroups = 1U << 19;  // also of those that are not complete yet

  struct Launches {
    uint32_t place = 0, count = 0;  // the latter of one number: held at its largest value
    bool operator==(const Launches&) const = default;
  };
  // What shares a number, in the order of the last launches.
  using Group = std::vector<Launches>;
  struct Complete {
    uint64_t sequence = 0;  // plus 1
    uint32_t pass = BackwardPasses::kNone;
    uint32_t group = 0;
  };
  enum class Added : uint8_t { kYes, kLate, kFull };

  // `sequence`: plus 1. pass() is asked for where there is room, and may be kNone. Calls
  // complete(const Complete&) for the number that was in this place before.
  template <class Pass, class Visit>
  Added add(uint64_t sequence, Launches launches, Pass&& pass, Visit&& complete) {
    Complete& slot = slots_[sequence % kWindow];
    if (slot.sequence > sequence) return Added::kLate;
    if (slot.sequence != sequence) {
      close(slot, complete);
      slot.sequence = sequence;
    }
    const uint32_t group = after(slot.group, launches);
    if (group == kNoGroup) return Added::kFull;
    slot.group = group;
    const uint32_t of = pass();
    if (slot.pass == BackwardPasses::kNone) slot.pass = of;
    return Added::kYes;
  }
  // Completes all that are left.
  template <class Visit>
  void end(Visit&& complete) {
    slots_.for_each([&](Complete& slot) { close(slot, complete); });
  }
  // Groups count from 1.
  uint32_t groups() const { return static_cast<uint32_t>(groups_.size()); }
  Group group(uint32_t number) const {
    Group launches;
    for (; number != kEmpty; number = groups_[number].before)
      launches.push_back(groups_[number].last);
    std::reverse(launches.begin(), launches.end());
    return launches;
  }
  // Numbers that were complete with it.
  uint64_t times(uint32_t number) const { return groups_[number].times; }
  // For SequencePass: of the node that all of a group have in common.
  BackwardPasses::Own& own(uint32_t number) { return groups_[number].own; }

 private:
  static constexpr uint32_t kEmpty = 0, kNoGroup = UINT32_MAX;
  struct Next {
    Launches launches;
    uint32_t group = kNoGroup;
  };
  // As a list: the group without its last launches.
  struct Listed {
    uint32_t before = kEmpty;
    Launches last;
    Next next;  // what followed it the last time
    uint64_t times = 0;
    BackwardPasses::Own own;
  };
  struct Step {
    uint32_t before;
    Launches last;
    bool operator==(const Step&) const = default;
  };
  struct Hash {
    size_t operator()(const Step& step) const {
      constexpr uint64_t kPrime = 0x9E3779B97F4A7C15ULL;
      const uint64_t hash = (uint64_t{step.before} << 32 | step.last.place) * kPrime;
      return static_cast<size_t>((hash ^ hash >> 32 ^ step.last.count) * kPrime >> 8);
    }
  };

  uint32_t after(uint32_t group, const Launches& more) {
    if (group != kEmpty || more.place < first_.size()) {
      const Next& next = group == kEmpty ? first_[more.place] : groups_[group].next;
      if (next.launches == more && next.group != kNoGroup) [[likely]]
        return next.group;
    }
    return look_up(group, more);
  }
  [[gnu::noinline]] uint32_t look_up(uint32_t group, const Launches& more) {
    const uint32_t found = with(group, more);
    if (group == kEmpty && more.place >= first_.size()) first_.resize(size_t{more.place} + 1);
    (group == kEmpty ? first_[more.place] : groups_[group].next) = {more, found};
    return found;
  }
  uint32_t with(uint32_t group, const Launches& more) {
    Group launches = this->group(group);
    const auto known = std::ranges::find(launches, more.place, &Launches::place);
    if (known == launches.end())
      return launches.size() < kMaxInGroup ? listed(group, more) : kNoGroup;
    known->count += std::min(more.count, UINT32_MAX - known->count);
    std::rotate(known, known + 1, launches.end());  // the last one now
    uint32_t all = kEmpty;
    for (const Launches& l : launches)
      if (all != kNoGroup) all = listed(all, l);
    return all;
  }
  uint32_t listed(uint32_t before, const Launches& last) {
    const auto known = number_of_.find({before, last});
    if (known != number_of_.end()) return known->second;
    if (groups_.size() >= kMaxGroups) return kNoGroup;
    groups_.push_back({before, last, {}, 0, {}});
    return number_of_[{before, last}] = groups() - 1;
  }
  template <class Visit>
  void close(Complete& slot, Visit&& complete) {
    if (slot.group == kEmpty) return;
    ++groups_[slot.group].times;
    complete(static_cast<const Complete&>(slot));
    slot = {};
  }

  // A short recording uses few of its pages.
  Paged<Complete, kWindow, 64> slots_;
  std::vector<Listed> groups_ = std::vector<Listed>(1);
  std::vector<Next> first_;  // by place: of groups that it begins
  std::unordered_map<Step, uint32_t, Hash> number_of_;
};

}  // namespace flopinj::reduce
