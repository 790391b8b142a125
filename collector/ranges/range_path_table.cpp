#include <collector/base/hash.h>
#include <collector/base/mutex.h>
#include <collector/ranges/range_path_table.h>

#include <deque>
#include <unordered_map>

namespace flopinj {
namespace {

struct ChildKey {
  PathId parent;
  StringId domain, name;
  RangeKind kind;
  bool operator==(const ChildKey&) const = default;
};
struct ChildKeyHash {
  size_t operator()(const ChildKey& k) const noexcept {
    const uint64_t h = hash_mix(0, hash_pair(k.parent.value, k.name.value));
    return hash_mix(h, hash_pair(static_cast<uint8_t>(k.kind), k.domain.value));
  }
};

// Domain and name of a range under its parent.
struct Range {
  PathId parent;
  StringId domain;
  RangeKind kind;
};

}  // namespace

struct RangePathTable::State {
  struct Node {
    PathDefinition definition;
    uint32_t exact_children = 0, generalised_children = 0;
    PathId overflow;  // its overflow child
  };
  mutable SharedMutex mutex;
  // By path id; the first is the root, which has no definition.
  std::deque<Node> nodes FLOPINJ_GUARDED_BY(mutex){1};
  std::unordered_map<ChildKey, PathId, ChildKeyHash> children FLOPINJ_GUARDED_BY(mutex);
  // By string id - 1; a deque: elements stay where they are.
  std::deque<std::string> strings FLOPINJ_GUARDED_BY(mutex);
  std::unordered_map<std::string_view, StringId> string_ids FLOPINJ_GUARDED_BY(mutex);
  uint64_t string_bytes FLOPINJ_GUARDED_BY(mutex) = 0;
  uint64_t range_name_bytes FLOPINJ_GUARDED_BY(mutex) = 0;
  uint32_t ordinary_paths FLOPINJ_GUARDED_BY(mutex) = 0;
  std::atomic<uint64_t> cut{0}, generalised{0}, overflowed{0};

  StringId find_string(std::string_view text) const FLOPINJ_REQUIRES_SHARED(mutex) {
    const auto it = string_ids.find(text);
    return it == string_ids.end() ? StringId{} : it->second;
  }
  PathId find_child(const Range& range, StringId name) const FLOPINJ_REQUIRES_SHARED(mutex) {
    const auto it = children.find({range.parent, range.domain, name, range.kind});
    return it == children.end() ? PathId{} : it->second;
  }
  // A child of that very name, if there is one.
  Child find_exact(const Range& range, std::string_view key) const FLOPINJ_REQUIRES_SHARED(mutex) {
    const StringId name = find_string(key);
    if (!name && !key.empty()) return {};
    const PathId path = find_child(range, name);
    if (!path) return {};
    return {path, name ? &strings[name.value - 1] : nullptr};
  }

