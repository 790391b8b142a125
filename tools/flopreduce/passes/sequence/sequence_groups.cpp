#include "passes/sequence/sequence_groups.h"

#include <algorithm>
#include <utility>

#include "support/wide.h"
#include "tables/id_map.h"

namespace flopinj::reduce {
namespace {

constexpr size_t kMaxPaths = 1U << 18;  // as many as a trace can have
constexpr size_t kMaxGroups = 1U << 19;
constexpr int kInMessage = 1 << 16;  // numbers of at most 10 bytes: far below kMaxPacketBytes

// Threads write their batches when they are full: in which order of threads and streams says
// nothing.
bool before(const NumberedLaunches& a, const NumberedLaunches& b) {
  return a.thread != b.thread ? a.thread < b.thread : a.stream < b.stream;
}

bool is_in_range(uint32_t path) { return path - 1 < IdMap::kMaxId; }

}  // namespace

void SequenceGroups::launches(const LaunchBatchReader& batch, const PatternCalls& patterns,
                              DamageLog& damage) {
  auto* const lane = places_.lane(batch.thread(), batch.stream());
  if (lane == nullptr) return damage.add(Damage::kTableFull);
  auto& known = lane->known.calls;
  if (known.empty() && known_calls_ + patterns.size() <= kMaxKnown) {
    known.resize(patterns.size());
    known_calls_ += known.size();
  }
  batch.for_each_call(
      patterns, [&](const LaunchCall& call) { this->call(*lane, call, damage); },
      [&](std::span<const PatternCalls::Call> calls, uint64_t last, bool graph) {
        KnownCall* const same =
            graph || known.empty() ? nullptr : &known[patterns.number(calls[0])];
        return this->calls(*lane, calls, same, last, graph, damage);
      });
}

// `known`, of the same calls, may be null. Returns the last number.
uint64_t SequenceGroups::calls(Places::Lane& lane, std::span<const PatternCalls::Call> calls,
                               KnownCall* known, uint64_t last, bool graph, DamageLog& damage) {
  for (const PatternCalls::Call& call : calls) {
    last += call.step;
    KnownCall* const same = known != nullptr ? known++ : nullptr;
    if (same == nullptr || same->place == Places::kNone || last == 0) {
      this->call(lane, whole_call(call, last, graph), damage);
      if (same != nullptr && call.numbered && is_in_range(call.path))
        same->place = places_.number(lane, call.path);
      continue;
    }
    lane.known.numbered(last);
    add(last, same->place, call.launches(), call.calls, &same->made, damage);
  }
  return last;
}

inline void SequenceGroups::call(Places::Lane& lane, const LaunchCall& call, DamageLog& damage) {
  if (!call.graph && call.sequence == 0) without_number(lane, damage);
  if (!is_in_range(call.path)) return;  // no operator
  const uint32_t number = places_.number(lane, call.path);
  if (number == places_.kNone) return damage.add(Damage::kTableFull);
  OnPlace& on = places_[number];
  if (call.sequence == 0 || call.graph) {
    if (std::exchange(on.without_number, true)) return;
    if (without_.size() < kMaxPaths || without_.contains(call.path))
      without_.insert(call.path);
    else
      damage.add(Damage::kTableFull);
    return;
  }
  lane.known.numbered(call.sequence);
  add(call.sequence, number, call.launches, call.calls, nullptr, damage);
}

// Once behind each number.
void SequenceGroups::without_number(Places::Lane& lane, DamageLog& damage) {
  if (lane.known.last == 0 || std::exchange(lane.known.without, true)) return;
  if (const uint32_t number = places_.number(lane, kWithout); number != places_.kNone)
    add(lane.known.last, number, 0, 0, nullptr, damage);
}

inline void SequenceGroups::add(uint64_t number, uint32_t place, uint32_t count, uint32_t calls,
                                SequenceNumbers::Made* made, DamageLog& damage) {
  const auto added = window_.add(
      number, {place, count, calls}, places_[place].first, made, [](NothingElse&) {},
      [](const auto&) {});
  if (added == SequenceNumbers::Added::kLate && count > 0)
    this->count(SequenceNumbers::Group{{place, count, calls}}, 1, damage);
  else if (added == SequenceNumbers::Added::kFull)
    damage.add(Damage::kTableFull);
}

bool SequenceGroups::add(const trace::SequenceGroups& message, DamageLog& damage) {
  for (const uint32_t path : message.path_without())
    if (without_.size() < kMaxPaths) without_.insert(path);
  return for_each_group(
      message, [&](uint64_t times, const SequenceGroup& group) { count(group, times, damage); });
}

void SequenceGroups::count(const SequenceNumbers::Group& group, uint64_t times, DamageLog& damage) {
  SequenceGroup named;
  for (const SequenceNumbers::Launches& l : group) {
    const LaunchPlace& place = places_.place(l.place);
    named.push_back({place.thread, place.stream, place.path, l.count, l.calls});
  }
  count(std::move(named), times, damage);
}

void SequenceGroups::count(SequenceGroup group, uint64_t times, DamageLog& damage) {
  if (groups_.size() >= kMaxGroups) return damage.add(Damage::kTableFull);
  if (!std::is_sorted(group.begin(), group.end(), before))
    std::stable_sort(group.begin(), group.end(), before);
  groups_.emplace_back(std::move(group), times);
}

std::vector<trace::SequenceGroups> SequenceGroups::take(DamageLog& damage) {
  window_.end([](const auto&) {});
  for (uint32_t group = 1; group < window_.groups(); ++group)
    if (window_.times(group) > 0) count(window_.group(group), window_.times(group), damage);
  std::ranges::sort(groups_);
  std::vector<trace::SequenceGroups> messages;
  const auto room = [&]() -> trace::SequenceGroups& {
    if (messages.empty() || messages.back().group_size() + messages.back().path_without_size() +
                                    messages.back().calls_size() >
                                kInMessage)
      messages.emplace_back();
    return messages.back();
  };
  for (size_t i = 0; i < groups_.size();) {
    const SequenceGroup& group = groups_[i].first;
    uint64_t times = 0;
    for (; i < groups_.size() && groups_[i].first == group; ++i)
      add_saturating(times, groups_[i].second);
    trace::SequenceGroups& m = room();
    m.add_group(times);
    m.add_group(group.size());
    for (const NumberedLaunches& l : group) {
      for (const uint64_t value :
           {uint64_t{l.thread}, uint64_t{l.stream}, uint64_t{l.path}, l.launches})
        m.add_group(value);
      m.add_calls(l.calls);
    }
  }
  std::vector<uint32_t> without(without_.begin(), without_.end());
  std::ranges::sort(without);
  for (const uint32_t path : without) room().add_path_without(path);
  return messages;
}

}  // namespace flopinj::reduce
