#include <collector/base/assert.h>
#include <collector/base/hash.h>
#include <collector/base/zero_pages.h>
#include <collector/writer/correlation_table.h>
#include <collector/writer/launch_merger.h>
#include <collector/writer/ring_queue.h>

#include <array>
#include <new>
#include <unordered_map>
#include <vector>

namespace flopinj {
namespace {

using Origin = LaunchMerger::Origin;

struct OriginHash {
  size_t operator()(const Origin& o) const noexcept {
    const uint64_t h = hash_mix(o.device.value, hash_pair(o.thread.value, o.stream.value));
    return static_cast<size_t>(h);
  }
};

// Of launches in windows that are to have a time: what it is checked by, on the trace's clock.
struct Check {
  bool in_window = false;
  uint64_t called_ns = 0;
};

struct Pending {
  TimedLaunch launch;
  CorrelationKey key;
  Check check;
  uint64_t order = 0;  // counts launches of all origins
  uint64_t born = 0;   // releases before it came
  bool waiting = false;
};

using Queue = RingQueue<Pending>;

struct Reference {
  Queue* queue = nullptr;
  uint64_t number = 0;
  Pending& operator*() const { return (*queue)[number]; }
};

struct LateLaunch {
  TallyRow row;
  Check check;
};

struct EarlyTime {
  uint64_t start_ns = 0, end_ns = 0, born = 0;
};

struct Found {
  Origin origin;
  TimedLaunch launch;
};

// Keys seen lately; one that comes back is found unless others took its place.
class RecentKeys {
 public:
  void add(const CorrelationKey& key) { slot(key) = key; }
  bool contains(const CorrelationKey& key) const {
    return keys_ && (*keys_)[CorrelationHash{}(key) % kSlots] == key;
  }

 private:
  static constexpr size_t kSlots = 1U << 15;
  CorrelationKey& slot(const CorrelationKey& key) {
    if (!keys_.make()) throw std::bad_alloc();
    return (*keys_)[CorrelationHash{}(key) % kSlots];
  }
  ZeroPages<std::array<CorrelationKey, kSlots>> keys_;
};

// CUPTI gives zeros for a kernel it could not time.
bool usable(uint64_t start_ns, uint64_t end_ns, const Check& check = {}) {
  return start_ns != 0 && end_ns >= start_ns && start_ns + kMostEarlyNs >= check.called_ns;
}

Check check_of(const LaunchRecord& record) {
  if ((record.flags & LaunchRecord::kNotBefore) == 0) return {};
  return {true, record.called};
}

uint64_t called_for_trace(const LaunchRecord& record) {
  return (record.flags & LaunchRecord::kCallUntold) != 0 ? 0 : record.called;
}

}  // namespace

struct LaunchMerger::State {
  State(bool expect, bool slow)
      : expect_times(expect),
        windows_slow(slow),
        early(kMaxEarlyTimes),
        late(kMaxLate),
        conditional(kMaxConditional) {}

  void add(const Origin&, const TimedLaunch&, const CorrelationKey&, const Check&,
           bool can_be_timed);
  void set_time(Pending&, uint64_t start_ns, uint64_t end_ns);
  void add_late(const LateLaunch&, const KernelTime&);
  void add_found(const Found&, uint64_t start_ns, uint64_t end_ns);
  void add_early(const CorrelationKey&, const KernelTime&);
  bool release_front(const Origin&, Queue&, const Release&);