  // These may throw bad_alloc, leaving the tables as they were.
  StringId add_string(std::string_view text) FLOPINJ_REQUIRES(mutex);
  PathId add_node(const PathDefinition& definition) FLOPINJ_REQUIRES(mutex);
  // 0: no room.
  PathId add_child(const Range& range, std::string_view name) FLOPINJ_REQUIRES(mutex);
  Child add(const Range& range, std::string_view key) FLOPINJ_REQUIRES(mutex);
  PathId overflow_of(PathId parent) FLOPINJ_REQUIRES(mutex);
};

StringId RangePathTable::State::add_string(std::string_view text) {
  if (text.empty()) return {};
  if (const StringId known = find_string(text)) return known;
  if (strings.size() >= kMaxStrings || string_bytes + text.size() > kMaxAllStringBytes) return {};
  strings.emplace_back(text);
  const StringId id{static_cast<uint32_t>(strings.size())};
  try {
    string_ids.emplace(strings.back(), id);
  } catch (...) {
    strings.pop_back();
    throw;
  }
  string_bytes += text.size();
  return id;
}

PathId RangePathTable::State::add_node(const PathDefinition& definition) {
  const PathId id{static_cast<uint32_t>(nodes.size())};
  nodes.push_back(Node{definition, 0, 0, {}});
  nodes.back().definition.id = id;
  return id;
}

PathId RangePathTable::State::add_child(const Range& range, std::string_view name) {
  if (ordinary_paths >= kMaxPaths) return {};
  StringId string = find_string(name);
  if (!string && !name.empty()) {
    if (range_name_bytes + name.size() > kMaxAllRangeNameBytes) return {};
    string = add_string(name);
    if (!string) return {};
    range_name_bytes += name.size();
  }
  const ChildKey key{range.parent, range.domain, string, range.kind};
  const auto slot = children.emplace(key, PathId{}).first;
  try {
    slot->second = add_node({{}, range.parent, string, range.domain, range.kind});
  } catch (...) {
    children.erase(slot);
    throw;
  }
  ++ordinary_paths;
  return slot->second;
}

PathId RangePathTable::State::overflow_of(PathId parent) {
  if (!nodes[parent.value].overflow) {
    const PathId path = add_node({{}, parent, {}, {}, RangeKind::kOverflow});
    nodes[parent.value].overflow = path;
  }
  return nodes[parent.value].overflow;
}

RangePathTable::Child RangePathTable::State::add(const Range& range, std::string_view key) {
  if (const Child known = find_exact(range, key); known.path) return known;
  Node& parent = nodes[range.parent.value];
  if (parent.exact_children < kMaxChildren) {
    if (const PathId fresh = add_child(range, key)) {
      ++parent.exact_children;
      return {fresh, find_exact(range, key).name};
    }
  } else {
    const std::string pattern = generalise(key);
    PathId path = find_exact(range, pattern).path;
    if (!path && parent.generalised_children < kMaxChildren) {
      path = add_child(range, pattern);
      if (path) ++parent.generalised_children;
    }
    if (path) {
      if (pattern != key) generalised.fetch_add(1, std::memory_order_relaxed);
      return {path, nullptr};
    }
  }
  const PathId path = overflow_of(range.parent);
  overflowed.fetch_add(1, std::memory_order_relaxed);
  return {path, nullptr};
}

RangePathTable::RangePathTable() : state_(std::make_unique<State>()) {}
RangePathTable::~RangePathTable() = default;

RangePathTable::Child RangePathTable::find_or_add_child(PathId parent, StringId domain,
                                                        std::string_view key,
                                                        RangeKind kind) noexcept {
  State& state = *state_;
  const Range range{parent, domain, kind};
  const bool cut = key.size() > kMaxNameBytes;
  if (cut) {
    key = cut_utf8(key, kMaxNameBytes);
    state.cut.fetch_add(1, std::memory_order_relaxed);
  }
  try {
    {
      const ReaderLock lock(state.mutex);
      if (state.nodes[parent.value].definition.kind == RangeKind::kOverflow) {
        state.overflowed.fetch_add(1, std::memory_order_relaxed);
        return {parent, nullptr};
      }
      if (const Child known = state.find_exact(range, key); known.path)
        return {known.path, cut ? nullptr : known.name};
    }
    const WriterLock lock(state.mutex);
    const Child added = state.add(range, key);
    return {added.path, cut ? nullptr : added.name};
  } catch (const std::exception&) {
    state.overflowed.fetch_add(1, std::memory_order_relaxed);
    return {parent, nullptr};
  }
}

PathId RangePathTable::child(PathId parent, StringId domain, std::string_view key,
                             RangeKind kind) noexcept {
  return find_or_add_child(parent, domain, key, kind).path;
}

StringId RangePathTable::intern_string(std::string_view text) noexcept {
  text = cut_utf8(text, kMaxStringBytes);
  try {
    {
      const ReaderLock lock(state_->mutex);
      if (const StringId known = state_->find_string(text)) return known;
    }
    const WriterLock lock(state_->mutex);
    return state_->add_string(text);
  } catch (const std::exception&) {
    return {};
  }
}

std::vector<PathDefinition> RangePathTable::paths_after(PathId after) const {
  const ReaderLock lock(state_->mutex);
  std::vector<PathDefinition> result;
  for (size_t i = size_t{after.value} + 1; i < state_->nodes.size(); ++i)
    result.push_back(state_->nodes[i].definition);
  return result;
}

std::vector<StringDefinition> RangePathTable::strings_after(StringId after) const {
  const ReaderLock lock(state_->mutex);
  std::vector<StringDefinition> result;
  for (size_t i = after.value; i < state_->strings.size(); ++i)
    result.push_back({StringId{static_cast<uint32_t>(i + 1)}, state_->strings[i]});
  return result;
}

uint64_t RangePathTable::names_cut() const { return state_->cut.load(std::memory_order_relaxed); }
uint64_t RangePathTable::names_generalised() const {
  return state_->generalised.load(std::memory_order_relaxed);
}
uint64_t RangePathTable::ranges_overflowed() const {
  return state_->overflowed.load(std::memory_order_relaxed);
}

}  // namespace flopinj
