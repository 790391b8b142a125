// What waits for its other half: values by CUPTI correlation id and graph node, the oldest let go
// past a bound.
#pragma once
#include <collector/identity/hash.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>

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

// Entries leave by take(), by age, or, oldest first, past `capacity`. The order is kept in a queue
// of keys whose entries may be outdated: the serial number shows it.
template <class Value>
class CorrelationTable {
 public:
  explicit CorrelationTable(size_t capacity) : capacity_(capacity) {}

  // `evict(value)` is called for an older entry of the same key and for the oldest ones past the
  // bound.
  template <class Evict>
  void insert(const CorrelationKey& key, const Value& value, Evict&& evict) {
    auto [at, inserted] = entries_.try_emplace(key, Entry{value, serial_});
    if (!inserted) {
      evict(at->second.value);
      at->second = Entry{value, serial_};
    }
    order_.emplace_back(key, serial_++);
    while (order_.size() > capacity_) pop(evict);
  }

  const Value* find(const CorrelationKey& key) const {
    const auto at = entries_.find(key);
    return at == entries_.end() ? nullptr : &at->second.value;
  }

  std::optional<Value> take(const CorrelationKey& key) {
    const auto at = entries_.find(key);
    if (at == entries_.end()) return std::nullopt;
    std::optional<Value> value(std::move(at->second.value));
    entries_.erase(at);
    if (entries_.empty()) order_.clear();
    return value;
  }

  // Lets go, oldest first, as long as `expired(value)`.
  template <class Expired, class Evict>
  void expire(Expired&& expired, Evict&& evict) {
    while (!order_.empty()) {
      const auto at = entries_.find(order_.front().first);
      const bool current = at != entries_.end() && at->second.serial == order_.front().second;
      if (current && !expired(at->second.value)) return;
      pop(evict);
    }
  }

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }

 private:
  struct Entry {
    Value value;
    uint64_t serial;
  };

  template <class Evict>
  void pop(Evict&& evict) {
    const auto at = entries_.find(order_.front().first);
    if (at != entries_.end() && at->second.serial == order_.front().second) {
      evict(at->second.value);
      entries_.erase(at);
    }
    order_.pop_front();
  }

  size_t capacity_;
  uint64_t serial_ = 0;
  std::unordered_map<CorrelationKey, Entry, CorrelationHash> entries_;
  std::deque<std::pair<CorrelationKey, uint64_t>> order_;
};

}  // namespace flopinj
