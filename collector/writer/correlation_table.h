// What waits for its other half: values by CUPTI correlation id and graph node, the oldest let go
// past a bound.
#pragma once
#include <collector/writer/flat_table.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

namespace flopinj {

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
    const auto [entry, is_new] = entries_.insert(key, Entry{value, serial_});
    if (!is_new) {
      evict(entry->value.value);
      entry->value = Entry{value, serial_};
    }
    order_.emplace_back(key, serial_++);
    while (order_.size() > capacity_) pop(evict);
  }

  const Value* find(const CorrelationKey& key) const {
    const auto* const entry = entries_.find(key);
    return entry == nullptr ? nullptr : &entry->value.value;
  }

  std::optional<Value> take(const CorrelationKey& key) {
    auto* const entry = entries_.find(key);
    if (entry == nullptr) return std::nullopt;
    std::optional<Value> value(std::move(entry->value.value));
    entries_.erase(entry);
    if (entries_.empty()) order_.clear();
    return value;
  }

  // Lets go, oldest first, as long as `expired(value)`.
  template <class Expired, class Evict>
  void expire(Expired&& expired, Evict&& evict) {
    while (!order_.empty()) {
      const auto* const entry = entries_.find(order_.front().first);
      const bool current = entry != nullptr && entry->value.serial == order_.front().second;
      if (current && !expired(entry->value.value)) return;
      pop(evict);
    }
  }

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }

 private:
  struct Entry {
    Value value{};
    uint64_t serial = 0;
  };

  template <class Evict>
  void pop(Evict&& evict) {
    auto* const entry = entries_.find(order_.front().first);
    if (entry != nullptr && entry->value.serial == order_.front().second) {
      evict(entry->value.value);
      entries_.erase(entry);
    }
    order_.pop_front();
  }

  size_t capacity_;
  uint64_t serial_ = 0;
  FlatTable<Entry> entries_;
  std::deque<std::pair<CorrelationKey, uint64_t>> order_;
};

}  // namespace flopinj