  bool expect_times, windows_slow;
  std::unordered_map<Origin, Queue, OriginHash> queues;
  FlatTable<Reference> waiting;
  CorrelationTable<EarlyTime> early;
  CorrelationTable<LateLaunch> late;
  // Further times of nodes whose first one is in `early`.
  std::unordered_multimap<CorrelationKey, EarlyTime, CorrelationHash> early_again;
  CorrelationTable<Found> conditional;  // what an execution of such a node is a launch of
  std::vector<Found> found;             // to be handed out at the next release
  RecentKeys timed;
  std::vector<TallyRow> late_rows;  // matched, to be handed out at the next release
  uint64_t releases = 0, launches = 0, pending = 0;
  uint64_t records = 0, unmatched = 0, duplicates = 0, unusable = 0;
  // By whether they are in windows: that are known to have a time or none, and that have none.
  struct Settled {
    uint64_t launches = 0, timeless = 0;
  };
  std::array<Settled, 2> settled{};
};

void LaunchMerger::State::set_time(Pending& p, uint64_t start_ns, uint64_t end_ns) {
  p.waiting = false;
  Settled& of_kind = settled[p.check.in_window ? 1 : 0];
  ++of_kind.launches;
  if (!usable(start_ns, end_ns, p.check)) {
    ++of_kind.timeless;
    if (!p.check.in_window) ++unusable;
    return;
  }
  p.launch.start_ns = start_ns;
  p.launch.end_ns = end_ns;
}

void LaunchMerger::State::add(const Origin& origin, const TimedLaunch& launch,
                              const CorrelationKey& key, const Check& check, bool can_be_timed) {
  Queue& queue = queues[origin];
  const auto [entry, number] = queue.push_back();
  Pending& p = *entry;
  p.launch = launch;
  p.key = key;
  p.check = check;
  p.order = launches++;
  p.born = releases;
  ++pending;
  if (!expect_times || !can_be_timed) return;
  if (!late.empty()) late.take(key);  // the id is in use again: the earlier launch's time is lost
  if (!early.empty()) {
    if (const auto time = early.take(key)) {
      timed.add(key);
      return set_time(p, time->start_ns, time->end_ns);
    }
  }
  p.waiting = true;
  const Reference self{&queue, number};
  const auto [waits, is_new] = waiting.insert(key, self);
  if (is_new) return;
  (*waits->value).waiting = false;
  waits->value = self;
}

void LaunchMerger::State::add_late(const LateLaunch& launch, const KernelTime& time) {
  if (!usable(time.start_ns, time.end_ns, launch.check)) {
    if (!launch.check.in_window) ++unusable;
    return;
  }
  --settled[launch.check.in_window ? 1 : 0].timeless;
  late_rows.push_back(launch.row);
  late_rows.back().add_time(time.end_ns - time.start_ns);
}

void LaunchMerger::State::add_found(const Found& of, uint64_t start_ns, uint64_t end_ns) {
  if (found.size() >= kMaxFound) return void(++unmatched);
  found.push_back(of);
  if (!usable(start_ns, end_ns)) return void(++unusable);
  found.back().launch.start_ns = start_ns;
  found.back().launch.end_ns = end_ns;
}

// Nodes of conditional bodies run several times under one key.
void LaunchMerger::State::add_early(const CorrelationKey& key, const KernelTime& time) {
  const EarlyTime early_time{time.start_ns, time.end_ns, releases};
  if (key.node != 0 && early.find(key) != nullptr && early_again.size() < kMaxEarlyTimes)
    early_again.emplace(key, early_time);
  else
    early.insert(key, early_time, [this](const EarlyTime&) { ++unmatched; });
}

bool LaunchMerger::State::release_front(const Origin& origin, Queue& queue, const Release& out) {
  Pending& p = queue.front();
  if (p.waiting) {
    if (auto* const waits = waiting.find(p.key); waits != nullptr) waiting.erase(waits);
    TallyRow row;
    row.thread = origin.thread;
    row.stream = origin.stream;
    row.signature = p.launch.signature;
    row.path = p.launch.path;
    row.windowed = p.launch.windowed;
    row.in_step = p.launch.step != 0;
    late.insert(p.key, {row, p.check}, [](const LateLaunch&) {});
    Settled& of_kind = settled[p.check.in_window ? 1 : 0];
    ++of_kind.launches, ++of_kind.timeless;
  }
  const TimedLaunch launch = p.launch;
  queue.pop_front();
  --pending;
  out(origin, launch);
  return queue.empty();
}

LaunchMerger::LaunchMerger(bool expect_times, bool windows_slow)
    : state_(std::make_unique<State>(expect_times, windows_slow)) {}
LaunchMerger::~LaunchMerger() = default;

void LaunchMerger::launch(const Origin& origin, const LaunchRecord& record, const Pause& pause) {
  thread_.check();
  FLOPINJ_ASSERT(!full());
  TimedLaunch launch;
  launch.signature = record.signature;
  launch.path = record.path;
  launch.sequence_plus_1 = record.sequence_plus_1;
  launch.call = (record.flags & LaunchRecord::kCallBegins) != 0;
  launch.windowed = state_->windows_slow && (record.flags & LaunchRecord::kWindowed) != 0;
  launch.step = record.step;
  launch.called_ns = called_for_trace(record);
  launch.pause = pause;
  state_->add(origin, launch, {record.correlation, 0}, check_of(record), record.correlation != 0);
}

void LaunchMerger::graph_launch(const Origin& origin, const LaunchRecord& record,
                                std::span<const GraphNode> nodes, const Pause& pause) {
  thread_.check();
  FLOPINJ_ASSERT(!full());
  for (const GraphNode& node : nodes) {
    TimedLaunch launch;
    launch.signature = node.signature;
    launch.path = node.path ? node.path : record.path;
    launch.sequence_plus_1 =
        node.sequence_plus_1 != 0 ? node.sequence_plus_1 : record.sequence_plus_1;
    launch.graph = true;
    launch.called_ns = called_for_trace(record);
    if (&node == nodes.data()) launch.pause = pause;
    launch.windowed = state_->windows_slow && (record.flags & LaunchRecord::kWindowed) != 0;
    launch.step = record.step;
    const bool known = node.node != 0 || nodes.size() == 1;
    state_->add(origin, launch, {record.correlation, node.node}, check_of(record),
                known && record.correlation != 0);
  }
}

bool LaunchMerger::conditional(const Origin& origin, const LaunchRecord& record,
                               std::span<const GraphNode> nodes) {
  State& s = *state_;
  bool all = true;
  for (const GraphNode& node : nodes) {
    if (!s.expect_times || node.node == 0 || record.correlation == 0) {
      all = false;
      continue;
    }
    Found of{origin, {}};
    of.launch.signature = node.signature;
    of.launch.path = node.path ? node.path : record.path;
    of.launch.sequence_plus_1 =
        node.sequence_plus_1 != 0 ? node.sequence_plus_1 : record.sequence_plus_1;
    of.launch.graph = of.launch.found = true;
    of.launch.step = record.step;
    of.launch.called_ns = called_for_trace(record);
    const CorrelationKey key{record.correlation, node.node};
    s.conditional.insert(key, of, [](const Found&) {});
    if (const auto time = s.early.take(key)) s.add_found(of, time->start_ns, time->end_ns);
    const auto [first, last] = s.early_again.equal_range(key);
    for (auto at = first; at != last; ++at) s.add_found(of, at->second.start_ns, at->second.end_ns);
    s.early_again.erase(first, last);
  }
  return all;
}

void LaunchMerger::times(std::span<const KernelTime> times) {
  thread_.check();
  State& s = *state_;
  s.records += times.size();
  for (const KernelTime& time : times) {
    const CorrelationKey key{time.correlation, time.graph_node};
    if (auto* const waits = s.waiting.find(key); waits != nullptr) {
      s.set_time(*waits->value, time.start_ns, time.end_ns);
      s.waiting.erase(waits);
      s.timed.add(key);
    } else if (const auto launch = s.late.take(key)) {
      s.add_late(*launch, time);
      s.timed.add(key);
    } else if (const Found* const of = s.conditional.find(key)) {
      s.add_found(*of, time.start_ns, time.end_ns);
    } else if (s.timed.contains(key)) {
      ++s.duplicates;
    } else {
      s.add_early(key, time);
    }
  }
}

bool LaunchMerger::full() const { return state_->pending >= kMaxPending; }
size_t LaunchMerger::pending() const { return state_->pending; }

void LaunchMerger::release(uint32_t max_age, bool all, const Release& out, const Late& late) {
  thread_.check();
  State& s = *state_;
  // When full, everything but the youngest half goes.
  const uint64_t oldest_kept = full() ? s.launches - kMaxPending / 2 : 0;
  for (auto at = s.queues.begin(); at != s.queues.end();) {
    // One that has had no launch since the last release is let go, with its memory.
    if (at->second.empty()) {
      at = s.queues.erase(at);
      continue;
    }
    for (bool empty = false; !empty;) {
      const Pending& p = at->second.front();
      const bool aged = all || s.releases - p.born >= max_age || p.order < oldest_kept;
      if (p.waiting && !aged) break;
      empty = s.release_front(at->first, at->second, out);
    }
    ++at;
  }
  for (const TallyRow& row : s.late_rows) late(row);
  s.late_rows.clear();
  for (const Found& one : s.found) out(one.origin, one.launch);
  s.found.clear();
  s.early.expire(
      [&](const EarlyTime& t) {
        return all || s.releases - t.born >= uint64_t{max_age} + kEarlyAge;
      },
      [&](const EarlyTime&) { ++s.unmatched; });
  s.unmatched += std::erase_if(s.early_again, [&](const auto& entry) {
    return all || s.releases - entry.second.born >= uint64_t{max_age} + kEarlyAge;
  });
  ++s.releases;
}

void LaunchMerger::clear() {
  release(
      0, true, [](const Origin&, const TimedLaunch&) {}, [](const TallyRow&) {});
}

uint64_t LaunchMerger::activity_records() const { return state_->records; }
uint64_t LaunchMerger::duplicates() const { return state_->duplicates; }
uint64_t LaunchMerger::unusable() const { return state_->unusable; }
uint64_t LaunchMerger::timeless_in_windows() const {
  const auto& [others, in_windows] = state_->settled;
  const bool most = 2 * in_windows.timeless > in_windows.launches;
  const bool few = 4 * others.timeless <= others.launches;
  return most && few ? in_windows.timeless : 0;
}
uint64_t LaunchMerger::activity_unmatched() const { return state_->unmatched; }

}  // namespace flopinj
