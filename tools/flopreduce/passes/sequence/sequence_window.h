// Launches by autograd sequence number, in a window of the last numbers: a number is looked up by
// its remainder, and a smaller one in its place is complete. Training steps repeat the groups of
// the step before, so that a number has no list of its own but the number of a group, and what a
// launch makes of a group is remembered.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace flopinj::reduce {

// An array that has memory only for pages that were used.
template <typename Value, size_t kSize, size_t kPage>
class Paged {
 public:
  static_assert(kSize % kPage == 0);

  Value& operator[](size_t index) {
    if (pages_.empty()) [[unlikely]]
      pages_.resize(kSize / kPage);
    auto& page = pages_[index / kPage];
    if (!page) page = std::make_unique<std::array<Value, kPage>>();
    return (*page)[index % kPage];
  }
  void prefetch(size_t index) const {
    if (pages_.empty()) return;
    if (const auto& page = pages_[index / kPage]) __builtin_prefetch(&(*page)[index % kPage], 1);
  }
  // Calls visit(Value&) for all values of pages that are there, in order.
  template <typename Visit>
  void for_each(Visit&& visit) {
    for (auto& page : pages_)
      if (page)
        for (Value& value : *page) visit(value);
  }

 private:
  std::vector<std::unique_ptr<std::array<Value, kPage>>> pages_;  // none before the first is used
};

// What windows of all kinds have in common.
struct SequenceNumbers {
  static constexpr size_t kWindow = 1U << 16;  // numbers; a step of a large model takes thousands
  static constexpr size_t kMaxInGroup = 256;
  static constexpr size_t kMaxGroups = 1U << 19;  // also of those that are not complete yet

  struct Launches {
    uint32_t place = 0, count = 0;  // the latter of one number: held at its largest value
    uint32_t calls = 0;             // that began among them
    bool operator==(const Launches&) const = default;
  };
  // What shares a number, in the order of the last launches.
  using Group = std::vector<Launches>;
  enum class Added : uint8_t { kYes, kLate, kFull };
  // What followed a group the last time.
  struct Next {
    Launches launches;
    uint32_t group = 0;
  };
  // Which group the same launches have made of one before.
  struct Made {
    uint32_t of = UINT32_MAX, group = 0;
  };
};

// What is known of a number, or of a group, beside its launches.
struct NothingElse {};

template <class OfNumber = NothingElse, class OfGroup = NothingElse>
class SequenceWindow : public SequenceNumbers {
 public:
  struct Complete {
    uint64_t sequence = 0;  // plus 1
    uint32_t group = 0;
    [[no_unique_address]] OfNumber known{};
  };

  // `sequence`: plus 1. `first`: what followed no launches the last time; one for each place.
  // `made`: by the same launches the last time; may be null. Calls note(OfNumber&) of the number
  // where there is room, and complete(const Complete&) for the number that was in this place
  // before.
  template <class Note, class Visit>
  Added add(uint64_t sequence, Launches launches, Next& first, Made* made, Note&& note,
            Visit&& complete) {
    // Numbers come in order, for one thread: those that follow are not in the cache.
    constexpr uint64_t kAhead = 8;
    slots_.prefetch((sequence + kAhead) % kWindow);
    Complete& slot = slots_[sequence % kWindow];
    if (slot.sequence > sequence) return Added::kLate;
    if (slot.sequence != sequence) {
      close(slot, complete);
      slot.sequence = sequence;
    }
    if (made != nullptr && made->of == slot.group) {
      slot.group = made->group;
    } else {
      const uint32_t group = after(slot.group, launches, first);
      if (group == kNoGroup) return Added::kFull;
      if (made != nullptr) *made = {slot.group, group};
      slot.group = group;
    }
    note(slot.known);
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
  OfGroup& known(uint32_t number) { return groups_[number].known; }

 private:
  static constexpr uint32_t kEmpty = 0, kNoGroup = UINT32_MAX;
  // As a list: the group without its last launches.
  struct Listed {
    uint32_t before = kEmpty;
    Launches last;
    Next next;
    uint64_t times = 0;
    [[no_unique_address]] OfGroup known{};
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
      return static_cast<size_t>(
          (hash ^ hash >> 32 ^ step.last.count ^ step.last.calls << 16) * kPrime >> 8);
    }
  };

  uint32_t after(uint32_t group, const Launches& more, Next& first) {
    const Next& next = group == kEmpty ? first : groups_[group].next;
    return next.launches == more ? next.group : look_up(group, more, first);
  }
  [[gnu::noinline]] uint32_t look_up(uint32_t group, const Launches& more, Next& first) {
    const uint32_t found = with(group, more);
    (group == kEmpty ? first : groups_[group].next) = {more, found};
    return found;
  }
  uint32_t with(uint32_t group, const Launches& more) {
    Group launches = this->group(group);
    const auto known = std::ranges::find(launches, more.place, &Launches::place);
    if (known == launches.end())
      return launches.size() < kMaxInGroup ? listed(group, more) : kNoGroup;
    known->count += std::min(more.count, UINT32_MAX - known->count);
    known->calls += std::min(more.calls, UINT32_MAX - known->calls);
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
  std::unordered_map<Step, uint32_t, Hash> number_of_;
};

}  // namespace flopinj::reduce
