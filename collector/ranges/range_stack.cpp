#include <collector/ranges/range_stack.h>
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

RangeStack::RangeStack(RangePathTable& table, const ProcessRanges& process)
    : table_(table), process_(process) {}
RangeStack::~RangeStack() {
  if (own_step_ != 0) process_.steps()->abandon(own_step_);
}

RangeStack::Child RangeStack::child(PathId parent, StringId domain, std::string_view key) noexcept {
  const auto is_step = [&] {
    return process_.steps() != nullptr && process_.steps()->is_step(key);
  };
  if (!cache_) cache_.reset(new (std::nothrow) ChildCache);
  if (!cache_) return {table_.child(parent, domain, key, RangeKind::kThread), is_step()};
  ChildCache::Slot& slot = cache_->slot_of(parent, domain, key);
  if (slot.name != nullptr && slot.parent == parent && slot.domain == domain && *slot.name == key)
    return slot.child;
  const auto found = table_.find_or_add_child(parent, domain, key, RangeKind::kThread);
  const Child child{found.path, is_step()};
  if (found.name != nullptr) slot = {parent, domain, child, found.name};
  return child;
}

uint32_t RangeStack::level(StringId domain) const noexcept {
  uint32_t result = 0;
  for (size_t i = 0; i < depth_; ++i) result += open_[i].domain == domain;
  const auto counted = beyond_.find(domain.value);
  return counted == beyond_.end() ? result : result + counted->second;
}

int RangeStack::push(StringId domain, std::string_view name) noexcept {
  const int before = static_cast<int>(level(domain));
  try {
    if (depth_ == kMaxDepth || beyond_.contains(domain.value)) {
      too_deep_.store(too_deep() + 1, std::memory_order_relaxed);  // one writer
      ++beyond_[domain.value];
      return before;
    }
    const PathId below = path();
    if (depth_ == open_.size()) open_.emplace_back();
    Open& slot = open_[depth_];
    slot.sequence_plus_1 = parse_range_name(name, slot.key);
    slot.evaluates_node = evaluates_node(slot.key);
    const Open* around = depth_ > 0 ? &open_[depth_ - 1] : nullptr;
    const bool in_node = around != nullptr && around->in_node;
    slot.in_node = in_node || slot.evaluates_node;
    if (in_node && slot.sequence_plus_1 != 0 && is_operator(slot.key) &&
        !(around->evaluates_node && is_node_of(slot.key, around->key)))
      mark_own_number(slot.key);
    slot.domain = domain;
    const Child found = child(below, domain, slot.key);
    slot.path = found.path;
    slot.step = 0;
    if (found.is_step && own_step_ == 0) {
      slot.step = own_step_ = process_.steps()->open(slot.path, false);
      if (own_step_ != 0) step_ = own_step_;
    }
    ++depth_;
    top_ = slot.path;
    stale_ = true;
    if (slot.sequence_plus_1 != 0) sequence_ = slot.sequence_plus_1;
  } catch (const std::exception&) {
    // No memory to hold the range: its pop will close the one around it in this domain, or nothing.
  }
  return before;
}

int RangeStack::pop(StringId domain) noexcept {
  const int after = static_cast<int>(level(domain)) - 1;
  if (after < 0) {
    unmatched_pops_.store(unmatched_pops() + 1, std::memory_order_relaxed);  // one writer
    return after;
  }
  if (const auto counted = beyond_.find(domain.value); counted != beyond_.end()) {
    if (--counted->second == 0) beyond_.erase(counted);
    return after;
  }
  size_t at = depth_;
  while (open_[--at].domain != domain) {
  }
  if (open_[at].step != 0) {
    process_.steps()->close(open_[at].step);
    own_step_ = 0;
    step_ = process_step_;  // until path() sees what that has changed
  }
  // What comes after a node is still its own.
  if (at > 0 && open_[at].sequence_plus_1 != 0 && open_[at - 1].evaluates_node &&
      is_node_of(open_[at].key, open_[at - 1].key))
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
  return after;
}

void RangeStack::rebuild(size_t from) noexcept {
  for (size_t i = from; i < depth_; ++i)
    open_[i].path = child(path_below(i), open_[i].domain, open_[i].key).path;
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
  for (size_t i = 0; i < depth_; ++i) open[i] = {open_[i].domain, &open_[i].key};
  chosen_ = process_.chosen() || (process_.filter() != nullptr &&
                                  process_.filter()->chosen_by_thread(open.data(), depth_));
}

}  // namespace flopinj
