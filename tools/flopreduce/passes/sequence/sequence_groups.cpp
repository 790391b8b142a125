#include "passes/sequence/sequence_groups.h"

#include <algorithm>

#include "support/wide.h"

namespace flopinj::reduce {
namespace {

constexpr size_t kMaxPaths = 1U << 18;  // as many as a trace can have
constexpr int kInMessage = 1 << 16;     // numbers of at most 10 bytes: far below kMaxPacketBytes

template <typename Group>
void add_launches(Group& group, const NumberedLaunches& more, DamageLog& damage) {
  const auto same = std::find_if(group.begin(), group.end(), [&](const NumberedLaunches& l) {
    return l.thread == more.thread && l.stream == more.stream && l.path == more.path;
  });
  if (same != group.end()) {
    add_saturating(same->launches, more.launches);
    std::rotate(same, same + 1, group.end());  // the last one now
  } else if (group.size() < SequenceGroups::kMaxInGroup) {
    group.push_back(more);
  } else {
    damage.add(Damage::kTableFull);
  }
}

// Threads write their batches when they are full: in which order of threads and streams says
// nothing.
bool before(const NumberedLaunches& a, const NumberedLaunches& b) {
  return a.thread != b.thread ? a.thread < b.thread : a.stream < b.stream;
}

}  // namespace

size_t SequenceGroups::Hash::operator()(const SequenceGroup& group) const {
  constexpr uint64_t kPrime = 0x9E3779B97F4A7C15ULL;
  uint64_t hash = group.size();
  for (const NumberedLaunches& l : group)
    hash = (hash ^ hash >> 32 ^ (uint64_t{l.path} << 32 | l.thread << 16 | l.stream)) * kPrime +
           l.launches;
  return static_cast<size_t>(hash ^ hash >> 29);
}

void SequenceGroups::launches(uint32_t thread, uint32_t stream, const LaunchList& list,
                              DamageLog& damage) {
  list.for_each_call([&](uint32_t path, uint64_t sequence, bool graph, uint64_t count) {
    if (path == 0) return;  // outside all ranges: no operator
    if (sequence == 0 || graph) {
      if (without_.size() < kMaxPaths || without_.contains(path))
        without_.insert(path);
      else
        damage.add(Damage::kTableFull);
      return;
    }
    const NumberedLaunches launches{thread, stream, path, count};
    Slot& slot = open_[sequence % kWindow];
    if (slot.sequence > sequence) {  // too late to be joined
      closing_.assign(1, launches);
      return close(closing_, 1, damage);
    }
    if (slot.sequence != sequence) {
      close(slot.group, damage);
      slot.group.clear();
      slot.sequence = sequence;
    }
    add_launches(slot.group, launches, damage);
  });
}

bool SequenceGroups::add(const trace::SequenceGroups& message, DamageLog& damage) {
  for (const uint32_t path : message.path_without())
    if (without_.size() < kMaxPaths) without_.insert(path);
  return for_each_group(message,
                        [&](uint64_t times, SequenceGroup& group) { close(group, times, damage); });
}

void SequenceGroups::close(const OpenGroup& open, DamageLog& damage) {
  closing_.assign(open.begin(), open.end());
  close(closing_, 1, damage);
}

void SequenceGroups::close(SequenceGroup& group, uint64_t times, DamageLog& damage) {
  if (group.empty()) return;
  if (!std::is_sorted(group.begin(), group.end(), before))
    std::stable_sort(group.begin(), group.end(), before);
  if (uint64_t* const all = times_.at(group))
    add_saturating(*all, times);
  else
    damage.add(Damage::kTableFull);
}

std::vector<trace::SequenceGroups> SequenceGroups::take(DamageLog& damage) {
  open_.for_each([&](const Slot& slot) { close(slot.group, damage); });
  open_ = {};
  std::vector<trace::SequenceGroups> messages;
  const auto room = [&]() -> trace::SequenceGroups& {
    if (messages.empty() ||
        messages.back().group_size() + messages.back().path_without_size() > kInMessage)
      messages.emplace_back();
    return messages.back();
  };
  auto all = times_.take();
  std::ranges::sort(
      all, {}, [](const auto& each) -> const auto& { return each.first; });
  for (const auto& [group, times] : all) {
    trace::SequenceGroups& m = room();
    m.add_group(times);
    m.add_group(group.size());
    for (const NumberedLaunches& l : group)
      for (const uint64_t value :
           {uint64_t{l.thread}, uint64_t{l.stream}, uint64_t{l.path}, l.launches})
        m.add_group(value);
  }
  std::vector<uint32_t> without(without_.begin(), without_.end());
  std::ranges::sort(without);
  for (const uint32_t path : without) room().add_path_without(path);
  return messages;
}

}  // namespace flopinj::reduce
