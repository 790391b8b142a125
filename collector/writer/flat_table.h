// Values by CUPTI correlation id and graph node, in one block of memory: nothing is allocated for
// an entry. Linear probing; the table is at most half full.
#pragma once
#include <collector/base/hash.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace flopinj {

// Kernels of one graph launch share its correlation id; only the node differs.
struct CorrelationKey {
  uint32_t correlation = 0;
  uint64_t node = 0;
  bool operator==(const CorrelationKey&) const = default;
};

struct CorrelationHash {
  size_t operator()(const CorrelationKey& key) const noexcept {
    return static_cast<size_t>(hash_mix(hash_mix(0, key.node), key.correlation));
  }
};

template <class Value>
class FlatTable {
 public:
  struct Entry {
    uint32_t correlation = 0;
    bool used = false;
    uint64_t node = 0;
    Value value{};
    CorrelationKey key() const { return {correlation, node}; }
  };

  // Null: there is none. An entry stays where it is until the next insert() or erase().
  Entry* find(const CorrelationKey& key) {
    if (size_ == 0) return nullptr;
    Entry& entry = entries_[place_of(key)];
    return entry.used ? &entry : nullptr;
  }
  const Entry* find(const CorrelationKey& key) const {
    return const_cast<FlatTable*>(this)->find(key);
  }

  // The key's entry, which has `value` where it is new, and whether it is.
  std::pair<Entry*, bool> insert(const CorrelationKey& key, const Value& value) {
    if ((size_ + 1) * 2 > entries_.size()) grow();
    Entry& entry = entries_[place_of(key)];
    const bool is_new = !entry.used;
    if (is_new) {
      entry = {key.correlation, true, key.node, value};
      ++size_;
    }
    return {&entry, is_new};
  }

  void erase(Entry* entry) {
    constexpr size_t kKeptEmpty = size_t{1} << 14;  // what a burst took is given back
    const size_t mask = entries_.size() - 1;
    size_t hole = static_cast<size_t>(entry - entries_.data());
    for (size_t next = (hole + 1) & mask; entries_[next].used; next = (next + 1) & mask) {
      // An entry moves into the hole unless its search begins behind the hole.
      const size_t home = home_of(entries_[next].key());
      if (((next - home) & mask) < ((next - hole) & mask)) continue;
      entries_[hole] = std::move(entries_[next]);
      hole = next;
    }
    entries_[hole] = {};
    if (--size_ == 0 && entries_.size() > kKeptEmpty) entries_ = {};
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  size_t home_of(const CorrelationKey& key) const {
    return CorrelationHash{}(key) & (entries_.size() - 1);
  }
  // Of the key's entry, or of the free one where its search ends.
  size_t place_of(const CorrelationKey& key) const {
    size_t place = home_of(key);
    while (entries_[place].used && entries_[place].key() != key)
      place = (place + 1) & (entries_.size() - 1);
    return place;
  }
  void grow() {
    constexpr size_t kFirst = 64;
    std::vector<Entry> old(entries_.empty() ? kFirst : entries_.size() * 2);  // may throw
    old.swap(entries_);
    for (Entry& entry : old)
      if (entry.used) entries_[place_of(entry.key())] = std::move(entry);
  }

  std::vector<Entry> entries_;  // a power of two
  size_t size_ = 0;
};

}  // namespace flopinj
