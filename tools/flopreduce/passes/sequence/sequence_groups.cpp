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

void SequenceGroups::launches(const LaunchBatchReader& batch, const PatternTable& patterns,
                              DamageLog& damage) {
  batch.for_each_sequence(
      patterns, [&](uint32_t path, uint64_t sequence, bool graph, uint64_t count) {
        if (path == 0) return;  // outside all ranges: no operator
        if (sequence == 0 || graph) {
          if (without_.size() < kMaxPaths || without_.contains(path))
            without_.insert(path);
          else
            damage.add(Damage::kTableFull);
          return;
        }
        if (last_ == nullptr || last_->first != sequence)
          last_ = &*open_.try_emplace(open_.end(), sequence);  // most numbers are new ones
        add_launches(last_->second, {batch.thread(), batch.stream(), path, count}, damage);
        if (open_.size() <= kWindow) return;
        close(open_.begin()->second, damage);
        if (last_ == &*open_.begin()) last_ = nullptr;
        open_.erase(open_.begin());
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
  const auto known = times_.find(group);
  if (known != times_.end())
    add_saturating(known->second, times);
  else if (times_.size() < kMaxGroups)
    times_.emplace(group, times);
  else
    damage.add(Damage::kTableFull);
}

std::vector<trace::SequenceGroups> SequenceGroups::take(DamageLog& damage) {
  for (const auto& [sequence, group] : open_) close(group, damage);
  open_.clear();
  last_ = nullptr;
  std::vector<trace::SequenceGroups> messages;
  const auto room = [&]() -> trace::SequenceGroups& {
    if (messages.empty() ||
        messages.back().group_size() + messages.back().path_without_size() > kInMessage)
      messages.emplace_back();
    return messages.back();
  };
  for (const auto& [group, times] : times_) {
    trace::SequenceGroups& m = room();
    m.add_group(times);
    m.add_group(group.size());
    for (const NumberedLaunches& l : group)
      for (const uint64_t value :
           {uint64_t{l.thread}, uint64_t{l.stream}, uint64_t{l.path}, l.launches})
        m.add_group(value);
  }
  for (const uint32_t path : without_) room().add_path_without(path);
  return messages;
}

}  // namespace flopinj::reduce
