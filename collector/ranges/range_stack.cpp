#include <collector/ranges/range_stack.h>
#include <operator_range.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <new>

namespace flopinj {

// The children this thread asked for last, direct-mapped. Names are compared in full with the
// table's own copy.
struct RangeStack::ChildCache {
  static constexpr size_t kSlots = 256;
  struct Slot {
    PathId parent;
    StringId domain;
    Child child;
    const std::string* name = nullptr;
  };
  std::array<Slot, kSlots> slots;

  Slot& slot_of(PathId parent, StringId domain, std::string_view key) {
    const uint64_t place = (uint64_t{parent.value} << 32) | domain.value;
    return slots[XXH3_64bits_withSeed(key.data(), key.size(), place) % kSlots];
  }
};

// Ranges this thread was told by a hash, direct-mapped: by the place that they were pushed at, and
// by whether they had a number inside of an autograd node, which their keys say.
struct RangeStack::KnownCache {
  static constexpr size_t kSlots = 2'048;
  struct Slot {
    uint64_t hash = 0;
    PathId parent;
    bool own_number = false;
    bool evaluates_node = false;
    Child child;  // without a name: the slot is empty
  };
  std::array<Slot, kSlots> slots;

  Slot& slot_of(uint64_t hash, PathId parent) {
    constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 / the golden ratio
    return slots[((hash ^ parent.value) * kOdd) >> 32 & (kSlots - 1)];
  }
};

RangeStack::RangeStack(RangePathTable& table, const ProcessRanges& process)
    : table_(table), process_(process) {}
RangeStack::~RangeStack() {
  if (own_step_ != 0) process_.steps()->abandon(own_step_);
}

RangeStack::Child RangeStack::child(PathId parent, StringId domain, std::string_view key) noexcept {
  if (!cache_) cache_.reset(new (std::nothrow) ChildCache);
  ChildCache::Slot* const slot = cache_ ? &cache_->slot_of(parent, domain, key) : nullptr;
  if (slot != nullptr && slot->name != nullptr && slot->parent == parent &&
      slot->domain == domain && *slot->name == key)
    return slot->child;
  const bool step = process_.steps() != nullptr && process_.steps()->is_step(key);
  if (step && Steps::has_number(key)) return {step_path(parent, domain, key), true, false, nullptr};
  const auto found = table_.find_or_add_child(parent, domain, key, RangeKind::kThread);
  const Child child{found.path, step, is_operator_range(key), found.name};
  if (slot != nullptr && found.name != nullptr) *slot = {parent, domain, child, found.name};
  return child;
}

PathId RangeStack::step_path(PathId parent, StringId domain, std::string_view key) noexcept {
  try {
    return table_.child(parent, domain, Steps::path_name(key), RangeKind::kThread);
  } catch (const std::bad_alloc&) {
    return table_.child(parent, domain, key, RangeKind::kThread);
  }
}

uint32_t RangeStack::level(StringId domain) const noexcept {
  uint32_t result = 0;
  for (size_t i = 0; i < depth_; ++i) result += open_[i].domain == domain;
  const auto counted = beyond_.find(domain.value);
  return counted == beyond_.end() ? result : result + counted->second;
}

inline bool RangeStack::only_counted(StringId domain) {
  if (depth_ < kMaxDepth && (beyond_.empty() || !beyond_.contains(domain.value))) return false;
  too_deep_.store(too_deep() + 1, std::memory_order_relaxed);  // one writer
  ++beyond_[domain.value];
  return true;
}

inline RangeStack::Open& RangeStack::next_slot() {
  if (depth_ == open_.size()) open_.emplace_back();
  Open& slot = open_[depth_];
  slot.known = nullptr;
  return slot;
}

inline void RangeStack::mark_if_own_number(Open& slot) const {
  if (!in_node() || slot.sequence_plus_1 == 0 || !is_operator_range(slot.text)) return;
  const Open& around = open_[depth_ - 1];
  if (!around.evaluates_node || !is_node_of(slot.text, around.key())) mark_own_number(slot.text);
}

inline void RangeStack::enter(Open& slot, StringId domain, const Child& child) noexcept {
  slot.domain = domain;
  slot.in_node = in_node() || slot.evaluates_node;
  const bool inside = in_call() && !slot.evaluates_node;
  slot.in_call = inside || child.is_operator;
  call_begins_ = call_begins_ || (child.is_operator && !inside);
  slot.timed = !slot.in_call && depth_ == timed_ && timed_ < kTimedDepth;
  if (slot.timed) {
    note(host_ticks());
    ++timed_;
  }
  slot.path = child.path;
  slot.step = 0;
  if (child.is_step && own_step_ == 0) {
    slot.step = own_step_ = process_.steps()->open(slot.path, false);
    if (own_step_ != 0) step_ = own_step_;
  }
  ++depth_;
  top_ = slot.path;
  stale_ = true;
  if (slot.sequence_plus_1 != 0) sequence_ = slot.sequence_plus_1;
}

// Where there is no memory to hold a range, its pop will close the one around it in its domain, or
// nothing.
int RangeStack::push(StringId domain, std::string_view name) noexcept {
  const int before = static_cast<int>(level(domain));
  try {
    if (only_counted(domain)) return before;
    const PathId below = path();
    Open& slot = next_slot();
    slot.sequence_plus_1 = parse_range_name(name, slot.text);
    slot.evaluates_node = evaluates_node(slot.text);
    mark_if_own_number(slot);
    enter(slot, domain, child(below, domain, slot.text));
  } catch (const std::exception&) {
  }
  return before;
}

bool RangeStack::push_known(uint64_t hash, uint64_t sequence_plus_1) noexcept {
  try {
    if (only_counted({})) return true;
    const PathId below = path();
    if (!known_) return false;
    const KnownCache::Slot& known = known_->slot_of(hash, below);
    const bool own_number = sequence_plus_1 != 0 && in_node();
    if (known.child.name == nullptr || known.hash != hash || known.parent != below ||
        known.own_number != own_number)
      return false;
    Open& slot = next_slot();
    slot.known = known.child.name;
    slot.sequence_plus_1 = sequence_plus_1;
    slot.evaluates_node = known.evaluates_node;
    enter(slot, {}, known.child);
  } catch (const std::exception&) {
  }
  return true;
}

void RangeStack::push_named(uint64_t hash, uint64_t sequence_plus_1,
                            std::string_view name) noexcept {
  try {
    if (only_counted({})) return;
    const PathId below = path();
    Open& slot = next_slot();
    const uint64_t in_name = parse_range_name(name, slot.text);
    const bool whole = slot.text.size() == name.size();  // nothing was cut out
    slot.sequence_plus_1 = sequence_plus_1 != 0 ? sequence_plus_1 : in_name;
    slot.evaluates_node = evaluates_node(slot.text);
    const bool own_number = sequence_plus_1 != 0 && in_node();
    mark_if_own_number(slot);
    const Child found = child(below, {}, slot.text);
    if (!known_) known_.reset(new (std::nothrow) KnownCache);
    if (known_ && whole && found.name != nullptr)
      known_->slot_of(hash, below) = {hash, below, own_number, slot.evaluates_node, found};
    enter(slot, {}, found);
  } catch (const std::exception&) {
  }
}

inline bool RangeStack::pop_counted(StringId domain) {
  if (beyond_.empty()) return false;
  const auto counted = beyond_.find(domain.value);
  if (counted == beyond_.end()) return false;
  if (--counted->second == 0) beyond_.erase(counted);
  return true;
}

int RangeStack::pop(StringId domain) noexcept {
  const int after = static_cast<int>(level(domain)) - 1;
  if (after < 0) {
    unmatched_pops_.store(unmatched_pops() + 1, std::memory_order_relaxed);  // one writer
    return after;
  }
  if (pop_counted(domain)) return after;
  size_t at = depth_;
  while (open_[--at].domain != domain) {
  }
  leave(at);
  return after;
}

void RangeStack::pop_known() noexcept {
  if (depth_ > 0 && beyond_.empty() && open_[depth_ - 1].domain == StringId{})
    leave(depth_ - 1);
  else
    pop({});
}

void RangeStack::note_pause(uint64_t ticks) noexcept {
  if (ticks - last_ticks_ > pause_.length()) pause_ = {path_below(timed_), last_ticks_, ticks};
}

void RangeStack::leave(size_t at) noexcept {
  if (open_[at].timed) {
    note(host_ticks());
    --timed_;
  }
  if (open_[at].step != 0) {
    process_.steps()->close(open_[at].step);
    own_step_ = 0;
    step_ = process_step_;  // until path() sees what that has changed
  }
  // What comes after a node is still its own.
  if (at > 0 && open_[at].sequence_plus_1 != 0 && open_[at - 1].evaluates_node &&
      is_node_of(open_[at].key(), open_[at - 1].key()))
    open_[at - 1].sequence_plus_1 = open_[at].sequence_plus_1;
  // Usually the last one. Where domains' ranges overlap, those above move down by one.
  const bool last = at + 1 == depth_;
  if (!last)
    std::rotate(open_.begin() + static_cast<ptrdiff_t>(at),
                open_.begin() + static_cast<ptrdiff_t>(at) + 1,
                open_.begin() + static_cast<ptrdiff_t>(depth_));
  --depth_;
  stale_ = true;
  if (last)
    top_ = path_below(depth_);
  else
    rebuild(at);
  sequence_ = 0;
  for (size_t i = depth_; i > 0 && sequence_ == 0; --i) sequence_ = open_[i - 1].sequence_plus_1;
}

void RangeStack::rebuild(size_t from) noexcept {
  for (size_t i = from; i < depth_; ++i)
    open_[i].path = child(path_below(i), open_[i].domain, open_[i].key()).path;
  top_ = path_below(depth_);
}

void RangeStack::rebase() noexcept {
  // The version first: a change after this load is seen by the next call.
  seen_version_ = process_.version();
  base_ = process_.path();
  process_step_ = process_.steps() != nullptr ? process_.steps()->of_process() : 0;
  step_ = own_step_ != 0 ? own_step_ : process_step_;
  stale_ = true;
  rebuild(0);
}

void RangeStack::choose() noexcept {
  static_assert(kMaxDepth <= RangeFilter::kMostOpen);
  std::array<RangeFilter::Open, kMaxDepth> open;
  for (size_t i = 0; i < depth_; ++i) open[i] = {open_[i].domain, &open_[i].key()};
  chosen_ = process_.chosen() || (process_.filter() != nullptr &&
                                  process_.filter()->chosen_by_thread(open.data(), depth_));
}

}  // namespace flopinj
